import itertools
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from abele.backends.target import resolve_target
from abele.dialects.abele import Plan
from abele.dialects.structured import Structure
from abele.ir.geometry.layout import linear_layout
from abele.passes.planner import candidates
from abele.passes.planner.candidates import inherited, part_counts, splits
from abele.passes.plans.derive import operand_layouts, result_layout

from .some_operators import add, conv, matmul, problem, structures


def test_there_is_one_part_count_per_size_of_the_largest_part():
    assert part_counts(problem(matmul(10, 1, 1)), 0, 100).tolist() == [1, 2, 3, 4, 5, 10]


def test_part_counts_do_not_exceed_the_tiles():
    assert part_counts(problem(matmul(10, 1, 1)), 0, 4).tolist() == [1, 2, 3, 4]


def test_part_counts_of_a_window_are_its_divisors():
    assert part_counts(problem(conv(1, 8, 1, 6)), 4, 100).tolist() == [1, 2, 3, 6]


@given(structures(), st.integers(1, 20))
def test_splits_are_all_combinations_of_part_counts_that_fit_on_the_tiles(
    structure: Structure, tiles: int
):
    asked = problem(structure)
    rank = len(structure.space.dims)
    every = itertools.product(*(part_counts(asked, d, tiles).tolist() for d in range(rank)))
    assert list(map(tuple, splits(asked, tiles).tolist())) == [
        parts for parts in every if prod(parts) <= tiles
    ]


def test_too_many_splits_are_thinned_and_the_ends_kept(monkeypatch):
    monkeypatch.setattr(candidates, "MAX_CANDIDATES", 500)
    found = splits(problem(conv(512, 14, 512, 3, pad=1)), 1472)
    assert len(found) <= 500
    assert {1, 512} <= set(found[:, 0].tolist())


def test_an_elementwise_operator_inherits_the_exact_layout_of_its_operand():
    plan = Plan((2, 3, 2), (2, 0), 4)
    target = resolve_target("tiny:16")
    layout = result_layout(add(4, 6, 8), plan)
    found = inherited(problem(add(4, 6, 8)), (layout, None), target)
    assert found
    assert operand_layouts(add(4, 6, 8), found[0])[0] == layout


def test_a_reduction_that_the_operand_is_cut_along_is_inherited_too():
    target = resolve_target("tiny:16")
    given_ = result_layout(add(8, 12), Plan((1, 4)))
    found = inherited(problem(matmul(8, 12, 4)), (given_, None), target)
    assert {plan.split for plan in found} == {(1, 1, 1), (1, 1, 4)}


def test_a_layout_that_does_not_fit_on_the_tiles_is_not_inherited():
    layout = result_layout(add(4, 6), Plan((4, 6), (), 8))
    target = resolve_target("tiny:16")
    assert inherited(problem(add(4, 6)), (layout, None), target) == []


def test_linear_order_is_inherited_along_the_first_axes():
    target = resolve_target("tiny:16")
    layout = linear_layout((4, 32), 4, 16, grain_bytes=32)
    assert layout.cells == 16
    found = inherited(problem(add(4, 32)), (layout, None), target)
    assert [plan.split for plan in found] == [(4, 4)]


def test_a_split_of_padding_around_one_element_is_not_inherited():
    target = resolve_target("tiny:16")
    padded = conv(1, 1, 1, 1, pad=1)
    split = tuple(dim.size if dim.name in "yx" else 1 for dim in padded.space.dims)
    layout = operand_layouts(padded, Plan(split))[0]
    assert layout.cells > 1
    found = inherited(problem(add(*layout.shape)), (layout, None), target)
    assert {prod(plan.split) for plan in found} == {1}
