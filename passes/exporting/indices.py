"""What is known of indices before a program runs."""

from __future__ import annotations

from xdsl.ir import OpResult, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import is_unsigned
from ..analysis.value_ranges import range_of


def are_from_front(value: SSAValue) -> bool:
    """Whether it is certain that no element of a tensor of indices is negative."""
    if is_unsigned(numpy_dtype(nn.element_of(value))):
        return True
    op = value.op if isinstance(value, OpResult) else None
    if isinstance(op, nn.ClipOp):
        return op.parameters[0] >= 0
    found = range_of(value)
    return found is not None and found[0] >= 0
