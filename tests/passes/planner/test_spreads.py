from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from abele.backends.target import resolve_target
from abele.dialects.abele import Plan
from abele.dialects.structured import Structure
from abele.passes.planner.question import Question, unplaced
from abele.passes.planner.serial import plans, priced
from abele.passes.planner.spreads import over_chips, ways_of
from abele.passes.planner.terms import Terms
from abele.passes.plans.derive import combine_structure, result_layout

from .some_operators import add, conv, matmul, problem

ONE = resolve_target("tiny:4")
FOUR = resolve_target("tiny:16,links.topology=ladder,links.chips=4")


def asked(structure: Structure, **changes: object) -> Question:
    return unplaced(replace(problem(structure), **changes), FOUR, FOUR.usable_bytes_per_tile)


def ways(question: Question) -> list[tuple[int, ...] | None]:
    return [way.terms.across for way in over_chips(question)]


def test_one_chip_needs_no_choice_of_chips():
    question = unplaced(problem(matmul(64, 64, 64)), ONE, ONE.usable_bytes_per_tile)
    assert over_chips(question) == (question,)


def test_a_single_element_stays_on_one_chip():
    assert ways(asked(add(1, 1, 1))) == [()]


def test_one_or_two_dimensions_are_cut_across_some_or_all_chips():
    found = ways_of(problem(matmul(64, 64, 64)), FOUR)
    assert {tuple(sorted(way)) for way in found} == {(1, 1, 1), (1, 1, 2), (1, 1, 4), (1, 2, 2)}
    assert len(found) == len(set(found)) == 1 + 3 + 3 + 3
    assert [prod(way) for way in found] == sorted(map(prod, found), reverse=True)


def test_chips_divide_those_of_the_machine():
    six = resolve_target("tiny:24,links.topology=ladder,links.chips=6")
    assert {prod(way) for way in ways_of(problem(matmul(64, 64, 64)), six)} == {1, 2, 3, 6}


def test_large_products_use_all_chips_and_few_ways_are_searched():
    found = ways(asked(matmul(512, 256, 256)))
    assert 1 <= len(found) <= 2
    assert prod(found[0] or ()) == 4


def test_a_batch_of_two_on_four_chips_is_cut_over_two_and_another_dimension_over_two():
    wide = asked(add(2, 4096, 64))
    assert (2, 2, 1) in ways_of(wide.problem, FOUR)
    assert prod(plans(wide)[0].plan.across) == 4


def test_an_operator_that_cannot_be_cut_over_four_chips_uses_two():
    best = plans(asked(matmul(2, 3, 2048), terms=Terms(split=(0, 1, 1))))[0]
    assert best.plan.across in ((), (2, 1, 1))
    assert ways_of(asked(matmul(2, 1, 1)).problem, FOUR)[0] == (2, 1, 1)


def test_the_estimate_chooses_a_way_that_is_nearly_as_fast_as_any():
    """Which other ways there are is known only here: every one is searched."""
    for structure in (matmul(64, 64, 64), matmul(300, 40, 200), conv(8, 9, 16, 3), add(64, 64, 8)):
        question = asked(structure)
        every = [
            plans(replace(question, problem=replace(question.problem, terms=terms)))[0]
            for way in ways_of(question.problem, FOUR)
            for terms in [Terms(across=way, apart=4) if prod(way) > 1 else Terms(across=())]
        ]
        assert plans(question)[0].cycles <= 1.15 * min(choice.cycles for choice in every)


def test_a_dimension_that_is_smaller_than_the_number_of_chips_is_not_cut_across_them():
    assert (4, 1, 1) not in ways(asked(matmul(3, 64, 64)))


def test_a_split_of_the_user_is_cut_across_chips_where_it_can_be():
    split = asked(matmul(64, 64, 64), terms=Terms(split=(8, 2, 1)))
    assert ways_of(split.problem, FOUR) == [(4, 1, 1), (2, 2, 1)]
    assert all(way in ((4, 1, 1), (2, 2, 1)) for way in ways(split))
    fewer = asked(matmul(64, 64, 64), terms=Terms(split=(3, 1, 1)))
    assert ways_of(fewer.problem, FOUR) == [(1, 1, 1)]


def test_the_way_of_an_operand_is_tried():
    rows = result_layout(add(64, 64, 1), Plan((12, 1, 1), across=(4, 1, 1), apart=4))
    question = replace(asked(add(64, 64, 1)), have=(rows, None))
    assert (4, 1, 1) in ways(question)
    assert plans(question)[0].plan.across == (4, 1, 1)


@pytest.mark.parametrize("structure", [matmul(64, 40, 24), conv(8, 9, 16, 3), add(30, 20, 10)])
def test_plans_stay_within_the_tiles_of_their_chips(structure: Structure):
    for choice in plans(asked(structure), lean=True):
        plan = choice.plan
        while plan is not None:
            assert plan.tiles.on_a_chip <= FOUR.tiles_per_chip
            assert plan.apart in (0, FOUR.tiles_per_chip)
            assert all(n % k == 0 for n, k in zip(plan.split, plan.across, strict=False))
            plan = plan.combine


def test_four_chips_are_never_slower_than_one_by_more_than_a_longer_sync():
    for structure in (matmul(256, 64, 64), matmul(8, 4096, 8), conv(16, 17, 16, 3), add(2, 2, 2)):
        one = unplaced(problem(structure), ONE, ONE.usable_bytes_per_tile)
        assert plans(asked(structure))[0].cycles <= plans(one)[0].cycles


def test_partials_of_several_chips_are_combined_over_chips_where_that_is_faster():
    structure = matmul(256, 4096, 256)
    plan = Plan((1, 1, 16), across=(1, 1, 4), apart=4)
    choice = priced(asked(structure), plan)
    combine = choice.plan.combine
    assert combine is not None
    assert prod(combine.across) == 4
    assert combine_structure(structure, plan) is not None


def test_an_operator_that_fits_no_chip_is_cut_across_all_of_them():
    large = problem(matmul(8, 1024, 512), resident=(False, True))
    question = unplaced(large, FOUR, FOUR.usable_bytes_per_tile)
    best = plans(question)[0]
    assert prod(best.plan.across) == 4
    assert best.resident_bytes <= FOUR.usable_bytes_per_tile
