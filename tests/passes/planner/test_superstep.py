"""The first superstep of a plan, and lower bounds of its price."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.target import resolve_target
from abele.dialects.structured import Structure
from abele.passes.planner.superstep import arrived, lower_bounds, received
from abele.passes.plans.derive import compute_layouts

from .some_operators import every_split, problem, question_of, structures


@given(structures(), st.sampled_from((1, 2, 5, 8)), st.data())
@settings(max_examples=200)
def test_no_plan_costs_less_than_its_lower_bound(
    structure: Structure, tiles: int, data: st.DataObject
):
    target = resolve_target(f"tiny:{tiles}")
    plans = st.sampled_from(every_split(structure, tiles))
    asked = problem(structure, resident=(False,) * len(structure.space.operands))
    question = question_of(asked, target)
    have = list(question.have)
    for i, layout in enumerate(compute_layouts(structure, data.draw(plans))):
        have[i] = layout if layout.is_partition else have[i]
    question = replace(question, have=tuple(have))
    (least,) = lower_bounds(question, (data.draw(plans),))
    assert least.cycles <= received(question, least).cycles <= arrived(question, least).cycles
