"""The shapes of the inputs of an archive, with their free sizes."""

import lzma
from pathlib import Path

import numpy as np
import pytest

from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.importers.pt2.signatures import open_shapes

FREE = Path(__file__).parent / "fixtures" / "free sizes.pt2.xz"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "net.pt2"
    path.write_bytes(lzma.decompress(FREE.read_bytes()))
    return path


def test_free_sizes_are_symbols_and_expressions(path: Path):
    assert open_shapes(path) == {"x": ("s77", 3, "2*s44", 8)}


def test_an_example_gives_their_sizes(path: Path):
    given = {"x": np.ones((4, 3, 6, 8), np.float32)}
    exe = compile_model(path, "tiny:16", example=given, cache=False)
    assert [each.shape for each in exe.inputs] == [(4, 3, 6, 8)]


def test_an_example_that_contradicts_an_expression_is_refused(path: Path):
    given = {"x": np.ones((4, 3, 7, 8), np.float32)}
    with pytest.raises(InputError, match=r"2\*s44=7; no s44 gives it"):
        compile_model(path, "tiny:16", example=given, cache=False)
