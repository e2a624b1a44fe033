from dataclasses import replace
from math import inf, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.target import resolve_target
from abele.passes.planner.candidates import splits
from abele.passes.planner.search import considered, fastest
from abele.passes.planner.terms import Terms, relaxed

from .some_operators import matmul, problem

TARGET = resolve_target("tiny:16")
USABLE = TARGET.usable_bytes_per_tile
PROBLEM = problem(matmul(32, 64, 48))
NARROW = problem(matmul(32, 8, 48))
HAVE = (None, None)


def test_a_part_count_that_is_asked_for_is_kept():
    asked = replace(PROBLEM, terms=Terms(split=(3, 0, 0)))
    assert set(splits(asked, 16)[:, 0]) == {3}
    every = considered(asked, HAVE, TARGET, USABLE)
    assert len(every) > 3
    assert {c.plan.split[0] for c in every} == {3}


def test_no_more_tiles_are_used_than_asked_for():
    asked = replace(PROBLEM, terms=Terms(tiles=5))
    for choice in considered(asked, HAVE, TARGET, USABLE):
        assert prod(choice.plan.split) <= 5
        combine = choice.plan.combine
        assert combine is None or prod(combine.split) <= 5


@pytest.mark.parametrize("method", ["amp", "mac", "outer"])
def test_a_method_that_is_asked_for_is_kept_and_priced(method: str):
    asked = replace(NARROW, terms=Terms(method=method))
    chosen = fastest(asked, HAVE, TARGET, USABLE)
    assert chosen.plan.method == method
    assert inf > chosen.cycles >= fastest(NARROW, HAVE, TARGET, USABLE).cycles


def test_splits_are_chosen_for_the_method_that_is_asked_for():
    # A dot product wants long rows, an outer product none.
    best = {
        name: fastest(replace(NARROW, terms=Terms(method=name)), HAVE, TARGET, USABLE).plan.split
        for name in ("amp", "mac", "outer")
    }
    assert len(set(best.values())) > 1


def test_a_limit_on_bytes_is_kept_where_a_plan_keeps_it():
    free = fastest(PROBLEM, HAVE, TARGET, USABLE)
    some = [c.temporary_bytes for c in considered(PROBLEM, HAVE, TARGET, USABLE)]
    limit = sorted(some)[0]
    assert limit < free.temporary_bytes
    asked = replace(PROBLEM, terms=Terms(temporary_bytes=limit))
    kept = fastest(asked, HAVE, TARGET, USABLE)
    assert kept.temporary_bytes <= limit
    assert kept.cycles > free.cycles


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
