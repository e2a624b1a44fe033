"""What follows from the ranges of sizes and dimensions."""

from __future__ import annotations

from abele.tools.proving.facts import Facts
from abele.tools.proving.indices import Poly, Quotient

N, M, I, J = (Poly.of(name) for name in "nmij")


def facts() -> Facts:
    return Facts({"n": 1, "m": 1}, {"i": N, "j": M})


def test_a_row_major_number_is_inside_the_tensor():
    known = facts()
    assert known.holds(N * M - 1 - (I * M + J))
    assert not known.holds(N * M - 2 - (I * M + J))


def test_a_quotient_of_a_row_major_number_is_the_row():
    quotient = Poly.of(Quotient(I * M + J, M))
    assert facts().is_zero(quotient - I)
    assert not facts().is_zero(quotient - J)


def test_a_condition_that_cannot_hold_is_known_to_fail():
    assert facts().fails(I - N)
    assert not facts().fails(I - 1)


def test_contradictions_are_impossible():
    assert not facts().also([I - 3, J - I, -J]).possible()
    assert facts().also([I - 3]).possible()
