"""ONNX operators along an axis whose results depend on all of its elements: scans and sorts."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ....dialects import nn
from ..bounded import scalar_length
from ..padding import sized, sizes_of
from .node import Importer, Node, Results


def _scan(combiner: str) -> Importer:
    def importer(node: Node) -> Results:
        axis = node.axis(int(node.array_scalar(1, "axis")), len(node.shape(0)))
        exclusive, reverse = node.flag("exclusive"), node.flag("reverse")
        return node.add(nn.ScanOp(node[0], combiner, axis, exclusive=exclusive, reverse=reverse))

    return importer


AXIS_OF_TOP_K = 11
"""The first opset in which TopK can also find the smallest elements."""

OPERAND_OF_TOP_K = 10
"""The first opset in which the K of TopK is an operand."""


def _top_k(node: Node) -> Results:
    """The largest or smallest elements, always in order, even if the node does not require it."""
    shape = node.shape(0)
    axis = node.axis(node.integer("axis", -1), len(shape))
    is_operand = node.opset >= OPERAND_OF_TOP_K
    known = node.graph.known(node.value(1)) is not None if is_operand else True
    largest = node.opset < AXIS_OF_TOP_K or node.flag("largest", True)
    order = node.add(nn.SortIndicesOp(node[0], axis, descending=largest))
    if known:
        k = int(node.array_scalar(1, "K")) if is_operand else node.integer("k")
        if not 0 <= k <= shape[axis]:
            raise node.bad(f"K {k} of an axis of {shape[axis]} elements")
        order = leading(node, order, axis, k)
    found = [node.add(nn.GatherAlongOp(node[0], order, axis)), node.cast(order, i64)]
    if not known:
        count = scalar_length(node, node[1], shape[axis])
        found = [sized(node, each, {**sizes_of(node, each), axis: count}) for each in found]
    return found


def leading(node: Node, value: SSAValue, axis: int, count: int) -> SSAValue:
    """The first elements along an axis."""
    shape = list(nn.shape_of(value))
    if count == shape[axis]:
        return value
    sizes = [count if i == axis else n for i, n in enumerate(shape)]
    return node.add(nn.SliceOp(value, [0] * len(shape), [1] * len(shape), sizes))


SEQUENCES: dict[str, Importer] = {
    "CumSum": _scan("sum"),
    "CumProd": _scan("prod"),
    "TopK": _top_k,
}
