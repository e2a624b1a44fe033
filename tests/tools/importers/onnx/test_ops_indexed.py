"""Caches that are replaced in part."""

import numpy as np
import pytest

from abele.ir.errors import InputError

from .one_node import agree_with_onnx, computed, one_node


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("axis", [1, -1])
def test_each_sample_is_replaced_from_its_own_index_on(axis: int):
    cache, update = floats(2, 5, 6), floats(2, 5, 6)[:, :2] if axis == 1 else floats(2, 5, 2)
    first = np.array([1, 3])
    agree_with_onnx(*one_node("TensorScatter", cache, update, first, opset=24, axis=axis))
    agree_with_onnx(*one_node("TensorScatter", cache, update, opset=24, axis=axis))


def test_a_circular_cache_begins_again():
    first = np.array([4, 11])
    model = one_node(
        "TensorScatter", floats(2, 3, 5, 2), floats(2, 3, 4, 2), first, opset=24, mode="circular"
    )
    agree_with_onnx(*model)


def test_an_update_must_fit_the_cache():
    model, inputs = one_node("TensorScatter", floats(2, 3, 4), floats(2, 5, 4), opset=24)
    with pytest.raises(InputError, match="update of 5 elements for 3 along axis 1"):
        computed(model, inputs)
