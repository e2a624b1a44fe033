"""Figures of plans, held to the plans themselves, and to what an operator plainly is."""

from dataclasses import replace

import numpy as np
import pytest
from some_models import convolutions

from abele.backends.target import resolve_target
from abele.dialects.abele import Plan
from abele.ir.geometry.space import Dim
from abele.passes.planner.question import Question
from abele.passes.planner.search import exact, fastest
from abele.passes.planner.terms import Terms
from abele.tools.driver.request import Request
from abele.tools.views.planning.figures import (
    OperatorPlan,
    figures,
    macs,
    padding,
    peak_macs,
    split_text,
)
from abele.tools.views.planning.plan import plan_model, product_of_matrices

TARGET = resolve_target("tiny:16")
DIMS = (Dim("m", 8), Dim("n", 1), Dim("k", 64, "reduction"))


def asked(m: int, k: int, n: int) -> Question:
    """The question of a matrix product whose right operand is at home."""
    model = plan_model(
        Request("", TARGET, passes="nn"), product_of_matrices(m, k, n, "f16", TARGET)
    )
    (found,) = model.questions.values()
    return found


def planned(found: Question, plan: Plan) -> OperatorPlan:
    choice = exact(found, plan)
    return figures("it", "it", "nn.matmul", 1, found, choice, given=True)


def test_phases_add_up_to_all_cycles():
    found = asked(16, 256, 16)
    for plan in (Plan((4, 4, 1)), Plan((2, 2, 4))):
        each = planned(found, plan)
        phases = (
            each.compute_cycles,
            each.exchange_cycles,
            each.sync_cycles,
            each.combine_cycles,
        )
        assert sum(phases) == pytest.approx(each.cycles)
        assert (each.combine_cycles > 0) == (plan.split[2] > 1)


def test_utilisation_is_work_over_the_peak_of_all_tiles():
    found = asked(64, 128, 64)
    each = planned(found, Plan((4, 4, 1)))
    assert macs(found.problem) == 64 * 128 * 64
    assert peak_macs(found.problem, TARGET) == 32
    assert each.utilisation == pytest.approx(64 * 128 * 64 / (16 * 32 * each.cycles))
    assert each.peak == "MACs"
    half = planned(found, Plan((2, 4, 1)))
    assert half.tiles == 8
    assert half.utilisation == pytest.approx(64 * 128 * 64 / (16 * 32 * half.cycles))


def test_padding_counts_uneven_parts_and_unfilled_units():
    problem = asked(64, 128, 64).problem

    def wasted(*split: int, method: str = "") -> float:
        return padding(problem, Plan(split, method=method), TARGET)

    assert wasted(4, 4, 1) == 0
    assert wasted(5, 1, 1) == pytest.approx(1 - 64 / (5 * 13))
    assert wasted(4, 8, 1, method="mac") == 0
    # The units make 8 columns at once, of a grain of 16 deep.
    assert wasted(4, 8, 1, method="amp") == 0
    assert wasted(4, 16, 1, method="amp") == pytest.approx(1 / 2)
    assert wasted(1, 3, 1, method="amp") == pytest.approx(1 - 64 / (3 * 24))
    assert wasted(1, 1, 16, method="amp") == pytest.approx(1 / 2)
    # Turned round they make 8 rows.
    assert wasted(4, 16, 1, method="swapped") == 0
    assert wasted(16, 1, 1, method="swapped") == pytest.approx(1 / 2)


def test_a_plan_limited_by_constraints_says_so():
    found = asked(64, 128, 64)
    slow = planned(found, Plan((1, 1, 1)))
    assert slow.limited_by.startswith("what was asked: ")
    assert slow.limited_by.endswith("faster without")
    # The best plan of those that keep a constraint is not blamed on its neighbours.
    bound = replace(found, problem=replace(found.problem, terms=Terms(split=(1, 1, 0))))
    kept = figures("it", "it", "nn.matmul", 1, bound, fastest(bound))
    assert kept.limited_by.startswith("what was asked: ")


def test_a_plan_that_little_memory_slows_down_names_memory_as_its_limit():
    found = asked(32, 512, 32)
    best = fastest(found)
    terms = Terms(temporary_bytes=best.temporary_bytes * 2 // 3)
    tight = replace(found, problem=replace(found.problem, terms=terms))
    each = figures("it", "it", "nn.matmul", 1, tight, fastest(tight))
    assert each.temporary_bytes <= each.limit_bytes < best.temporary_bytes
    assert each.limited_by.startswith("memory: ")


def test_the_runner_up_has_another_split_and_is_not_faster():
    found = asked(64, 128, 64)
    best = fastest(found)
    each = figures("it", "it", "nn.matmul", 1, found, best)
    assert each.runner_up is not None
    assert each.runner_up.plan.split != each.plan.split
    assert each.runner_up.slower == pytest.approx(each.runner_up.cycles / each.cycles - 1)
    assert each.runner_up.slower >= 0


def test_a_forced_plan_may_be_slower_than_the_runner_up():
    each = planned(asked(64, 128, 64), Plan((1, 1, 1)))
    assert each.runner_up is not None
    assert each.runner_up.slower < 0


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (Plan((1, 1, 1)), "-"),
        (Plan((4, 1, 2)), "m=4 k=2"),
        (Plan((4, 1, 1), steps=(1, 1, 8)), "m=4, k in 8"),
        (Plan((4, 1, 1), steps=(1, 1, 4), ring=(-1, -1, 0)), "m=4, k in 4 round m"),
    ],
)
def test_splits_and_steps_are_shown_by_dimension(plan: Plan, text: str):
    assert split_text(DIMS, plan) == text


def test_no_operator_is_better_than_the_machine():
    question = plan_model(Request(convolutions(), "tiny:16", passes="nn"))
    assert question.plan.operators
    for each in question.plan.operators:
        assert 0 < each.utilisation <= 1, each
        assert {"nn.conv": "MACs", "nn.pool": "vector"}.get(each.op, each.peak) == each.peak
    assert np.isfinite(question.plan.cycles)
