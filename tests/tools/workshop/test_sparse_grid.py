import json
from dataclasses import replace

import numpy as np
import pytest

from abele.backends.target import resolve_target
from abele.tools.bench.fidelity.cases import SparseProduct as Case
from abele.tools.bench.fidelity.cases import SpeedUp
from abele.tools.workshop import sparse_grid
from abele.tools.workshop.sparse_grid import (
    Point,
    dense_cycles,
    draw,
    grid_table,
    point,
    right_sides,
    sparse_cycles,
)

MACHINE = resolve_target("mk2:64")
CASE = Case(256, 256, 64, 16, 1 / 8, False, "float16", "float32")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_fewer_blocks_take_fewer_cycles_than_the_dense_product(dtype):
    few, many = (replace(CASE, operand=dtype, density=d) for d in (1 / 16, 1 / 2))
    for less, more in zip(*(sparse_cycles(each, MACHINE) for each in (few, many)), strict=True):
        assert 0 < less < more
    found = point(SpeedUp(few), 2.0, MACHINE)
    assert found.own > found.in_order > 1
    assert found.cycles > 0
    assert dense_cycles(256, 64, dtype, MACHINE) > 0


def test_element_wise_products_take_no_longer_than_the_plans_of_popsparse():
    case = Case(512, 512, 64, 1, 1 / 8, False, "float16", "float32")
    assert point(SpeedUp(case), 0.82, resolve_target("bow")).cycles < 1


def test_sums_in_16_bits_are_what_the_dense_product_is_compared_with():
    assert dense_cycles(256, 64, "float16", MACHINE) < dense_cycles(256, 64, "float32", MACHINE)


POINTS = [
    Point(CASE, 2.0, 1.8, 1.5, 0.9, 1.1),
    Point(replace(CASE, n=16), 0.5, 0.6, 1.2, 1.1, 0.9),
    Point(replace(CASE, block=4, density=1 / 32), 1.05, 1.0, 0.8, 0.7, 1.3),
]


def test_a_speed_up_is_right_if_the_chip_gains_or_loses_as_well():
    assert [right_sides(POINTS, name) for name in ("own", "in_order", "published")] == [1, 0, 3]


def test_the_table_has_a_row_for_each_block_and_density(tmp_path):
    table = grid_table(POINTS, "mk2:64")
    assert table.row_count == 2
    assert [list(each.cells) for each in table.columns][3] == ["1.05", "1.25"]
    draw(POINTS, tmp_path / "grid.png")
    assert (tmp_path / "grid.png").read_bytes().startswith(b"\x89PNG")


def test_the_figures_are_written(tmp_path, monkeypatch, capsys):
    rows, skipped = sparse_grid.read_rows(sparse_grid.SPEED_UPS)
    small = [each for each in rows if each.case.product.m <= 512][:2]
    monkeypatch.setattr(sparse_grid, "read_rows", lambda file: (small, skipped))
    monkeypatch.setattr(sparse_grid, "TABLE", {})
    sparse_grid.sparse_grid("mk2:64", report=tmp_path / "grid.json")
    found = json.loads((tmp_path / "grid.json").read_text())
    assert [each["published"] for each in found] == [each.cycles for each in small]
    assert all(np.isfinite(each["own"]) for each in found)
    assert "rows whose published speed-up is outside 0.9 to 1.1" in capsys.readouterr().out
