from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from abele.backends.fabrics.traffic import Carried, Traffic
from abele.backends.target import Target, resolve_target
from abele.dialects.abele import Plan
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout, canonical, linear_layout
from abele.ir.geometry.space import identity_map
from abele.passes.planner.crossing import crossing_cycles, on_chips
from abele.passes.planner.traffic import traffic
from abele.passes.plans.derive import operand_layouts, result_layout
from abele.passes.replicas.gathers import cycles_in_rounds, gather_of
from abele.passes.replicas.rounds import load_of

from .some_operators import add, conv, matmul

TWO = resolve_target(
    "tiny:8,links.topology=ladder,links.chips=2,links.rung_gbytes=0.1,links.first_word_ns=500"
)
FOUR = resolve_target("tiny:16,links.topology=ladder,links.chips=4")
MEETING = 30e-9


def cycles(source: Layout, wanted: Layout, target: Target = TWO, itemsize: int = 4) -> int:
    return crossing_cycles(((source, wanted, itemsize, None),), target)


def link(moved: int) -> int:
    return ceil((moved / 0.1e9 + 500e-9) * TWO.clock_hz) + ceil(MEETING * TWO.clock_hz)


def spread(*split: int, across: tuple[int, ...] = ()) -> Layout:
    apart = TWO.tiles_per_chip if across else 0
    return result_layout(add(8, 6, 1), Plan(split, across=across, apart=apart))


def test_nothing_crosses_between_layouts_that_use_chips_alike():
    rows = spread(4, 1, 1, across=(2, 1, 1))
    assert cycles(rows, rows) == 0
    assert cycles(rows, spread(8, 1, 1, across=(2, 1, 1))) == 0
    assert cycles(spread(4, 1, 1), spread(1, 2, 1)) == 0


def test_half_of_a_tensor_crosses_from_one_chip_to_two():
    assert cycles(spread(4, 1, 1), spread(4, 1, 1, across=(2, 1, 1))) == link(8 * 6 // 2 * 4)


def test_a_quarter_crosses_each_way_where_another_dimension_is_cut():
    rows, columns = spread(4, 1, 1, across=(2, 1, 1)), spread(1, 6, 1, across=(1, 2, 1))
    assert cycles(rows, columns) == link(8 * 6 // 4 * 4)


def test_several_operands_share_a_link():
    rows, columns = spread(4, 1, 1, across=(2, 1, 1)), spread(1, 6, 1, across=(1, 2, 1))
    operand = rows, columns, 4, None
    assert crossing_cycles((operand, operand), TWO) == link(2 * 8 * 6 // 4 * 4)


def test_a_copy_for_each_tile_of_a_chip_crosses_once():
    plan = Plan((4, 1, 1), across=(2, 1, 1), apart=TWO.tiles_per_chip)
    whole = operand_layouts(matmul(8, 6, 4), plan)[1]
    alone = result_layout(add(6, 4, 1), Plan((3, 1, 1)))
    assert whole.cells == 4
    assert cycles(alone, whole) == link(6 * 4 * 4)


def on_tiles(source: Layout, wanted: Layout, target: Target) -> Layout | int:
    """The cycles of what tiles send each other between chips."""
    carried = Carried(traffic(source, wanted, None), 4)
    moved = replace(Traffic.none(target.tiles), carried=[carried])
    waiting = int(target.links.waiting_cycles(moved, target.tiles, target.clock_hz).max())
    return waiting + ceil(target.links.meeting_seconds() * target.clock_hz) if waiting else 0


@pytest.mark.parametrize("rows", [19, 26])
def test_uneven_parts_cross_as_their_tiles_do(rows: int):
    """26 rows in 8 parts give the first of four chips 8 rows; in 16 parts, the second one too."""
    made = [
        result_layout(add(rows, 29, 1), Plan(split, across=chips, apart=FOUR.tiles_per_chip))
        for chips in ((4, 1, 1), (2, 1, 1), (2, 2, 1), (1, 4, 1))
        for n in (1, 2, 4)
        for split in [(min(chips[0] * n, 16), chips[1], 1)]
    ]
    found = {(a, b): cycles(a, b, FOUR) for a in made for b in made}
    assert all(n == on_tiles(a, b, FOUR) for (a, b), n in found.items())
    assert found[made[0], made[3]] > 0
    assert rows == 19 or found[made[1], made[2]] > 0


def test_a_halo_crosses():
    structure = conv(1, 18, 4, 3, pad=1)
    wanted = operand_layouts(
        structure, Plan((1, 4, 1, 1, 1, 1), across=(1, 4, 1, 1, 1, 1), apart=4)
    )
    held = result_layout(add(1, 18, 18), Plan((1, 4, 1), across=(1, 4, 1), apart=4))
    assert 0 < cycles(held, wanted[0], FOUR) == on_tiles(held, wanted[0], FOUR)


def test_linear_order_over_all_tiles_is_that_of_chips():
    order = linear_layout((1024,), 4, TWO.tiles, chips=2)
    assert order.cells == 8
    assert on_chips(order, TWO).parts == (2,)
    assert linear_layout((64,), 4, TWO.tiles, chips=2).tiles.end <= TWO.tiles_per_chip


@pytest.mark.parametrize("parts", [(1, 1, 1), (3, 1, 1), (2, 2, 1)])
def test_a_layout_on_one_chip_is_one_cell(parts: tuple[int, ...]):
    found = on_chips(result_layout(add(8, 6, 1), Plan(parts, first_tile=4)), TWO)
    assert (found.cells, found.first_tile) == (1, 1)


def test_the_estimate_is_the_price_where_parts_are_equal():
    rows = result_layout(add(8, 4, 4), Plan((8, 1, 1), across=(4, 1, 1), apart=4))
    columns = result_layout(add(8, 4, 4), Plan((1, 4, 2), across=(1, 4, 1), apart=4))
    carried = Carried(traffic(rows, columns, None), 4)
    moved = replace(Traffic.none(FOUR.tiles), carried=[carried])
    exact = FOUR.links.waiting_cycles(moved, FOUR.tiles, FOUR.clock_hz)
    longer = ceil(FOUR.links.meeting_seconds() * FOUR.clock_hz)
    assert cycles(rows, columns, FOUR) == int(np.max(exact)) + longer


def test_a_gather_crosses_in_rounds_where_the_compiler_would_take_them():
    """Chips share the rows of a weight, and each wants the whole."""
    target = resolve_target("bow-pod16")
    tiles, access = target.tiles_per_chip, identity_map((1, 2), (1024, 1024))
    grids = (
        (Cut(1), Cut(1024, 16, chips=16), Cut(1024, 64)),
        (Cut(16, 16, chips=16), Cut(1024), Cut(1024, 64)),
    )
    rows, whole = (canonical(Layout(grid, access, apart=tiles)) for grid in grids)
    gather = gather_of(rows, whole, target)
    assert gather is not None
    found = cycles(rows, whole, target)
    assert found == cycles_in_rounds(gather, 4, target)
    assert found < load_of("direct", 64 * 1024 * 4, 16, target).cycles
    assert crossing_cycles(((rows, whole, 4, None),) * 2, target) == 2 * found
