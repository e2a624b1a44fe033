import ml_dtypes
import numpy as np
import pytest

from abele.dialects.dense import array_of_dense, dense_of_array
from abele.ir.text import parse_module, print_module
from abele.ir.xdsl.dense_splats import ASKED, compare_splats_by_bits
from abele.tools.driver.context import new_context

REPEATED = [
    np.full((2, 3), 1.5, np.float32),
    np.full(3, -0.0, np.float32),
    np.full(4, True),
    np.full(2, np.nan, np.float32),
    np.full(2, -3, ml_dtypes.int4),
]

DIFFERENT = [
    np.array([0.0, -0.0], np.float32),
    np.array([-0.0, 0.0], ml_dtypes.bfloat16),
    np.array([True, False]),
    np.array([[1, 2], [1, 1]], np.int64),
    np.zeros((0, 2), np.float32),
]


@pytest.mark.parametrize("array", REPEATED, ids=str)
def test_elements_of_the_same_bits_are_a_splat(array):
    assert dense_of_array(array).is_splat()


@pytest.mark.parametrize("array", DIFFERENT, ids=str)
def test_elements_of_other_bits_are_none(array):
    assert not dense_of_array(array).is_splat()


def test_a_text_keeps_the_signs_of_zeros():
    text = "builtin.module attributes {value = dense<[0.0, -0.0]> : tensor<2xf32>} {}"
    again = print_module(parse_module(text, new_context()))
    found = parse_module(again, new_context()).attributes["value"]
    assert np.signbit(array_of_dense(found)).tolist() == [False, True]


def test_an_attribute_without_the_method_is_refused():
    with pytest.raises(AttributeError, match=f"no {ASKED}"):
        compare_splats_by_bits(object)
