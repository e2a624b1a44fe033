"""Comparisons of elements with sums over dimensions of any size."""

from __future__ import annotations

import math
from time import process_time

from abele.tools.proving.bodies import identity_of
from abele.tools.proving.comparing import Comparison
from abele.tools.proving.facts import Facts
from abele.tools.proving.indices import Poly
from abele.tools.proving.outcomes import Outcome
from abele.tools.proving.terms import Const, Term
from abele.tools.proving.trees import Case, Element, Reduce, Tree

N, M, AT, TO = (Poly.of(name) for name in "nmij")


def element(index: Poly, leaf: str = "x") -> Element:
    return Element(leaf, (index,), "f32")


def over(name: str, size: Poly, body: Tree, combiner: str = "sum") -> Reduce:
    return Reduce(combiner, ((name, size),), body, "f32")


def compared(left: Tree, right: Tree) -> Outcome:
    def decide(one: Term, other: Term) -> Outcome:
        return Outcome() if one == other else Outcome("different")

    facts = Facts({"n": 1, "m": 1}, {"i": N, "j": N})
    return Comparison(facts, decide, process_time() + 5).outcome(left, right)


def test_sums_of_the_same_elements_are_equal_in_every_order_up_to_rounding():
    forwards, backwards = over("i", N, element(AT)), over("j", N, element(N - 1 - TO))
    assert compared(forwards, over("j", N, element(TO))).proved
    found = compared(forwards, backwards)
    assert (found.proved, found.exactness) == (True, "rounding")


def test_sums_over_other_sizes_or_elements_are_not_equal():
    whole = over("i", N, element(AT))
    assert not compared(whole, over("j", M, element(TO))).proved
    assert not compared(whole, over("j", N, element(TO + 1))).proved
    assert not compared(whole, over("j", N, element(TO * 2))).proved
    assert not compared(whole, over("j", N, element(TO), "max")).proved


def test_padding_with_zeros_changes_a_sum_as_little_as_padding_with_infinity_an_extreme():
    def padded(fill: float, combiner: str) -> Reduce:
        inside = Case((AT - 1,), element(AT - 1), Const(fill, "f32"))
        return over("i", N, inside, combiner)

    for combiner, identity in (("sum", 0.0), ("max", -math.inf), ("min", math.inf), ("prod", 1.0)):
        rest = over("j", N - 1, element(TO), combiner)
        assert identity_of(combiner, "f32") == Const(identity, "f32")
        assert compared(padded(identity, combiner), rest).proved
        assert not compared(padded(2.0, combiner), rest).proved


def test_both_cases_of_a_choice_must_agree():
    choice = Case((AT - 1,), element(AT), element(AT, "y"))
    assert not compared(choice, element(AT)).proved
    assert not compared(choice, element(AT, "y")).proved
    assert compared(choice, Case((AT - 1,), element(AT), element(Poly(), "y"))).proved
