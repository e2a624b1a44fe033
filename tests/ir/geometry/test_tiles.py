"""Tiles of cells on one chip and on several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.geometry.blocks import gather, scatter
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout, canonical, placement
from abele.ir.geometry.space import identity_map
from abele.ir.geometry.tiles import Tiles, TileSets, check_spread, in_common


@st.composite
def spread_tiles(draw: st.DrawFn) -> Tiles:
    """Tiles of cells across one to six chips."""
    chips = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    each = [draw(st.integers(1, 4)) for _ in chips]
    parts = tuple(n * k for n, k in zip(each, chips, strict=True))
    first, gap = draw(st.integers(0, 5)), draw(st.integers(0, 7))
    if np.prod(chips) == 1:
        return Tiles(first, parts)
    return Tiles(first, parts, chips, int(np.prod(each)) + gap)


def test_the_most_significant_digit_of_a_part_counts_chips():
    tiles = Tiles(1, (6,), (2,), 16)
    assert tiles.of(np.arange(6)).tolist() == [1, 2, 3, 17, 18, 19]
    assert (tiles.first, tiles.end, tiles.spans) == (1, 20, ((1, 4), (17, 20)))
    assert str(tiles) == "1..3, 17..19"


def test_chips_are_numbered_over_the_digits_of_all_dimensions():
    tiles = Tiles(0, (2, 4), (2, 2), 10)
    assert tiles.of(np.arange(8)).tolist() == [0, 1, 10, 11, 20, 21, 30, 31]


@given(spread_tiles())
def test_every_cell_is_found_on_its_own_tile(tiles: Tiles):
    cells = np.arange(tiles.count)
    here = tiles.of(cells)
    assert len(set(here.tolist())) == tiles.count
    assert (tiles.cells_on(here) == cells).all()
    every = np.arange(tiles.end + 3)
    assert (tiles.cells_on(every) >= 0).sum() == tiles.count
    assert [t in tiles for t in every.tolist()] == (tiles.cells_on(every) >= 0).tolist()
    assert sorted(here.tolist()) == [t for a, b in tiles.spans for t in range(a, b)]
    table = np.zeros(tiles.end, np.int64)
    table[tiles.rows] += cells + 1
    assert (table[here] == cells + 1).all()
    assert (tiles.spread(cells + 1) == table[tiles.first :]).all()


@given(spread_tiles(), st.integers(1, 9))
def test_the_chips_of_tiles_are_those_of_all_cells(tiles: Tiles, chip_tiles: int):
    every = tiles.of(np.arange(tiles.count)) // chip_tiles
    assert tiles.used_chips(chip_tiles).tolist() == np.unique(every).tolist()


@given(spread_tiles(), spread_tiles())
def test_cells_in_common_lie_on_the_same_tiles(one: Tiles, other: Tiles):
    mine, its = in_common(one, other)
    here = one.of(np.arange(one.count))
    there = other.of(np.arange(other.count))
    assert (here[mine] == there[its]).all()
    assert set(here[mine].tolist()) == set(here.tolist()) & set(there.tolist())


@pytest.mark.parametrize(
    ("parts", "chips", "apart", "problem"),
    [
        ((6,), (4,), 9, "6 parts across 4 chips; need a multiple"),
        ((6,), (2,), 2, "3 cells on each chip, and chips 2 tiles apart"),
        ((6,), (1,), 2, "need several chips, or neither"),
        ((6,), (), 2, "need several chips, or neither"),
        ((6, 2), (2,), 8, "need a number for each of 2 dimensions"),
    ],
)
def test_parts_that_cannot_be_spread_are_refused(
    parts: tuple[int, ...], chips: tuple[int, ...], apart: int, problem: str
):
    with pytest.raises(ValueError, match=problem):
        check_spread(parts, chips, apart)


@st.composite
def spread_layouts(draw: st.DrawFn) -> Layout:
    """Layouts of a tensor of two axes over one to six chips, with replicas."""
    grid: list[Cut] = []
    for size in (draw(st.integers(1, 13)), draw(st.integers(1, 13)), 3):
        chips = draw(st.integers(1, 3))
        parts = chips * draw(st.integers(1, 4))
        if size == 3:
            grid.append(Cut(parts, parts, chips=chips))
        elif parts <= size:
            grid.append(Cut(size, parts, chips=chips))
        else:
            grid.append(Cut(size))
    order = draw(st.permutations(range(3)))
    places = {d: i for i, d in enumerate(order)}
    shape = grid[0].size, grid[1].size
    access = identity_map((places[0], places[1]), shape)
    layout = Layout(tuple(grid[d] for d in order), access, draw(st.integers(0, 3)))
    tiles = replace(layout, apart=10**6).tiles
    if not tiles.chips:
        return layout
    return replace(layout, apart=tiles.on_a_chip + draw(st.integers(0, 3)))


@given(spread_layouts())
def test_blocks_on_several_chips_hold_what_those_on_one_chip_hold(layout: Layout):
    values = np.arange(np.prod(layout.shape), dtype=np.int32).reshape(layout.shape)
    row = layout.block_elements * 4
    memory = np.zeros((layout.tiles.end, row), np.uint8)
    plain = np.zeros((layout.cells, row), np.uint8)
    scatter(values, memory, 0, layout)
    scatter(values, plain, 0, layout.stacked)
    assert (memory[layout.tiles.of(np.arange(layout.cells))] == plain).all()
    assert (gather(memory, 0, layout, values.dtype) == values).all()


@given(spread_layouts())
def test_canonical_forms_keep_every_cell_on_its_tile(layout: Layout):
    values = np.arange(np.prod(layout.shape), dtype=np.int32).reshape(layout.shape) + 1
    for form in (canonical(layout), placement(layout)):
        memory = np.zeros((layout.tiles.end, layout.block_elements * 4), np.uint8)
        again = np.zeros_like(memory)
        scatter(values, memory, 0, layout)
        scatter(values.reshape(form.shape), again, 0, form)
        assert (memory == again).all()
        assert form.tiles.spans == layout.tiles.spans or not form.tiles.chips


@given(st.lists(spread_tiles(), min_size=1, max_size=6))
def test_sets_of_tiles_meet_where_they_have_a_tile_in_common(sets: list[Tiles]):
    found = TileSets(sets)
    left, right = (each.ravel() for each in np.indices((len(sets), len(sets))))
    tiles = [set(each.of(np.arange(each.count)).tolist()) for each in sets]
    wanted = [not tiles[i].isdisjoint(tiles[j]) for i, j in zip(left, right, strict=True)]
    assert found.meet(left, right).tolist() == wanted
    everything = np.arange(len(sets))
    one_by_one = [found.meeting(i, everything) for i in range(len(sets))]
    assert np.concatenate(one_by_one).tolist() == wanted
    assert found.are_ranges == all(len(each.spans) == 1 for each in sets)


def test_sets_on_every_other_chip_do_not_meet():
    even, odd = Tiles(0, (2,), (2,), 8), Tiles(4, (2,), (2,), 8)
    assert TileSets([even, odd]).meet(np.array([0, 0]), np.array([0, 1])).tolist() == [True, False]
