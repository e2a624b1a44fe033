"""Counts of the bits of integers, by operations of nn."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from ...ir.support.number_kinds import bit_width
from ..dtypes import numpy_dtype
from .base import PureTensorOp, element_of
from .elementwise import (
    AddOp,
    BitwiseAndOp,
    BitwiseNotOp,
    BitwiseOrOp,
    ShiftRightOp,
    SubOp,
)
from .state import ConstantOp

Add = Callable[[PureTensorOp | ConstantOp], SSAValue]
"""Adds an operation, and returns its result."""

Number = Callable[[int, SSAValue], SSAValue]
"""Returns a constant without axes, of the element type of a value."""


def ones_counted(value: SSAValue, add: Add, number: Number) -> SSAValue:
    """The number of bits that are set in each integer without a sign, of 8 bits or more.

    Neighbouring bits are added, then neighbouring sums of two bits, and so on.
    """
    width, step = _width(value), 1
    while step < width:
        # Every other group of `step` bits.
        mask = number(sum(((1 << step) - 1) << at for at in range(0, width, 2 * step)), value)
        lower = add(BitwiseAndOp(value, mask))
        upper = add(BitwiseAndOp(add(ShiftRightOp(value, number(step, value))), mask))
        value, step = add(AddOp(lower, upper)), 2 * step
    return value


def leading_zeros(value: SSAValue, add: Add, number: Number) -> SSAValue:
    """The number of bits above the highest one that is set, of integers as above; all for 0."""
    width, step = _width(value), 1
    # Every bit below the highest that is set becomes set.
    while step < width:
        value = add(BitwiseOrOp(value, add(ShiftRightOp(value, number(step, value)))))
        step *= 2
    return ones_counted(add(BitwiseNotOp(value)), add, number)


def trailing_zeros(value: SSAValue, add: Add, number: Number) -> SSAValue:
    """The number of bits below the lowest one that is set, of integers as above; all for 0."""
    less = add(SubOp(value, number(1, value)))
    return ones_counted(add(BitwiseAndOp(less, add(BitwiseNotOp(value)))), add, number)


def _width(value: SSAValue) -> int:
    return bit_width(numpy_dtype(element_of(value)))
