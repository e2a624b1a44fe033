"""The least and the largest number that a value of integers can be, where that is easy to see.

The index of a row that a loop reads is often its iteration number, and so needs no limits.
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
"""The most operations, one behind the other, that are looked through."""

_FIRST = (nn.ReshapeOp, nn.ExpandOp, nn.SliceOp, nn.TransposeOp, nn.GatherOp, nn.CastOp)
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
    value: SSAValue, known: Mapping[SSAValue, Range] = MappingProxyType({})
) -> Range | None:
    """The least and the largest number of a value of nn; None if that is not known.

    Args:
        known: the ranges of values that are no results of operations.
    """
    return _range(value, DEEPEST, known, {})


def _range(
    value: SSAValue,
    deepest: int,
    known: Mapping[SSAValue, Range],
    seen: dict[tuple[SSAValue, int], Range | None],
) -> Range | None:
    """The range of a value.

    Args:
        deepest: the most operations that are looked through.
        seen: the ranges found so far, also by how deep they were looked for. Without them, the
            time would double with each operation that reads a value twice.
    """
    if value in known:
        return known[value]
    if not deepest:
        return None
    if (value, deepest) not in seen:
        seen[value, deepest] = _range_of_result(
            value, lambda each: _range(each, deepest - 1, known, seen)
        )
    return seen[value, deepest]


def _range_of_result(value: SSAValue, of: Callable[[SSAValue], Range | None]) -> Range | None:
    """The range of the result of an operation, from the ranges of what it reads."""
    dtype = numpy_dtype(nn.element_of(value))
    if not isinstance(value, OpResult) or not is_whole(dtype):
        return None
    op = value.op
    if isinstance(op, nn.ConstantOp):
        array = op.value.array
        return (int(array.min()), int(array.max())) if array.size else None
    if isinstance(op, nn.IotaOp):
        return op.limits
    function = _OF_TWO.get(type(op))
    if function is None and not isinstance(op, (*_FIRST, nn.ConcatOp)):
        return None
    limits = whole_limits(dtype)
    ends: list[Range] = []
    for each in op.operands[:1] if isinstance(op, _FIRST) else op.operands:
        found = of(each)
        if found is None and isinstance(op, nn.MaxOp | nn.MinOp):
            found = limits.min, limits.max
        if found is None:
            return None
        ends.append(found)
    if function is None:
        numbers = [n for pair in ends for n in pair]
    else:
        numbers = [function(*pair) for pair in product(*ends)]
    # What would wrap is not known.
    inside = limits.min <= min(numbers) and max(numbers) <= limits.max
    return (min(numbers), max(numbers)) if inside else None


def never_zero(value: SSAValue) -> bool:
    """Whether it is certain that no element of a tensor of whole numbers is 0.

    Its range may say so. Otherwise it may be what guards a division: a choice of a number, or of
    another one where that number is 0.
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
