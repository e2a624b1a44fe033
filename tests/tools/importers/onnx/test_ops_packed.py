from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx

N, K, SIZE = 5, 40, 16
"""Columns, terms, and terms of a block: the last of three blocks is not full."""

BLOCKS = -(-K // SIZE)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def packed(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def operands(bits: int) -> dict[str, np.ndarray]:
    return {
        "matrix": packed(N, BLOCKS, SIZE * bits // 8),
        "scales": random(N, BLOCKS, seed=1),
        "zeros": packed(N, -(-BLOCKS * bits // 8), seed=2),
        "bias": random(N, seed=3),
    }


def model(
    weights: dict[str, np.ndarray], order: list[str], *, are_inputs: bool = False, **attributes: Any
) -> onnx.ModelProto:
    """A model of the input x [2, K], and of weights, which may be inputs."""
    kinds = [("x", TensorProto.FLOAT, (2, K))]
    if are_inputs:
        kinds += [
            (name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in weights.items()
        ]
    node = helper.make_node(
        *("MatMulNBits", ["x", *order], ["y"], "node"),
        domain="com.microsoft",
        **{"N": N, "K": K, "block_size": SIZE, **attributes},
    )
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info(*each) for each in kinds],
        [helper.make_empty_tensor_value_info("y")],
        [] if are_inputs else [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("are_inputs", [False, True])
@pytest.mark.parametrize(
    ("bits", "order"),
    [
        (4, ["matrix", "scales"]),
        (4, ["matrix", "scales", "zeros"]),
        (8, ["matrix", "scales", "zeros"]),
        (2, ["matrix", "scales", "", "", "bias"]),
    ],
)
def test_a_packed_matrix_is_multiplied_as_in_onnxruntime(
    bits: int, order: list[str], are_inputs: bool
):
    weights = {name: array for name, array in operands(bits).items() if name in order}
    proto = model(weights, order, are_inputs=are_inputs, bits=bits)
    inputs = {"x": random(2, K, seed=4)} | (weights if are_inputs else {})
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    found = run_reference(import_onnx(proto, AbeleContext()), inputs).outputs["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def test_zero_points_may_be_floats():
    zeros = random(N, BLOCKS, seed=2)
    weights = operands(4) | {"zeros": zeros}
    del weights["bias"]
    proto = model(weights, list(weights))
    x = random(2, K, seed=4)
    low, high = weights["matrix"] & 15, weights["matrix"] >> 4
    whole = np.stack([low, high], -1).reshape(N, BLOCKS, SIZE).astype(np.float32)
    scaled = (whole - zeros[..., None]) * weights["scales"][..., None]
    expected = x @ scaled.reshape(N, -1)[:, :K].T
    found = run_reference(import_onnx(proto, AbeleContext()), {"x": x}).outputs["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"bits": 3}, r"bits 3 is not supported; 2, 4, 8 are"),
        ({"weight_prepacked": 1}, r"weight_prepacked is not supported; 0 is"),
        ({"K": K + 1}, r"operand of \[2, 40\]; the last axis needs 41 elements"),
        ({"N": N + 1}, r"operand 1 is uint8\[5, 3, 8\]; need uint8\[6, 3, 8\]"),
        ({"block_size": 0}, r"block_size 0; need 1 or more, and whole bytes"),
    ],
)
def test_what_does_not_fit_is_refused(attributes: dict[str, int], message: str):
    weights = {name: operands(4)[name] for name in ("matrix", "scales")}
    with pytest.raises(InputError, match=message):
        import_onnx(model(weights, list(weights), **attributes), AbeleContext())
