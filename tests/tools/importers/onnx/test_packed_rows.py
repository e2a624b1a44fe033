"""Rows of tables of integers of few bits are looked up packed, and are those of onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.passes.eliminate_dead import EliminateDead
from abele.tools.driver.compile import compile_model
from abele.tools.importers import import_onnx

ROWS, LENGTH, SIZE = 7, 40, 16
"""Rows, elements of a row, and elements of a block: the last of three blocks is not full."""

BLOCKS = -(-LENGTH // SIZE)
INDICES = np.array([[3, 0, 6], [-1, 3, 2]])


def table(kind: str, shape: tuple[int, ...], seed: int = 0) -> onnx.TensorProto:
    """Seeded integers of a type of ONNX."""
    least, most = {"INT4": (-8, 7), "UINT4": (0, 15), "UINT8": (0, 255)}[kind]
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind))
    drawn = np.random.default_rng(seed).integers(least, most + 1, shape).astype(dtype)
    return numpy_helper.from_array(drawn, "zeros" if seed else "table")


def scales(dtype: Any, *shape: int) -> onnx.TensorProto:
    drawn = np.random.default_rng(3).standard_normal(shape).astype(dtype)
    return numpy_helper.from_array(drawn, "scales")


def graph(nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto]) -> onnx.ModelProto:
    kind = weights[1].data_type
    made = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("i", TensorProto.INT64, INDICES.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        weights,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=10)


def gathered(weights: list[onnx.TensorProto], **attributes: int) -> onnx.ModelProto:
    """A model of GatherBlockQuantized."""
    names = ["table", "i", *(each.name for each in weights[1:])]
    node = helper.make_node(
        *("GatherBlockQuantized", names, ["y"], "node"),
        domain="com.microsoft",
        **{"block_size": SIZE, **attributes},
    )
    return graph([node], weights)


def module_of(proto: onnx.ModelProto) -> ModuleOp:
    module = import_onnx(proto, AbeleContext())
    EliminateDead().apply(AbeleContext(), module)
    return module


def by_both(proto: onnx.ModelProto) -> tuple[np.ndarray, np.ndarray]:
    """The rows that abele finds, and those of onnxruntime."""
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"i": INDICES})
    found = run_reference(module_of(proto), {"i": INDICES}).outputs["y"]
    return found, wanted


def largest(proto: onnx.ModelProto) -> int:
    """The bytes of the largest weight or constant of a program."""
    sizes = {
        np.prod(nn.shape_of(value)) * nn.element_of(value).size
        for op in module_of(proto).walk()
        if isinstance(op, nn.LoadOp | nn.ConstantOp)
        for value in op.results
    }
    return max(sizes)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize(("kind", "bits"), [("INT4", 4), ("UINT4", 4), ("UINT8", 4), ("UINT8", 8)])
def test_rows_are_those_of_onnxruntime(kind: str, bits: int, has_zeros: bool, dtype: Any):
    packs = 8 // bits if kind == "UINT8" else 1
    weights = [table(kind, (ROWS, LENGTH // packs)), scales(dtype, ROWS, BLOCKS)]
    if has_zeros:
        weights.append(table(kind, (ROWS, -(-BLOCKS // packs)), 1))
    proto = gathered(weights, bits=bits)
    found, wanted = by_both(proto)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    assert largest(proto) == ROWS * BLOCKS * SIZE * bits // 8


@pytest.mark.parametrize(
    ("shape", "blocks", "attributes"),
    [
        ((ROWS, 32, 3), (ROWS, 2, 3), {"quantize_axis": 1}),
        ((32, ROWS), (2, ROWS), {"quantize_axis": 0, "gather_axis": 1}),
        ((ROWS, 3, 32), (ROWS, 3, 2), {"quantize_axis": 2}),
    ],
)
def test_blocks_and_rows_may_lie_along_other_axes(
    shape: tuple[int, ...], blocks: tuple[int, ...], attributes: dict[str, int]
):
    proto = gathered([table("INT4", shape), scales(np.float32, *blocks)], **attributes)
    np.testing.assert_array_equal(*by_both(proto))


@pytest.mark.parametrize(("kind", "zeros"), [("INT4", True), ("UINT4", False)])
def test_rows_of_integers_that_DequantizeLinear_reads_are_packed_too(kind: str, zeros: bool):
    weights = [table(kind, (ROWS, LENGTH)), scales(np.float32, ROWS, BLOCKS)]
    weights += [table(kind, (ROWS, BLOCKS), 1)] if zeros else []
    names = [each.name for each in weights]
    nodes = [
        helper.make_node("DequantizeLinear", names, ["f"], axis=1, block_size=SIZE),
        helper.make_node("Gather", ["f", "i"], ["y"]),
    ]
    proto = graph(nodes, weights)
    np.testing.assert_array_equal(*by_both(proto))
    assert largest(proto) == ROWS * BLOCKS * SIZE // 2


def test_rows_are_the_same_at_all_levels():
    proto = gathered([table("UINT8", (ROWS, LENGTH // 2)), scales(np.float32, ROWS, BLOCKS)])
    exe = compile_model(proto, "tiny:4", cache=False)
    wanted, _ = by_both(proto)
    for level in exe.levels:
        np.testing.assert_array_equal(exe.run({"i": INDICES}, at=level)["y"], wanted)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"bits": 3}, r"bits 3 is not supported; 2, 4, 8 are"),
        ({"gather_axis": 1}, r"gather_axis 1, quantize_axis 1, .*; need .* two axes"),
        ({"block_size": 0}, r"block_size 0; need .* 1 or more"),
        ({"block_size": 32}, r"scales of \[7, 3\]; need \[7, 2\]"),
    ],
)
def test_what_does_not_fit_is_refused(attributes: dict[str, int], message: str):
    weights = [table("UINT8", (ROWS, LENGTH // 2)), scales(np.float32, ROWS, BLOCKS)]
    with pytest.raises(InputError, match=message):
        import_onnx(gathered(weights, **attributes), AbeleContext())


def test_an_index_that_the_table_does_not_have_is_refused():
    weights = [table("UINT8", (ROWS, LENGTH // 2)), scales(np.float32, ROWS, BLOCKS)]
    proto = gathered(weights)
    proto.graph.initializer.append(numpy_helper.from_array(np.array([[ROWS]]), "i"))
    del proto.graph.input[:]
    with pytest.raises(InputError, match=r"index 7 of an axis of 7 elements"):
        import_onnx(proto, AbeleContext())
