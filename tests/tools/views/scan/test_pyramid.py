from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from abele.tools.views.scan.pyramid import OVERLAP, TILE, levels_of, write_pyramid


@pytest.mark.parametrize("size", [256, 1000, 1024, 1100])
def test_tiles_of_every_level_make_up_the_picture(tmp_path: Path, size: int):
    ramp = np.linspace(0, 255, size).astype(np.uint8)
    image = Image.fromarray(
        np.stack(np.broadcast_arrays(ramp, ramp[:, None], np.uint8(99)), axis=-1)
    )
    count = write_pyramid(image, tmp_path)
    levels = levels_of(size)
    assert 2 ** (levels.most - 1) < size <= 2**levels.most
    assert count == len(list(tmp_path.rglob("*.webp")))
    for level in range(levels.least, levels.most + 1):
        wide = -(-size // 2 ** (levels.most - level))
        parts = -(-wide // TILE)
        assert len(list((tmp_path / str(level)).iterdir())) == parts**2
        last = Image.open(tmp_path / str(level) / f"{parts - 1}_0.webp")
        begin = max((parts - 1) * TILE - OVERLAP, 0)
        assert last.width == wide - begin
        seen = np.asarray(last.convert("RGB"))[..., 0].astype(int)
        assert abs(seen[5, -3] - 255) < 8
        assert abs(seen[5, 3] - 255 * begin / wide) < 12


def test_the_smallest_level_is_small():
    levels = levels_of(4096)
    assert 4096 >> (levels.most - levels.least) == 256
