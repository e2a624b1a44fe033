"""Tests for dialects/placement.py."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import VerifyException

from abele.dialects.abele import Plan
from abele.dialects.placement import ChipSize, Placement, placement_of
from abele.ir.geometry.layout import canonical, linear_layout
from abele.ir.geometry.space import Dim, identity_map
from abele.ir.text import parse_module, print_inline

from ..strategies import context

CHIP = 6
"""Tiles of a chip on which programs lie."""

WHOLE = ChipSize(CHIP, CHIP)

sizes = st.sampled_from((WHOLE, ChipSize(CHIP, CHIP + 1), ChipSize(CHIP, 2 * CHIP)))


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    return Placement(*(draw(st.integers(low, 4)) for low in (0, 1, 1)))


@st.composite
def plans(draw: st.DrawFn, chips: int) -> Plan:
    """A plan of two dimensions on some chips, spread over several of them or not."""
    across = draw(
        st.sampled_from([(a, b) for a in range(1, 5) for b in range(1, 5) if a * b <= chips])
    )
    each = draw(
        st.sampled_from([(a, b) for a in range(1, 7) for b in range(1, 7) if a * b <= CHIP])
    )
    chip = draw(st.integers(0, chips - prod(across)))
    first = chip * CHIP + draw(st.integers(0, CHIP - prod(each)))
    split = tuple(a * b for a, b in zip(across, each, strict=True))
    if prod(across) == 1:
        return Plan(split, first_tile=first)
    return Plan(split, first_tile=first, across=across, apart=CHIP)


@given(st.data())
def test_a_moved_plan_has_each_cell_on_the_same_tile_of_the_chip_that_its_chip_has_become(
    data: st.DataObject,
):
    here, size = data.draw(placements()), data.draw(sizes)
    plan = data.draw(plans(here.count))
    plan = replace(plan, combine=data.draw(plans(here.count)))
    moved = here.moved(plan, size)
    assert here.own(moved, size) == plan
    assert plan.combine is not None
    assert moved.combine is not None
    for before, after in ((plan, moved), (plan.combine, moved.combine)):
        chip, tile = np.divmod(before.tiles.of(np.arange(before.tiles.count)), CHIP)
        expected = (here.first + chip * here.apart) * size.all + tile
        assert after.tiles.of(np.arange(after.tiles.count)).tolist() == expected.tolist()


@given(st.data())
def test_a_layout_is_moved_as_the_plan_that_makes_it(data: st.DataObject):
    here, size = data.draw(placements()), data.draw(sizes)
    plan = data.draw(plans(here.count))
    dims = tuple(Dim(f"d{i}", n * data.draw(st.integers(1, 3))) for i, n in enumerate(plan.split))
    access = identity_map((0, 1), tuple(dim.size for dim in dims))
    layout = canonical(plan.layout(dims, access))
    moved = here.moved(layout, size)
    assert moved == canonical(here.moved(plan, size).layout(dims, access))
    assert here.own(moved, size) == layout


def test_a_layout_that_fills_chips_in_a_row_is_moved_to_chips_that_are_not():
    layout = linear_layout((4 * CHIP, 32), 4, 4 * CHIP, chips=4)
    assert not layout.apart
    here = Placement(1, 4, 2)
    moved = here.moved(layout, WHOLE)
    chips = np.unique(moved.tiles.of(np.arange(moved.cells)) // CHIP)
    assert chips.tolist() == [*here.chips]
    assert here.own(moved, WHOLE) == layout


def test_a_plan_that_fills_chips_in_a_row_says_which_parts_are_on_another_chip():
    plan = Plan((3, 4 * CHIP // 3), order=(1,), first_tile=CHIP)
    moved = Placement(0, 5, 2).moved(plan, WHOLE)
    assert (moved.across, moved.apart) == ((1, 4), 2 * CHIP)
    tiles = moved.tiles.of(np.arange(4 * CHIP)).reshape(4, CHIP)
    assert (tiles // CHIP).tolist() == [[chip] * CHIP for chip in (2, 4, 6, 8)]


def test_cells_in_a_row_on_several_chips_cannot_be_moved_to_chips_that_are_no_neighbours():
    with pytest.raises(ValueError, match="chips .0, 2, 2. are not neighbours"):
        Placement(0, 2, 2).moved(Plan((4,), first_tile=4), WHOLE)
    assert Placement(1, 2, 1).moved(Plan((4,), first_tile=4), WHOLE) == Plan((4,), first_tile=10)


def test_cells_in_a_row_are_moved_between_tiles_that_are_kept_aside():
    layout = linear_layout((2 * CHIP, 32), 4, 2 * CHIP, chips=2)
    size = ChipSize(CHIP, CHIP + 2)
    moved = Placement(0, 2).moved(layout, size)
    assert str(moved.tiles) == "0..5, 8..13"
    assert Placement(0, 2).own(moved, size) == layout
    with pytest.raises(ValueError, match=r"tiles 4..7 in a row; programs may use 0..5, 8..13"):
        Placement(0, 2).moved(Plan((4,), first_tile=4), size)
    with pytest.raises(ValueError, match=r"in steps; steps take one chip"):
        Placement(0, 2).moved(Plan((2 * CHIP,), steps=(2,)), size)


@pytest.mark.parametrize("first", [CHIP, 2 * CHIP + 1, 4 * CHIP])
def test_tiles_that_are_kept_aside_have_no_place_of_their_own(first: int):
    with pytest.raises(ValueError, match=r"programs may use 0..5, 12..17|chips .0, 2, 1. have"):
        Placement(0, 2).own(Plan((CHIP,), first_tile=first), ChipSize(CHIP, 2 * CHIP))


@pytest.mark.parametrize("first", [0, 2 * CHIP, 5 * CHIP, 2 * CHIP - 1])
def test_what_lies_on_other_chips_has_no_place_of_its_own(first: int):
    with pytest.raises(ValueError, match="tiles"):
        Placement(1, 2, 2).own(Plan((2,), first_tile=first), WHOLE)


def function(attribute: str) -> FuncOp:
    text = f"func.func @f() attributes {{abele.chips = {attribute}}} {{ func.return }}"
    module = parse_module(text, context())
    assert isinstance(module, ModuleOp)
    again = parse_module(print_inline(module), context())
    (found,) = again.body.block.ops
    assert isinstance(found, FuncOp)
    return found


def test_the_text_of_a_placement_round_trips():
    found = placement_of(function("[1, 2, 4]"))
    assert found == Placement(1, 2, 4)
    assert found is not None
    assert str(found) == "[1, 2, 4]"
    assert function("[1, 2, 4]").attributes["abele.chips"] == found.attribute


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        ("3", r"need \[first chip, number of chips, chips apart\]"),
        ("[1, 2]", r"need \[first chip, number of chips, chips apart\]"),
        ('[1, 2, "x"]', r"need \[first chip, number of chips, chips apart\]"),
        ("[-1, 2, 1]", "first chip -1; need 0 to 4096"),
        ("[0, 0, 1]", "0 chips; need 1 to 4096"),
        ("[0, 2, 0]", "chips 0 apart; need 1 to 4096"),
    ],
)
def test_numbers_that_are_no_placement_are_refused(attribute: str, problem: str):
    with pytest.raises(VerifyException, match=f"@f: abele.chips = .*{problem}"):
        placement_of(function(attribute))
