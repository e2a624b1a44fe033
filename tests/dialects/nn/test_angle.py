"""The angle of a point."""

import numpy as np
import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Operation, SSAValue

from abele.backends.reference import KnownValues
from abele.dialects import nn

VALUES = np.array([0, 1, 2.5, 1e-30, 3e38, np.inf, np.nan], np.float32)
COORDINATES = np.concatenate([VALUES, -VALUES])


def angles(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    block = Block()

    def add(op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    def number(value: float, like: SSAValue) -> SSAValue:
        assert nn.element_of(like) == f32
        return add(nn.ConstantOp(np.array(value, np.float32)))

    made = nn.angle(add(nn.ConstantOp(y)), add(nn.ConstantOp(x)), add, number)
    found = KnownValues(1 << 16).array(made)
    assert found is not None
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_it_is_that_of_ieee_with_zeros_infinities_and_nan() -> None:
    y, x = COORDINATES[:, None], COORDINATES
    found, expected = angles(y, x), np.arctan2(y, x)
    np.testing.assert_allclose(found, expected, rtol=3e-7)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])
