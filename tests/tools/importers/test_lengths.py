"""Lengths: sums, products and quotients of numbers that only a run knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.tools.importers.lengths import (
    Larger,
    Length,
    Number,
    Quotient,
    as_length,
    is_equal,
    is_less,
    larger,
    row_strides,
    simplest,
    smaller,
)

A, B = Number[object]("a", 0, 5), Number[object]("b", 1, 3)
NUMBERS = A, B


def value_of(length: int | Length, values: Mapping[Number[object], int]) -> int:
    """A length in a run, computed from its definition."""
    total = 0
    for factors, factor in as_length(length).terms:
        for atom, power in factors:
            if isinstance(atom, Number):
                own = values[atom]
            elif isinstance(atom, Quotient):
                own = value_of(atom.dividend, values) // atom.divisor
            else:
                own = max(value_of(each, values) for each in atom.lengths)
            factor *= own**power
        total += factor
    return total


OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "product": lambda a, b: a * b,
    "larger": larger,
    "smaller": smaller,
}
EXACT: Mapping[str, Callable[[int, int], int]] = {
    **OPERATIONS,
    "larger": max,
    "smaller": min,
}


@st.composite
def expressions(
    draw: st.DrawFn, depth: int = 3
) -> tuple[Length, Callable[[Mapping[Number[object], int]], int]]:
    """A length, and a function that computes it from the numbers as integers are computed."""
    if not depth or draw(st.integers(0, 3)) == 0:
        if draw(st.booleans()):
            constant = draw(st.integers(-4, 4))
            return as_length(constant), lambda values: constant
        number = draw(st.sampled_from(NUMBERS))
        return Length.of(number), lambda values: values[number]
    left, of_left = draw(expressions(depth - 1))
    if draw(st.integers(0, 3)) == 0:
        divisor = draw(st.integers(1, 4))
        if draw(st.booleans()):
            return left // divisor, lambda values: of_left(values) // divisor
        return left % divisor, lambda values: of_left(values) % divisor
    right, of_right = draw(expressions(depth - 1))
    name = draw(st.sampled_from(sorted(OPERATIONS)))
    made = as_length(OPERATIONS[name](left, right))
    return made, lambda values: EXACT[name](of_left(values), of_right(values))


RUNS = [{A: a, B: b} for a in range(6) for b in range(1, 4)]


@given(expressions())
def test_a_length_is_computed_as_integers_are(made: Any):
    length, exact = made
    for values in RUNS:
        assert value_of(length, values) == exact(values)
        assert length.least <= exact(values) <= length.most
    assert length.fixed is None or all(exact(v) == length.fixed for v in RUNS)


@given(expressions(), expressions())
def test_what_is_known_of_two_lengths_is_true_in_every_run(one: Any, other: Any):
    for known, compare in ((is_less, int.__lt__), (is_equal, int.__eq__)):
        found = known(one[0], other[0])
        if found is not None:
            assert all(compare(one[1](v), other[1](v)) == found for v in RUNS)
    quotient = one[0].divided(other[0])
    if quotient is not None:
        assert all(value_of(quotient, v) * other[1](v) == one[1](v) for v in RUNS)


def test_a_shape_is_divided_by_what_it_was_made_of():
    past, rows = Length.of(A), Length.of(B)
    total = (past + 1) * rows * 32
    assert total.divided((past + 1) * 8) == rows * 4
    assert total.divided(rows) == (past + 1) * 32
    assert total.divided(past) is None
    assert total.divided(Length()) is None
    assert (past * 6 + 4) // 2 == past * 3 + 2
    assert simplest((past + 3) - past) == 3


def test_lengths_that_bounds_decide():
    past = Length.of(A)
    assert larger(past, 7) == 7
    assert larger(past, 0) == past
    assert smaller(past + 1, 0) == 0
    assert isinstance(larger(past, 3), Length)
    assert is_less(past, 6) is True
    assert is_less(past, 5) is None
    assert is_equal(past, 6) is False


def test_the_numbers_of_a_length_are_those_of_its_parts_too():
    past, rows = Length.of(A), Length.of(B)
    made = as_length(larger(past // 2, rows))
    assert set(made.numbers()) == {A, B}
    (((atom, _),), _), *_ = ((tuple(product), n) for product, n in made.terms)
    assert isinstance(atom, Larger)


@pytest.mark.parametrize("sizes", [(), (3,), (2, 3, 4)])
def test_strides_are_products_of_the_sizes_behind(sizes: tuple[int, ...]):
    found = [simplest(each) for each in row_strides(sizes)]
    assert found == [prod(sizes[i + 1 :]) for i in range(len(sizes))]
