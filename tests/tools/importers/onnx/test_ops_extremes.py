"""Where the largest element is: ties, NaN, and the last of several."""

import numpy as np
import pytest
from onnx import helper

from abele.tools.onnx_backend import AbeleBackend

X = np.array(
    [[1, 3, 3, 0], [-np.inf, -np.inf, -np.inf, -np.inf], [2, np.nan, 5, np.nan], [0.0, -0.0, 0, 0]],
    np.float32,
)


def run(operator: str, x: np.ndarray, opset: int = 13, **attributes: int) -> np.ndarray:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    result = kind if operator == "Hardmax" else helper.np_dtype_to_tensor_dtype(np.dtype(np.int64))
    graph = helper.make_graph(
        [helper.make_node(operator, ["x"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", result, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    (found,) = AbeleBackend.run_model(model, [x])
    return found


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
def test_the_index_is_that_of_numpy(operator: str, dtype: type):
    x = X.astype(dtype) if np.dtype(dtype).kind == "f" else np.arange(16).reshape(4, 4) % 3
    x = x.astype(dtype)
    function = getattr(np, operator.lower())
    for axis in (0, 1, -1):
        found = run(operator, x, axis=axis, keepdims=0)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, function(x, axis))
        last = run(operator, x, axis=axis, keepdims=1, select_last_index=1)
        need = x.shape[axis] - 1 - function(np.flip(x, axis), axis, keepdims=True)
        np.testing.assert_array_equal(last, need)


def test_hardmax_is_1_once_per_row():
    found = run("Hardmax", X, axis=1)
    np.testing.assert_array_equal(found, np.eye(4, dtype=np.float32)[np.argmax(X, 1)])
