"""Polynomials over sizes and dimensions."""

from __future__ import annotations

from abele.tools.proving.indices import Poly, Quotient, Remainder, product_of

N, A, B = Poly.of("n"), Poly.of("i"), Poly.of("j")


def test_equal_polynomials_have_one_form():
    assert (A + B) * (A - B) == A * A - B * B
    assert N * A + 1 - 1 == A * N
    assert (A - A).terms == ()


def test_a_number_is_known_and_an_unknown_is_not():
    assert (A - A + 3).constant == 3
    assert Poly().constant == 0
    assert A.constant is None


def test_names_are_replaced_also_within_quotients():
    quotient = Poly.of(Quotient(A + 1, Poly.of(2)))
    assert quotient.replaced({"i": B * 2}).value({"j": 4}) == 4
    assert quotient.names == {"i"}


def test_values_round_down_as_the_indices_of_maps_do():
    values = {"i": -3}
    assert Poly.of(Quotient(A, Poly.of(2))).value(values) == -2
    assert Poly.of(Remainder(A, Poly.of(2))).value(values) == 1


def test_a_slope_is_known_only_where_a_polynomial_is_linear():
    assert (N - A * 2).slope("i") == -2
    assert (N * A).slope("i") is None
    assert N.slope("i") == 0


def test_the_product_of_no_sizes_is_one():
    assert product_of([]) == Poly.of(1)
    assert str(product_of([N, A + 2])) == "i * n + 2 * n"
