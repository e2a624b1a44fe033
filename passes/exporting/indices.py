"""What is known of indices before a program runs."""

from __future__ import annotations

from xdsl.ir import OpResult, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import is_unsigned

MOVES = (
    *(nn.CastOp, nn.ReshapeOp, nn.ExpandOp, nn.TransposeOp, nn.SliceOp),
    *(nn.ConcatOp, nn.GatherOp),
)
"""The operations whose elements are those of their first operands."""


def are_from_front(value: SSAValue) -> bool:
    """Whether all elements of a tensor of indices are 0 or more for certain."""
    if is_unsigned(numpy_dtype(nn.element_of(value))):
        return True
    if not isinstance(value, OpResult):
        return False
    op = value.op
    if isinstance(op, nn.ConstantOp):
        array = op.value.array
        return bool((array >= 0).all())
    if isinstance(op, nn.ClipOp):
        return op.parameters[0] >= 0
    if isinstance(op, nn.MaxOp):
        return any(map(are_from_front, op.operands))
    if isinstance(op, nn.MinOp):
        return all(map(are_from_front, op.operands))
    if isinstance(op, nn.IotaOp):
        return op.limits[0] >= 0
    if isinstance(op, MOVES):
        given = op.parts if isinstance(op, nn.ConcatOp) else op.operands[:1]
        return all(map(are_from_front, given))
    return False
