"""ONNX operators that return the position of the largest or smallest element along an axis.

Of equal elements, it is the first one, or the last one if the node says so. NaN counts as both the
largest and the smallest, as in NumPy: if there is a NaN, its index is the result.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ....dialects import nn
from .node import Importer, Node, Results


def _positions(node: Node, shape: tuple[int, ...], axis: int) -> SSAValue:
    """The index of each element along an axis, as i32."""
    count = node.counted(shape[axis], np.int32)
    count = count.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return node.add(nn.ConstantOp(node.graph.context.blobs.add(count)))


def _where(node: Node, value: SSAValue, axis: int, combiner: str, *, last: bool) -> SSAValue:
    """The index of the extreme element along an axis, as i32. The axis is kept with size 1."""
    shape = nn.shape_of(value)
    if shape[axis] == 0:
        raise node.unsupported(
            f"axis {axis} of shape {list(shape)}, which has no elements", "need one or more"
        )
    kind = f"arg{combiner}" + ("_last" if last else "")
    _, index = node.add_several(nn.SummarizeOp(value, kind, [axis], keep_dims=True))
    return index


def first_largest(node: Node, value: SSAValue, axis: int) -> SSAValue:
    """The index of the first largest element along an axis, as i32. The axis is kept with size
    1."""
    return _where(node, value, axis, "max", last=False)


def _arg(combiner: str) -> Importer:
    def importer(node: Node) -> Results:
        shape = node.shape(0)
        axis = node.axis(node.integer("axis", 0), len(shape))
        last = node.opset >= 12 and node.flag("select_last_index")
        index = node.cast(_where(node, node[0], axis, combiner, last=last), i64)
        if node.flag("keepdims", True):
            return index
        return node.reshape(index, [n for i, n in enumerate(shape) if i != axis])

    return importer


def hardmax(node: Node, value: SSAValue, axis: int) -> SSAValue:
    """1 at the first largest element along an axis, 0 elsewhere."""
    shape, element = nn.shape_of(value), nn.element_of(value)
    index = first_largest(node, value, axis)
    found = node.add(nn.EqualOp(_positions(node, shape, axis), index))
    return node.cast(found, element)


EXTREMES: dict[str, Importer] = {"ArgMax": _arg("max"), "ArgMin": _arg("min")}
