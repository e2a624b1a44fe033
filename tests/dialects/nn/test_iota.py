import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f16, f32, i1, i8, i32
from xdsl.utils.exceptions import VerifyException

from abele.backends.reference import operation_value
from abele.dialects import nn


def test_elements_grow_by_a_step_along_each_axis():
    op = nn.IotaOp(TensorType(f32, [2, 1, 3]), [-1, 7, 4], 5)
    (i, _, j) = np.indices((2, 1, 3))
    np.testing.assert_array_equal(operation_value(op, []), 5 - i + 4 * j)
    assert op.limits == (4, 13)


@pytest.mark.parametrize(
    ("element", "start", "message"),
    [
        (i8, 118, "numbers from 118 to 128; need elements that hold all of them"),
        (f16, 2040, "numbers from 2040 to 2050; need elements that hold all of them"),
        (i1, 0, "need numbers to compute with"),
    ],
)
def test_elements_hold_all_numbers_exactly(element, start, message):
    with pytest.raises(VerifyException, match=message):
        nn.IotaOp(TensorType(element, [11]), [1], start)


def test_there_is_a_step_for_each_axis():
    with pytest.raises(VerifyException, match=r"with steps \[1\]; need one for each axis"):
        nn.IotaOp(TensorType(i32, [3, 4]), [1])
