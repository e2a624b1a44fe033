"""The least and the largest number that a value of integers can be, where that is easy to see.

The index of a row that a loop reads is its iteration number, more often than not, and so needs no
limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from operator import add, mul, sub

from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import is_whole, whole_limits

Range = tuple[int, int]

DEEPEST = 8
"""The most operations that are looked through."""

_SAME = (nn.ReshapeOp, nn.ExpandOp, nn.SliceOp, nn.TransposeOp, nn.GatherOp, nn.CastOp)
"""Operations whose numbers are numbers of their first operand."""

_OF_TWO: Mapping[type[Operation], Callable[[int, int], int]] = {
    nn.AddOp: add,
    nn.SubOp: sub,
    nn.MulOp: mul,
    nn.MaxOp: max,
    nn.MinOp: min,
}
"""Functions of two numbers that are extreme at the ends of ranges."""


def range_of(
    value: SSAValue, known: Mapping[SSAValue, Range], deepest: int = DEEPEST
) -> Range | None:
    """The least and the largest number of a value of nn; None if that is not known.

    Args:
        known: the ranges of values that are no results of operations.
        deepest: the most operations that are looked through.
    """
    if value in known:
        return known[value]
    dtype = numpy_dtype(nn.element_of(value))
    if not deepest or not isinstance(value, OpResult) or not is_whole(dtype):
        return None
    op = value.op
    if isinstance(op, nn.ConstantOp):
        array = op.value.array
        return (int(array.min()), int(array.max())) if array.size else None
    if not isinstance(op, (*_SAME, *_OF_TWO)):
        return None
    count = 1 if isinstance(op, _SAME) else 2
    found = [range_of(each, known, deepest - 1) for each in list(op.operands)[:count]]
    ends = [each for each in found if each is not None]
    if len(ends) < count:
        return None
    function = _OF_TWO.get(type(op))
    numbers = ends[0] if function is None else [function(*pair) for pair in product(*ends)]
    limits = whole_limits(dtype)
    # What would wrap is not known.
    inside = limits.min <= min(numbers) and max(numbers) <= limits.max
    return (min(numbers), max(numbers)) if inside else None
