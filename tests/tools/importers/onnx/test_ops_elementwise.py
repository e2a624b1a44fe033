"""Operators of single elements whose rules differ between types."""

import numpy as np
import pytest

from .one_node import computed, one_node


@pytest.mark.parametrize("bias", [0.0, 0.5, 1.5, 3.5, -0.75, -2.25, -1.0])
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8])
def test_shrink_of_integers_drops_what_is_behind_the_point(bias: float, dtype: type):
    value = np.arange(-9, 10).astype(np.int8) if dtype != np.uint8 else np.arange(20, dtype=dtype)
    value = value.astype(dtype)
    (found,) = computed(*one_node("Shrink", value, bias=bias, lambd=4.5))
    wide = value.astype(np.float64)
    expected = np.where(wide > 4.5, wide - bias, np.where(wide < -4.5, wide + bias, 0))
    np.testing.assert_array_equal(found, np.trunc(expected).astype(dtype))
