"""The planner leaves a weight at home where that is cheaper than copying or loading it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.target import resolve_target
from abele.dialects.abele import Plan
from abele.dialects.home import Home
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.layout import placement
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space
from abele.passes.planner.keeping import at_home, kept
from abele.passes.planner.problem import Problem
from abele.passes.planner.question import Question, unplaced
from abele.passes.planner.search import fastest
from abele.passes.planner.serial import priced
from abele.passes.plans.derive import operand_layouts

TARGET = resolve_target("tiny:16")
ROOM = TARGET.usable_bytes_per_tile


def product(rows: int, columns: int = 24, depth: int = 32) -> Question:
    """The question about a product whose right operand is a weight."""
    dims = (Dim("m", rows), Dim("n", columns), Dim("k", depth, "reduction"))

    def map_of(*axes: int) -> AccessMap:
        return AccessMap(tuple(AxisMap(dims[d].size, ((d, 1),)) for d in axes))

    space = Space(dims, (map_of(0, 2), map_of(2, 1)), (map_of(0, 1),))
    f32 = np.dtype(np.float32)
    problem = Problem(Structure(space, Body("mul", "sum")), (f32, f32), f32, (False, True))
    return unplaced(problem, TARGET, ROOM)


def home_under(question: Question, plan: Plan, reload: int | None = None) -> Home:
    """The home of the weight under a plan."""
    full = priced(question, plan).plan
    return Home(operand_layouts(question.structure, full)[1], None, reload)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([4, 6, 16, 48]),
    st.sampled_from([4, 6, 16, 48]),
    st.sampled_from([(2, 2, 4), (1, 4, 4), (4, 4, 1), (2, 8, 1), (1, 1, 8), (4, 2, 2)]),
    st.permutations(range(3)),
)
def test_every_plan_that_keeps_a_home_is_priced_as_if_there_were_none(
    rows: int, others: int, split: tuple[int, ...], order: list[int]
):
    plan = Plan(split, tuple(order) if order != [0, 1, 2] else ())
    home = home_under(product(rows), plan)
    question = product(others)
    found = kept(question, ((1, home),))
    for choice in found:
        lies = operand_layouts(question.structure, choice.plan)[1]
        assert placement(lies) == placement(home.layout)
        assert at_home(question, ((1, home),), 1, choice.plan) == choice
    # The very plan is there if the other product can be cut so.
    if others >= split[0]:
        assert any(c.plan.split == split for c in found)


def test_a_plan_elsewhere_pays_for_the_cheaper_of_copying_and_loading():
    question = product(16)
    home = home_under(question, Plan((2, 2, 4)))
    plan = priced(question, Plan((16, 1, 1))).plan
    free = priced(question, plan)
    firm = at_home(question, ((1, home),), 1, plan)
    assert firm.exchange_cycles > free.exchange_cycles
    assert firm.reload_cycles == 0
    cheap = at_home(question, ((1, replace(home, reload=3)),), 1, plan)
    assert (cheap.cycles, cheap.reload_cycles) == (free.cycles + 3, 3)
    dear = at_home(question, ((1, replace(home, reload=10**9)),), 1, plan)
    assert dear == firm
    # In a loop, a run copies each time, and loads once.
    often = at_home(question, ((1, replace(home, reload=300)),), 100, plan)
    assert often.reload_cycles == pytest.approx(3)


def test_a_home_of_another_shape_is_kept_by_no_plan():
    home = home_under(product(16, 12), Plan((2, 2, 4)))
    assert not kept(product(16), ((1, home),))


def test_the_fastest_plan_keeps_its_own_home():
    question = product(16)
    best = fastest(question)
    found = kept(question, ((1, home_under(question, best.plan)),))
    assert min(c.cycles for c in found) <= best.cycles
