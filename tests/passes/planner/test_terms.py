from dataclasses import replace
from math import inf, prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.target import resolve_target
from abele.dialects.structured import Structure
from abele.ir.geometry.layout import linear_layout
from abele.passes.planner.candidates import splits
from abele.passes.planner.choice import Choice
from abele.passes.planner.question import Question
from abele.passes.planner.search import considered, fastest
from abele.passes.planner.terms import Terms, relaxed

from .some_operators import matmul, problem

TARGET = resolve_target("tiny:16")
USABLE = TARGET.usable_bytes_per_tile


def asked_of(structure: Structure, **terms: Any) -> Question:
    """A product of matrices, whose right operand stays where it is wanted."""
    found = problem(structure, resident=(False, True))
    left = structure.space.operands[0].shape
    have = (linear_layout(left, 4, TARGET.tiles), None)
    return Question(replace(found, terms=Terms(**terms)), have, TARGET, USABLE)


def considered_of(structure: Structure, **terms: Any) -> tuple[Choice, ...]:
    return considered(asked_of(structure, **terms))


def fastest_of(structure: Structure, **terms: Any) -> Choice:
    return fastest(asked_of(structure, **terms))


PRODUCT = matmul(64, 64, 64)
SHALLOW = matmul(32, 8, 48)


def test_a_part_count_that_is_asked_for_is_kept():
    problem = asked_of(PRODUCT, split=(3, 0, 0)).problem
    assert set(splits(problem, 16)[:, 0]) == {3}
    every = considered_of(PRODUCT, split=(3, 0, 0))
    assert len(every) > 3
    assert {c.plan.split[0] for c in every} == {3}


def test_no_more_tiles_are_used_than_asked_for():
    for choice in considered_of(PRODUCT, tiles=5):
        assert prod(choice.plan.split) <= 5
        combine = choice.plan.combine
        assert combine is None or prod(combine.split) <= 5


@pytest.mark.parametrize("method", ["amp", "mac", "outer"])
def test_a_method_that_is_asked_for_is_kept_and_priced(method: str):
    chosen = fastest_of(SHALLOW, method=method)
    assert chosen.plan.method == method
    assert inf > chosen.cycles >= fastest_of(SHALLOW).cycles


def test_splits_are_chosen_for_the_method_that_is_asked_for():
    # An outer product wants no depth, so that the others make fewer partials.
    best = {name: fastest_of(SHALLOW, method=name).plan.split for name in ("amp", "mac", "outer")}
    assert best["outer"][2] == 8 > max(best["amp"][2], best["mac"][2])


def test_a_limit_on_bytes_is_kept_where_a_plan_keeps_it():
    free = fastest_of(PRODUCT)
    limit = min(c.temporary_bytes for c in considered_of(PRODUCT))
    assert limit < free.temporary_bytes
    kept = fastest_of(PRODUCT, temporary_bytes=limit)
    assert kept.temporary_bytes <= limit
    assert kept.cycles > free.cycles


def test_a_limit_that_no_plan_keeps_is_doubled_until_one_does():
    every = considered_of(PRODUCT)
    least = min(c.temporary_bytes for c in every)
    for limit, to in ((least * 2 // 3, least * 4 // 3), (least // 7, least * 8 // 7), (0, least)):
        inside = min(c.cycles for c in every if c.temporary_bytes <= to)
        found = fastest_of(PRODUCT, temporary_bytes=limit)
        assert found.temporary_bytes <= to
        assert found.cycles <= inside


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_limit_is_doubled_no_further_than_needed(limit, least):
    found = relaxed(limit, least)
    assert found >= least
    if limit >= least:
        assert found == limit
    elif limit:
        assert found // 2 < least
        assert found % limit == 0
    else:
        assert found == least


def test_no_limit_is_more_than_any_tile():
    assert relaxed(None, 10**12) > 10**15
