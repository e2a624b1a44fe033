from pathlib import Path

import pytest

from abele.ir.support.errors import InputError
from abele.tools.executors.here import Here
from abele.tools.sweeps.spec import read_spec
from abele.tools.sweeps.sweep import run_sweep


def test_halving_goes_on_with_the_best_half(product: Path):
    path = product.with_name("h.toml")
    path.write_text(
        f"""
[[model]]
file = "{product.name}"
[[target]]
base = "tiny:8"
tiles = [2, 4, 8]
[options]
vertices_per_tile = [1, 2]
[plan]
kind = "halving"
along = "tiles"
[result]
best = "max items_per_s"
"""
    )
    swept = run_sweep(read_spec(path), path.with_suffix(".f"), Here())
    by_tiles = {
        tiles: [row for row in swept.rows.rows if row["tiles"] == tiles] for tiles in (2, 4, 8)
    }
    assert [len(found) for found in by_tiles.values()] == [2, 1, 1]
    first = max(by_tiles[2], key=lambda row: row["items_per_s"])
    for tiles in (4, 8):
        assert by_tiles[tiles][0]["vertices_per_tile"] == first["vertices_per_tile"]


def test_rows_of_all_rounds_are_in_the_order_of_the_grid(product: Path):
    path = product.with_name("h.toml")
    path.write_text(
        f'[[model]]\nfile = "{product.name}"\n[[target]]\nbase = "tiny"\ntiles = [2, 4, 8]\n'
        '[options]\nvertices_per_tile = [1, 2]\n[result]\nbest = "min tiles"\n'
        '[plan]\nkind = "halving"\nalong = "vertices_per_tile"\n'
    )
    swept = run_sweep(read_spec(path), path.with_suffix(".f"), Here())
    assert [row["point"] for row in swept.rows.rows] == [0, 1, 2, 3, 4]


def test_halving_without_a_goal_is_refused(product: Path):
    path = product.with_name("h.toml")
    path.write_text(
        f'[[model]]\nfile = "{product.name}"\n[[target]]\nbase = "tiny"\ntiles = [2, 4]\n'
        '[plan]\nkind = "halving"\nalong = "tiles"\n'
    )
    with pytest.raises(InputError, match="needs a goal"):
        run_sweep(read_spec(path), path.with_suffix(".f"), Here())
