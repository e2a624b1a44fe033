"""What follows from the ranges of sizes and dimensions."""

from __future__ import annotations

from abele.tools.proving.facts import Facts
from abele.tools.proving.indices import Poly, Quotient

N, M, A, B = (Poly.of(name) for name in "nmij")


def facts() -> Facts:
    return Facts({"n": 1, "m": 1}, {"i": N, "j": M})


def test_a_row_major_number_is_inside_the_tensor():
    known = facts()
    assert known.holds(N * M - 1 - (A * M + B))
    assert not known.holds(N * M - 2 - (A * M + B))


def test_a_quotient_of_a_row_major_number_is_the_row():
    quotient = Poly.of(Quotient(A * M + B, M))
    assert facts().is_zero(quotient - A)
    assert not facts().is_zero(quotient - B)


def test_a_condition_that_cannot_hold_is_known_to_fail():
    assert facts().fails(A - N)
    assert not facts().fails(A - 1)


def test_contradictions_are_impossible():
    assert not facts().also([A - 3, B - A, -B]).possible()
    assert facts().also([A - 3]).possible()
