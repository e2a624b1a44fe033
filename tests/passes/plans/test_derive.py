from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.prices.workload import partials_dtype
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import Dim, Space, identity_map
from abele.passes.planner.candidates import splits
from abele.passes.plans.derive import (
    combine_structure,
    compute_layouts,
    final_layout,
    movement_result_layout,
    operand_layouts,
    refined,
    result_layout,
)

from ..planner.some_operators import chained, conv, matmul, problem, structures


def test_a_split_reduction_becomes_a_parallel_dimension_of_blocks():
    cut, cells = refined(matmul(8, 10, 6), Plan((4, 2, 3), (2, 0)))
    assert [(d.name, d.size, d.kind) for d in cut.space.dims] == [
        ("m", 8, "parallel"),
        ("n", 6, "parallel"),
        ("k", 4, "reduction"),
        ("kp", 3, "parallel"),
    ]
    assert cells.split == (4, 2, 1, 3)
    assert cells.order == (3, 0)


def test_partials_get_leading_axes_that_combining_removes():
    structure, plan = (
        conv(6, 8, 4, 3, pad=1),
        Plan((2, 1, 1, 2, 3, 1), combine=Plan((4, 2, 1, 1, 1))),
    )
    assert result_layout(structure, plan).shape == (3, 2, 4, 8, 8)
    combine = combine_structure(structure, plan)
    assert combine is not None
    assert [(d.name, d.size, d.kind) for d in combine.space.dims] == [
        ("o", 4, "parallel"),
        ("y", 8, "parallel"),
        ("x", 8, "parallel"),
        ("cp", 2, "reduction"),
        ("kyp", 3, "reduction"),
    ]
    assert combine.space.operands[0].shape == (3, 2, 4, 8, 8)
    assert final_layout(structure, plan).parts == (4, 2, 1)


def test_the_last_combine_carries_the_chain_and_its_operands():
    structure = chained(conv(6, 8, 4, 3, pad=1), True, False)
    nested = Plan((4, 2, 1, 1, 3), combine=Plan((2, 2, 1, 1)))
    plan = Plan((2, 1, 1, 2, 3, 1), combine=nested)
    partials, _ = refined(structure, plan)
    assert (len(partials.space.operands), partials.body) == (2, Body("mul", "sum"))
    combine = combine_structure(structure, plan)
    assert combine is not None
    assert combine.body == Body("identity", "sum", (), structure.body.then)
    bias, narrow = combine.space.operands[1:]
    assert bias == combine.space.results[0]
    assert (narrow.shape, narrow.dims()) == ((4, 1, 1), {0})
    again, _ = refined(combine, nested)
    assert (len(again.space.operands), again.body.then) == (1, ())
    last = combine_structure(combine, nested)
    assert last is not None
    assert last.body == combine.body
    assert combine_structure(last, Plan((2, 2, 1, 1))) is None


def test_the_operands_of_a_chain_are_wanted_where_partials_are_combined():
    structure = chained(conv(6, 8, 4, 3, pad=1), True, False)
    whole = Plan((2, 4, 1, 1, 1, 1))
    assert len(compute_layouts(structure, whole)) == 4
    assert operand_layouts(structure, whole) == compute_layouts(structure, whole)
    plan = Plan((2, 1, 1, 2, 3, 1), combine=Plan((4, 2, 1, 1, 1), first_tile=3))
    *own, bias, narrow = operand_layouts(structure, plan)
    assert tuple(own) == compute_layouts(structure, plan)
    assert (bias.parts, bias.first_tile) == ((4, 2, 1), 3)
    assert (narrow.cells, narrow.block_elements) == (8, 1)
    assert final_layout(structure, plan) == bias
    with pytest.raises(ValueError, match="leaves partials; need a plan to combine them"):
        operand_layouts(structure, replace(plan, combine=None))


def test_without_a_split_reduction_nothing_is_combined():
    assert combine_structure(matmul(4, 4, 4), Plan((4, 1, 1))) is None


def test_first_tile_and_order_reach_every_layout():
    plan = Plan((2, 3, 1), (1, 0), 5)
    left, right = operand_layouts(matmul(4, 4, 6), plan)
    assert left.first_tile == right.first_tile == 5
    assert left.parts[:2] == (3, 2)
    assert result_layout(matmul(4, 4, 6), plan).parts == (3, 2)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan((2, 2)), "a split of 2 parts; the space has 3"),
        (Plan((9, 1, 1)), r"dimension m: 9 parts; need 1\.\.8"),
        (Plan((2, 1, 1), (0, 0)), r"order \[0, 0\]; need different ones of 0\.\.2"),
        (Plan((2, 1, 1), (3,)), r"order \[3\]"),
    ],
)
def test_a_plan_of_another_operator_is_refused(plan: Plan, message: str):
    with pytest.raises(ValueError, match=message):
        refined(matmul(8, 4, 4), plan)


def test_a_whole_dimension_is_never_cut():
    access = identity_map((0, 1), (4, 6))
    space = Space((Dim("n", 4), Dim("t", 6, "whole")), (access,), (access,))
    with pytest.raises(ValueError, match="dimension t: 2 parts; it is never cut"):
        refined(Structure(space, Body("identity")), Plan((1, 2)))


def test_a_window_is_cut_by_divisors_only():
    refined(conv(2, 8, 2, 3), Plan((1, 1, 1, 1, 3, 1)))
    with pytest.raises(ValueError, match="dimension ky: 2 parts of 3 elements; need a divisor"):
        refined(conv(2, 8, 2, 3), Plan((1, 1, 1, 1, 2, 1)))


@given(structures(), st.data())
def test_every_split_worth_trying_has_layouts(structure: Structure, data: st.DataObject):
    parts = splits(problem(structure), 24)
    plan = Plan(tuple(data.draw(st.sampled_from(parts.tolist()))))
    for layout in (*compute_layouts(structure, plan), result_layout(structure, plan)):
        assert 1 <= layout.cells <= 24
    assert result_layout(structure, plan).is_partition


def test_a_movement_is_planned_over_its_result():
    layout = movement_result_layout((4, 6), Plan((2, 3), (1, 0), 7))
    assert (layout.parts, layout.first_tile) == ((3, 2), 7)
    with pytest.raises(ValueError, match="a split of 1 parts; the result has 2 axes"):
        movement_result_layout((4, 6), Plan((2,)))


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("int8", "int8"),
        ("bool", "bool"),
    ],
)
def test_partials_of_narrow_floats_are_kept_wide(given_: str, kept: str):
    assert partials_dtype(np.dtype(given_)) == np.dtype(kept)


def test_plans_that_place_their_cells_alike_share_layouts():
    structure, plan = matmul(8, 10, 6), Plan((4, 1, 3))
    decided = replace(plan, method="mac", workers=(1, 1, 2))
    assert compute_layouts(structure, decided) is compute_layouts(structure, plan)
    assert refined(structure, decided) is refined(structure, plan)
