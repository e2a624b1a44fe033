"""Tensor types are made once, for any type of the given sizes."""

import numpy as np
from xdsl.dialects.builtin import TensorType, f32, i64

from abele.ir.tensor_type import tensor_type


def test_a_type_is_made_once():
    assert tensor_type(f32, [2, 3]) is tensor_type(f32, tuple(np.array([2, 3])))


def test_types_equal_those_of_xdsl():
    assert tensor_type(f32, (2, 0)) == TensorType(f32, [2, 0])
    assert tensor_type(i64, ()) == TensorType(i64, [])
    assert tensor_type(i64, (1,)) != tensor_type(f32, (1,))
