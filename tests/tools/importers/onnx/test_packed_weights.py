"""Weights of few bits, dequantised in blocks, are multiplied packed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.passes.eliminate_dead import EliminateDead
from abele.tools.importers import import_onnx
from abele.tools.testing.onnx_graphs.runtimes import by_onnxruntime

K, N = 44, 6
KINDS = {
    "int4": (TensorProto.INT4, ml_dtypes.int4),
    "uint4": (TensorProto.UINT4, ml_dtypes.uint4),
    "int8": (TensorProto.INT8, np.int8),
}


def model(
    kind: str, scales: tuple[int, ...], *, way: str = "MatMul", zeros: bool = True, **options: Any
) -> onnx.ModelProto:
    """x [2, K] by dequantised integers: [K, N], or [N, K] if they are transposed afterwards."""
    code, dtype = KINDS[kind]
    rng = np.random.default_rng(0)
    shape = (K, N) if way in ("MatMul", "Gemm") else (N, K)
    low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
    integers = rng.integers(low, high + 1, shape).astype(dtype)
    zero = rng.integers(low, high + 1, scales).astype(dtype)
    scale = rng.random(scales).astype(np.float32) + 0.5
    weights = [
        helper.make_tensor("w", code, shape, integers.astype(np.int8).reshape(-1).tolist()),
        helper.make_tensor("s", TensorProto.FLOAT, scales, scale.reshape(-1).tolist()),
    ]
    if zeros:
        weights.append(helper.make_tensor("z", code, scales, zero.astype(int).reshape(-1).tolist()))
    names = ["w", "s", "z"][: len(weights)]
    nodes = [helper.make_node("DequantizeLinear", names, ["f"], "dequantise", **options)]
    match way:
        case "Transpose":
            nodes.append(helper.make_node("Transpose", ["f"], ["t"], "turn", perm=[1, 0]))
            nodes.append(helper.make_node("MatMul", ["x", "t"], ["y"], "product"))
        case "Gemm transB":
            nodes.append(helper.make_node("Gemm", ["x", "f"], ["y"], "product", transB=1))
        case _:
            nodes.append(helper.make_node(way, ["x", "f"], ["y"], "product"))
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, K))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, N))],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def imported(proto: onnx.ModelProto) -> Any:
    module = import_onnx(proto, AbeleContext())
    EliminateDead().apply(AbeleContext(), module)
    return module


@pytest.mark.parametrize(
    ("kind", "scales", "options"),
    [
        ("int4", (3, N), {"block_size": 16, "axis": 0}),
        ("uint4", (3, N), {"block_size": 16, "axis": 0}),
        ("int8", (3, N), {"block_size": 16, "axis": 0}),
        ("int4", (3, N), {"block_size": 16, "axis": 0, "zeros": False}),
        ("uint4", (N, 3), {"block_size": 16, "axis": 1, "way": "Transpose"}),
        ("uint4", (N, 3), {"block_size": 16, "axis": 1, "way": "Gemm transB"}),
        ("int4", (3, N), {"block_size": 16, "axis": 0, "way": "Gemm"}),
        ("int4", (N,), {"axis": 1}),
        ("uint4", (N,), {"axis": 0, "way": "Transpose"}),
        ("uint4", (), {}),
    ],
)
def test_integers_in_blocks_are_multiplied_packed(
    kind: str, scales: tuple[int, ...], options: dict[str, Any]
):
    proto = model(kind, scales, **options)
    module = imported(proto)
    (product,) = [op for op in module.walk() if isinstance(op, nn.PackedMatMulOp)]
    # Nothing else has as many elements as the matrix.
    held = [value for op in module.walk() if op is not product for value in op.results]
    bits = 8 if kind == "int8" else 4
    assert all(np.prod(nn.shape_of(each)) < K * N or bits == 8 for each in held)
    x = np.random.default_rng(1).standard_normal((2, K)).astype(np.float32)
    found = run_reference(module, {"x": x}).outputs["y"]
    np.testing.assert_allclose(found, by_onnxruntime(proto, {"x": x})["y"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "scales", "options"),
    [
        # Blocks along the other axis, a scale for each term, and rows and columns of 8 bits.
        ("int4", (K, 2), {"block_size": 3, "axis": 1}),
        ("int4", (K,), {"axis": 0}),
        ("int8", (N,), {"axis": 1}),
    ],
)
def test_other_integers_are_multiplied_as_floats(
    kind: str, scales: tuple[int, ...], options: dict[str, Any]
):
    proto = model(kind, scales, **options)
    module = imported(proto)
    assert not any(isinstance(op, nn.PackedMatMulOp) for op in module.walk())
    x = np.random.default_rng(1).standard_normal((2, K)).astype(np.float32)
    found = run_reference(module, {"x": x}).outputs["y"]
    np.testing.assert_allclose(found, by_onnxruntime(proto, {"x": x})["y"], rtol=1e-4, atol=1e-4)


def test_products_that_read_one_weight_share_its_packed_integers():
    proto = model("int4", (N, 3), way="Transpose", block_size=16, axis=1)
    proto.graph.node.append(helper.make_node("Gemm", ["x", "f"], ["other"], transB=1))
    proto.graph.output.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, (2, N)))
    products = [op for op in imported(proto).walk() if isinstance(op, nn.PackedMatMulOp)]
    assert len(products) == 2
    assert len({op.packed for op in products}) == 1
