"""Sizes that depend on values: a tensor in its largest shape, and the number of elements that
exist.

The shapes of nn are static. A result such as that of NonZero has the largest shape that it may have
and a `Size`: the number of elements that exist along one axis, after which padding follows. No
operation may let the padding change a result. The host removes the padding from the outputs of the
model.
"""

from __future__ import annotations

from math import prod
from typing import cast

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, OpResult, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.geometry.blocks import fill_of
from .building import NodeBuilder, Size
from .errors import NotConstantError


def sized(node: NodeBuilder, value: SSAValue, axis: int, count: SSAValue) -> SSAValue:
    """A value of which only the first `count` elements along an axis exist."""
    node.program.sizes[value] = Size(axis, count)
    return value


def positions(node: NodeBuilder, value: SSAValue, axis: int) -> SSAValue:
    """The index of each element along an axis of a value, as i32, with size 1 on other axes."""
    shape = nn.shape_of(value)
    along = [n if i == axis else 1 for i, n in enumerate(shape)]
    return node.emitted(node.counted(shape[axis], np.int32).reshape(along))


def without_padding(node: NodeBuilder, value: SSAValue, size: Size, fill: float) -> SSAValue:
    """A value whose padding is set to a number: the identity of the combiner that reads it."""
    dtype = numpy_dtype(nn.element_of(value))
    number = node.add(nn.ConstantOp(node.program.context.blobs.add(np.array(fill_of(fill, dtype)))))
    exists = node.add(nn.LessOp(positions(node, value, size.axis), size.count))
    return node.add(nn.SelectOp(exists, value, number))


def ordered_first(node: NodeBuilder, wanted: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The indices of the true elements of a vector, in order, as i32, and their number.

    The remaining indices are 0. Each true element goes to the place given by a running sum; the
    others go to one place after all of them.
    """
    (n,) = nn.shape_of(wanted)
    flags = node.cast(wanted, i32)
    count = node.add(nn.ReduceOp(flags, "sum", [0]))
    place = node.add(nn.ScanOp(flags, "sum", 0, exclusive=True))
    behind = node.constant(n, place)
    place = node.add(nn.SelectOp(wanted, place, behind))
    index = node.add(nn.SelectOp(wanted, positions(node, wanted, 0), node.constant(0, place)))
    spread = node.add(nn.ScatterOp(index, place, "sum", 0, n + 1))
    return node.add(nn.SliceOp(spread, [0], [1], [n])), count


def largest(node: NodeBuilder, value: SSAValue) -> int | None:
    """An upper bound of the elements of an integer value; None if none is known.

    It follows sizes through the few operations that read them: Shape, Size and movements.
    """
    known = node.program.known(value)
    if known is not None:
        return int(known.max(initial=0)) if known.dtype.kind in "iu" else None
    for each, size in node.program.sizes.items():
        if size.count is value:
            return nn.shape_of(each)[size.axis]
    if not isinstance(value, OpResult):
        return None
    op = value.op
    if isinstance(op, nn.ReshapeOp | nn.CastOp | nn.SliceOp | nn.GatherOp | nn.ConcatOp):
        read = op.operands[:1] if isinstance(op, nn.GatherOp) else op.operands
        found = [largest(node, each) for each in read]
        return None if None in found else max(cast("list[int]", found))
    return None


def size_depends(node: NodeBuilder, operand: int, name: str, size: Size) -> NotConstantError:
    """The error for a node that cannot read an operand whose size depends on values.

    Args:
        name: of the operand.
    """
    what = f"the size of axis {size.axis} of operand {operand} {name!r}"
    return node.not_constant(what, [size.count])


def as_vector(node: NodeBuilder, value: SSAValue) -> SSAValue:
    """All elements of a value along one axis."""
    return node.reshape(value, (prod(nn.shape_of(value)),))


def counted(node: NodeBuilder, count: SSAValue, element: Attribute) -> SSAValue:
    """A number of elements as a vector of one element."""
    return node.reshape(node.cast(count, element), (1,))
