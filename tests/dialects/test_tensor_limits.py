import pytest
from xdsl.dialects.builtin import f32
from xdsl.utils.exceptions import VerifyException

from abele.dialects import nn
from abele.dialects.tensor_limits import MOST_AXES, check_tensor_limits


def test_axes_are_limited():
    check_tensor_limits((1,) * MOST_AXES, 4)
    with pytest.raises(ValueError, match="17 axes; a tensor has at most 16"):
        check_tensor_limits((1,) * (MOST_AXES + 1), 4)


def test_the_other_sizes_of_an_empty_tensor_are_limited():
    check_tensor_limits((0, 2**46), 4)
    with pytest.raises(ValueError, match="has no elements, but its other sizes"):
        check_tensor_limits((0, 2**46, 2), 4)


def test_a_huge_tensor_with_elements_is_left_to_the_target():
    check_tensor_limits((2**62, 2**62), 8)


def test_operations_of_nn_keep_the_limits():
    with pytest.raises(VerifyException, match="70 axes"):
        nn.tensor_of(nn.tensor([1] * 70, f32))
