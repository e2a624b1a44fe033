"""Elements that a map reads, and axes that a step carries along."""

from __future__ import annotations

from dataclasses import replace

import pytest

from abele.ir.geometry.space import Rule
from abele.tools.proving.bodies import Undecided
from abele.tools.proving.elements import Elements
from abele.tools.proving.facts import Facts
from abele.tools.proving.indices import Poly
from abele.tools.proving.lifting import carries_all_axes
from abele.tools.proving.steps import Axis, Points, Step, Steps, View
from abele.tools.proving.trees import shown

N, AT = Poly.of("n"), Poly.of("i")


def axis(offset: int = 0, outside: Rule = "none", step: int = 1, divisor: int = 1) -> Axis:
    return Axis(N, ((0, step),), Poly.of(offset), divisor, "floor", outside)


def moved(read: Axis, sizes: tuple[Poly, ...] = (N,)) -> Steps:
    """A program that moves the elements of x, of n elements, as a map reads them."""
    points = Points(sizes, (View((read,), 0.0),), View((axis(),), 0.0))
    leaf = Step("leaf", "x", (), (N,), "f32")
    step = Step("moved", "moved", (0,), (N,), "f32", (points,))
    return Steps((leaf, step), (1,), (1,))


def read(at: Axis) -> str:
    facts = Facts({"n": 1}, {"i": N})
    return shown(Elements(moved(at), facts).of(1, (AT,)))


def test_a_map_reads_at_its_offset_and_a_fill_beyond_the_edge():
    assert read(axis()) == "x[i]"
    assert read(axis(-1, "fill")) == "(x[- 1 + i] if - 1 + i >= 0 else 0.0)"


@pytest.mark.parametrize("rule", ["clamp", "reflect", "wrap"])
def test_other_rules_beyond_an_edge_are_never_taken_for_a_fill(rule: Rule):
    assert read(axis(0, rule)) == "x[i]"
    with pytest.raises(Undecided, match="beyond an edge"):
        read(axis(-1, rule))


def test_an_axis_is_carried_only_if_each_element_stays_in_its_place():
    assert carries_all_axes(moved(axis()))
    for other in (axis(1), axis(step=2), axis(divisor=2)):
        assert not carries_all_axes(moved(other))


def test_an_axis_is_not_carried_by_a_step_that_merges_elements():
    assert not carries_all_axes(moved(axis(), (N, N)))
    assert not carries_all_axes(moved(replace(axis(), terms=((1, 1),)), (N, N)))
