"""Attributes of numbers: each is made once, and 0.0 and -0.0 have different ones."""

import math

import pytest
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, f32, f64, i32, i64

from abele.ir.number_attr import float_attr, integer_attr, integers_attr
from abele.ir.upstream import VerifyException


def test_attributes_equal_those_of_xdsl_and_are_made_once():
    for made, own in (
        (lambda: integer_attr(3), IntegerAttr(3, i64)),
        (lambda: integer_attr(3, i32), IntegerAttr(3, i32)),
        (lambda: float_attr(0.1), FloatAttr(0.1, f64)),
        (lambda: float_attr(0.1, f32), FloatAttr(0.1, f32)),
        (lambda: integers_attr((2, 1)), DenseArrayBase.from_list(i64, [2, 1])),
        (lambda: integers_attr([2, 1], i32), DenseArrayBase.from_list(i32, [2, 1])),
    ):
        assert made() == own
        assert made() is made()


def test_zeros_keep_their_signs_and_infinities_and_nan_their_values():
    for value in (0.0, -0.0, math.inf, -math.inf, math.nan):
        found = float_attr(value).value.data
        assert math.copysign(1, found) == math.copysign(1, value)
        assert found == value or (math.isnan(value) and math.isnan(found))


def test_booleans_become_integers_0_and_1():
    assert integer_attr(True) == IntegerAttr(1, i64)
    assert integers_attr((True, False)) == DenseArrayBase.from_list(i64, [1, 0])


def test_long_lists_are_not_kept():
    assert integers_attr(range(1000)) == integers_attr(range(1000))
    assert integers_attr(range(1000)) is not integers_attr(range(1000))


def test_a_value_that_the_type_cannot_hold_is_refused():
    for _ in range(2):
        with pytest.raises(VerifyException):
            integer_attr(1 << 40, i32)
