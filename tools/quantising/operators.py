"""The operators of ONNX that quantisation knows: products, and what tensors pass through unchanged.

A product reads quantised tensors. So does every other reader of such a tensor, except nodes that
stay in float. An operator that only selects or moves elements gives numbers that were already
rounded, so the tensor is quantised before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx


@dataclass(frozen=True)
class Product:
    """An operator that adds up products of its first two operands.

    Attributes:
        weight_axis: returns the axis of a weight of some rank along which the result's channels
            lie, so that each may have a scale; None if there is none.
        channels: returns how often the scales along that axis are repeated in the result.
        adds: whether the third operand is added to the sums as it is.
    """

    weight_axis: Callable[[onnx.NodeProto, int], int | None]
    repeats: Callable[[onnx.NodeProto], int] = lambda node: 1
    adds: Callable[[onnx.NodeProto], bool] = lambda node: True


def number(node: onnx.NodeProto, name: str, default: float) -> float:
    """A numeric attribute of a node."""
    for each in node.attribute:
        if each.name == name:
            return each.i if each.type == onnx.AttributeProto.INT else each.f
    return default


def _first(node: onnx.NodeProto, rank: int) -> int | None:
    return 0


def _second(node: onnx.NodeProto, rank: int) -> int | None:
    return 1


def _columns(node: onnx.NodeProto, rank: int) -> int | None:
    # A batch of matrices has no axis that all of them share with the result alone.
    return 1 if rank == 2 else None


def _gemm_columns(node: onnx.NodeProto, rank: int) -> int | None:
    return 0 if number(node, "transB", 0) else 1


def _groups(node: onnx.NodeProto) -> int:
    return int(number(node, "group", 1))


def _adds_as_it_is(node: onnx.NodeProto) -> bool:
    return number(node, "alpha", 1.0) == number(node, "beta", 1.0) == 1.0


PRODUCTS: dict[str, Product] = {
    "Conv": Product(_first),
    "ConvTranspose": Product(_second, _groups),
    "MatMul": Product(_columns),
    "Gemm": Product(_gemm_columns, adds=_adds_as_it_is),
}
"""The operators whose operands are quantised."""

CARRIERS = frozenset(
    {
        "DepthToSpace",
        "Flatten",
        "Identity",
        "MaxPool",
        "Reshape",
        "Slice",
        "SpaceToDepth",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
    }
)
"""The operators whose result has only elements of their first operand."""

QUANTISED = ("Quantize", "QLinear", "Integer", "QGemm", "QAttention")
"""Parts of the names of operators on quantised tensors."""
