"""Properties of layouts that the tests of blocks and overlaps do not cover."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import (
    Layout,
    block_layout,
    canonical,
    placement,
    with_chips_axis,
)
from abele.ir.geometry.space import AccessMap, AxisMap

from .strategies import cell_indices, shapes


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("offset", [-1, 1])
def test_a_layout_that_leaves_an_element_out_is_not_a_partition(parts: int, offset: int):
    shifted = AxisMap(9, ((0, 1),), offset, outside="fill")
    assert not Layout((Cut(9, parts),), AccessMap((shifted,))).is_partition


def test_a_layout_of_every_element_is_a_partition():
    assert Layout((Cut(9, 3),), AccessMap((AxisMap(9, ((0, 1),)),))).is_partition


def test_a_block_with_an_empty_dimension_has_no_elements():
    """Also if another dimension of the same axis spans several: those of no point are none."""
    spread = AxisMap(2, ((0, 1), (1, -2)), 3, 2, "exact", "fill")
    empty = AxisMap(2, ((0, 1), (2, -2)), 3, 2, "exact", "fill")
    layout = Layout((Cut(0, 1), Cut(2, 1), Cut(0, 1)), AccessMap((spread, empty)))
    assert layout.box == (0, 0)


@st.composite
def layouts_of_one_axis(draw: st.DrawFn) -> Layout:
    """An axis whose index has dimensions as digits, in any order, some of them cut.

    Now and then one dimension is all digits.
    """
    sizes = draw(st.lists(st.integers(1, 4), max_size=3))
    one = draw(st.sampled_from([False, False, True]))
    sizes = sizes[:1] * len(sizes) if one else sizes
    grid = [Cut(n, draw(st.integers(1, n))) for n in sizes]
    weights = [int(np.prod(sizes[i + 1 :])) for i in range(len(sizes))]
    wrong = draw(st.sampled_from([0, 0, 1]))
    terms = [(0 if one else d, w + wrong * draw(st.integers(0, 1))) for d, w in enumerate(weights)]
    axis = AxisMap(
        int(np.prod(sizes, initial=1)) + draw(st.sampled_from([0, 0, 1])),
        tuple(draw(st.permutations(terms))),
        outside="fill",
    )
    return Layout(tuple(grid), AccessMap((axis,)))


@given(layouts_of_one_axis())
def test_a_partition_has_every_element_in_one_block(layout: Layout):
    _, index = layout.members(0)
    once = np.bincount(index, minlength=layout.shape[0]) == 1
    assert layout.is_partition == bool(once.all())


@given(layouts_of_one_axis(), st.integers(0, 40), st.integers(0, 40))
def test_members_within_bounds_are_all_members_in_that_range(layout: Layout, low: int, high: int):
    part, index = layout.members(0)
    inside = (index >= low) & (index < high)
    found = layout.members(0, (low, high))
    assert found[0].tolist() == part[inside].tolist()
    assert found[1].tolist() == index[inside].tolist()


@given(layouts_of_one_axis(), st.integers(0, 40), st.integers(0, 40), st.booleans())
def test_runs_hold_the_members_in_their_order(layout: Layout, low: int, high: int, alone: bool):
    part, index = layout.members(0, (low, high))
    found, first, length = layout.runs(0, (low, high), one_by_one=alone)
    assert np.repeat(found, length).tolist() == part.tolist()
    listed = [
        i for f, n in zip(first.tolist(), length.tolist(), strict=True) for i in range(f, f + n)
    ]
    assert listed == index.tolist()
    assert (length == 1).all() if alone else (length > 0).all()


def test_a_block_layout_cuts_each_axis_into_its_parts():
    layout = block_layout((64, 32), (4, 2), first_tile=3)
    assert (layout.cells, layout.box, layout.first_tile) == (8, (16, 16), 3)
    assert layout.is_partition
    assert layout.starts(0).ravel().tolist() == [0, 16, 32, 48]
    assert layout.starts(1).ravel().tolist() == [0, 16]


def test_the_copies_of_a_block_layout_follow_each_other():
    layout = block_layout((64, 32), (4, 1), copies=3)
    assert (layout.cells, layout.box, layout.replicas) == (12, (16, 32), 3)
    assert layout.starts(0).ravel().tolist() == [0, 16, 32, 48]


def test_grains_of_a_block_layout_round_its_parts():
    layout = block_layout((10,), (2,), grains=(4,))
    assert layout.counts(0).ravel().tolist() == [8, 2]


@pytest.mark.parametrize(
    ("parts", "message"),
    [((2,), "1 parts for 2 axes; need one per axis"), ((5, 1), "5 parts of 4 elements")],
)
def test_a_block_layout_refuses_parts_that_do_not_fit_the_shape(
    parts: tuple[int, ...], message: str
):
    with pytest.raises(ValueError, match=message):
        block_layout((4, 3), parts)


def test_equal_blocks_of_an_axis_are_the_same_however_they_are_counted():
    """Forward, a weight's rows are a reduction that is split; backward, they are an axis."""
    axis = AxisMap(12, ((0, 3), (1, 1)))
    split = Layout((Cut(4, 4), Cut(3, 1)), AccessMap((axis,)))
    assert canonical(split) == block_layout((12,), (4,))
    padded = Layout((Cut(4, 4), Cut(3, 1)), AccessMap((AxisMap(11, axis.terms, outside="fill"),)))
    assert canonical(padded) != canonical(block_layout((11,), (4,)))


def test_placements_are_equal_whatever_replicas_are_replicas_for():
    def layout(*grid: Cut) -> Layout:
        axis = AxisMap(64, ((len(grid) - 1, 1),))
        return Layout(grid, AccessMap((axis, AxisMap(1))))

    halves = Cut(64, 2)
    some = placement(layout(Cut(8, 4), Cut(6, 3), halves))
    assert some == placement(layout(Cut(100, 12), halves))
    assert some.shape == (64,)
    assert some.cells == 24
    assert some != placement(layout(halves, Cut(12, 12), Cut(64, 2)))
    assert some != placement(layout(Cut(100, 6), halves))


@given(layouts_of_one_axis(), st.lists(st.integers(1, 3), max_size=3), st.integers(0, 3))
def test_a_placement_has_the_blocks_of_its_layout_on_its_tiles(
    layout: Layout, copies: list[int], at: int
):
    at = min(at, len(layout.grid))
    grid = (*layout.grid[:at], *(Cut(4, n) for n in copies), *layout.grid[at:])
    moved = {d: d + len(copies) * (d >= at) for d in range(len(layout.grid))}
    copied = Layout(grid, layout.access.renamed(moved), layout.first_tile)
    placed = placement(copied)

    def blocks(each: Layout) -> list[list[int]]:
        return [
            np.broadcast_to(found, each.parts).ravel().tolist()
            for found in (each.starts(0), each.counts(0))
        ]

    if len(placed.shape) == 1:
        assert blocks(placed) == blocks(copied)
    assert placed.is_partition == copied.is_partition


@given(shapes, st.data())
def test_chips_become_an_axis_of_the_same_blocks(shape: tuple[int, ...], data: st.DataObject):
    cuts = [Cut(n, data.draw(st.integers(1, n))) for n in shape]
    copies, chips = data.draw(st.sampled_from([(2, 2), (4, 2), (6, 3), (4, 4)]))
    at = data.draw(st.integers(0, len(cuts)))
    cuts.insert(at, Cut(copies, copies, 1, chips))
    dims = [d for d in range(len(cuts)) if d != at]
    axes = tuple(AxisMap(n, ((d, 1),)) for n, d in zip(shape, dims, strict=True))
    cells = prod(cut.parts for cut in cuts) // chips
    apart = cells + data.draw(st.integers(0, 1))
    layout = canonical(Layout(tuple(cuts), AccessMap(axes), apart=apart))
    found = with_chips_axis(layout, chips)
    assert found is not None
    assert found.shape == (chips, *layout.shape)
    assert found.tiles.of(np.arange(found.cells)).tolist() == (
        layout.tiles.of(np.arange(layout.cells)).tolist()
    )
    for cell in range(layout.cells):
        first, *rest = cell_indices(found, cell)
        assert first.tolist() == [layout.tiles.of(cell) // apart]
        own = cell_indices(layout, cell)
        assert [each.tolist() for each in rest] == [each.tolist() for each in own]
    assert with_chips_axis(layout, chips + 1) is None
