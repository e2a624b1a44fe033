"""The least and the largest number that a value of integers can be, where that is easy to see.

The index of a row that a loop reads is its iteration number, more often than not, and so needs no
limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from operator import add, mul, sub
from types import MappingProxyType

from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import is_whole, whole_limits

Range = tuple[int, int]

DEEPEST = 8
"""The most operations that are looked through."""

_SAME = (nn.ReshapeOp, nn.ExpandOp, nn.SliceOp, nn.TransposeOp, nn.GatherOp, nn.CastOp)
"""Operations whose numbers are numbers of their first operand."""

_ALL = (nn.ConcatOp,)
"""Operations whose numbers are numbers of any of their operands."""

_OF_TWO: Mapping[type[Operation], Callable[[int, int], int]] = {
    nn.AddOp: add,
    nn.SubOp: sub,
    nn.MulOp: mul,
    nn.MaxOp: max,
    nn.MinOp: min,
}
"""Functions of two numbers that are extreme at the ends of ranges."""


def range_of(
    value: SSAValue, known: Mapping[SSAValue, Range] = MappingProxyType({}), deepest: int = DEEPEST
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
    limits = whole_limits(dtype)
    if isinstance(op, nn.IotaOp):
        return op.limits
    if not isinstance(op, (*_SAME, *_OF_TWO, *_ALL)):
        return None
    given = list(op.operands) if isinstance(op, _ALL) else list(op.operands)[: _read_by(op)]
    ends: list[Range] = []
    for each in given:
        found = range_of(each, known, deepest - 1)
        if found is None and isinstance(op, nn.MaxOp | nn.MinOp):
            found = limits.min, limits.max
        if found is None:
            return None
        ends.append(found)
    function = _OF_TWO.get(type(op))
    numbers = [n for pair in ends for n in pair]
    if function is not None:
        numbers = [function(*pair) for pair in product(*ends)]
    # What would wrap is not known.
    inside = limits.min <= min(numbers) and max(numbers) <= limits.max
    return (min(numbers), max(numbers)) if inside else None


def _read_by(op: Operation) -> int:
    """How many operands' numbers an operation computes with."""
    return 1 if isinstance(op, _SAME) else 2


def never_zero(value: SSAValue) -> bool:
    """Whether no element of a tensor of whole numbers is 0 for certain.

    So is a number, or another one where it is 0: the guard that a division by 0 needs.
    """
    if not is_whole(numpy_dtype(nn.element_of(value))):
        return False
    found = range_of(value)
    if found is not None and (found[0] > 0 or found[1] < 0):
        return True
    op = value.op if isinstance(value, OpResult) else None
    if not isinstance(op, nn.SelectOp):
        return False
    condition, instead, number = op.operands
    test = condition.op if isinstance(condition, OpResult) else None
    if not isinstance(test, nn.EqualOp) or test.operands[0] != number:
        return False
    return range_of(test.operands[1]) == (0, 0) and never_zero(instead)
