"""Polynomials over sizes and dimensions."""

from __future__ import annotations

from abele.tools.proving.indices import Poly, Quotient, Remainder, product_of

N, I, J = Poly.of("n"), Poly.of("i"), Poly.of("j")


def test_equal_polynomials_have_one_form():
    assert (I + J) * (I - J) == I * I - J * J
    assert N * I + 1 - 1 == I * N
    assert (I - I).terms == ()


def test_a_number_is_known_and_an_unknown_is_not():
    assert (I - I + 3).constant == 3
    assert Poly().constant == 0
    assert I.constant is None


def test_names_are_replaced_also_within_quotients():
    quotient = Poly.of(Quotient(I + 1, Poly.of(2)))
    assert quotient.replaced({"i": J * 2}).value({"j": 4}) == 4
    assert quotient.names == {"i"}


def test_values_round_down_as_the_indices_of_maps_do():
    values = {"i": -3}
    assert Poly.of(Quotient(I, Poly.of(2))).value(values) == -2
    assert Poly.of(Remainder(I, Poly.of(2))).value(values) == 1


def test_a_slope_is_known_only_where_a_polynomial_is_linear():
    assert (N - I * 2).slope("i") == -2
    assert (N * I).slope("i") is None
    assert N.slope("i") == 0


def test_the_product_of_no_sizes_is_one():
    assert product_of([]) == Poly.of(1)
    assert str(product_of([N, I + 2])) == "i * n + 2 * n"
