"""Arithmetic of integers and of bits as XLA does it, where nn does it otherwise or has no operation
for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import bit_width
from ..analysis.value_ranges import never_zero
from .conversion import ToNn

BYTE = 8
"""The bits of a byte."""


def dtype_of(value: SSAValue) -> np.dtype[Any]:
    """The dtype of a value's elements."""
    return numpy_dtype(nn.element_of(value))


def unsigned(bits: int) -> Attribute:
    """The unsigned integers of some bits."""
    return IntegerType(bits, Signedness.UNSIGNED)


def signed(bits: int) -> Attribute:
    """The signed integers of some bits."""
    return IntegerType(bits)


def divided(new: ToNn, a: SSAValue, b: SSAValue) -> SSAValue:
    """A quotient. Of integers it is rounded towards zero, and has all bits set where b is 0."""
    quotient = new.add(nn.DivOp(a, b))
    if dtype_of(a).kind not in "iu" or never_zero(b):
        return quotient
    is_zero = new.add(nn.EqualOp(b, new.number(0, b)))
    return new.select(is_zero, new.number(-1, a), quotient)


def remainder(new: ToNn, a: SSAValue, b: SSAValue) -> SSAValue:
    """A remainder with the sign of a. Of integers it is a where b is 0."""
    rest = new.add(nn.FmodOp(a, b))
    if dtype_of(a).kind not in "iu" or never_zero(b):
        return rest
    return new.select(new.add(nn.EqualOp(b, new.number(0, b))), a, rest)


def _width(value: SSAValue) -> int:
    """The bits of an element."""
    return bit_width(dtype_of(value))


def in_byte(new: ToNn, value: SSAValue) -> SSAValue:
    """Integers of fewer than 8 bits as the lowest bits of bytes."""
    held = new.bits(new.cast(value, signed(BYTE)), unsigned(BYTE))
    return new.add(nn.BitwiseAndOp(held, new.number((1 << _width(value)) - 1, held)))


def ones_counted(new: ToNn, value: SSAValue) -> SSAValue:
    """The number of bits of each integer that are set."""
    element, width = nn.element_of(value), _width(value)
    if width < BYTE:
        return new.cast(ones_counted(new, in_byte(new, value)), element)
    found = nn.ones_counted(new.bits(value, unsigned(width)), new.add, new.number)
    return new.bits(found, element)


def zeros_counted(new: ToNn, value: SSAValue) -> SSAValue:
    """The number of bits of each integer above the highest that is set; all if it is 0."""
    element, width = nn.element_of(value), _width(value)
    if width < BYTE:
        zeros = zeros_counted(new, in_byte(new, value))
        more = new.number(BYTE - width, zeros)
        return new.cast(new.add(nn.SubOp(zeros, more)), element)
    found = nn.leading_zeros(new.bits(value, unsigned(width)), new.add, new.number)
    return new.bits(found, element)


def bits_as(new: ToNn, value: SSAValue, element: Attribute) -> SSAValue:
    """The bits of a value as elements of another type.

    Elements of a narrower type have one more axis, the last one, and the lowest bits come first.
    The elements along the last axis become one of a wider type.
    """
    shape, before, after = nn.shape_of(value), _width(value), bit_width(numpy_dtype(element))
    if before == after:
        return new.bits(value, element)
    if before > after:
        whole = new.reshape(new.bits(value, unsigned(before)), (*shape, 1))
        places = new.constant(np.arange(0, before, after, dtype=f"u{before // 8}"))
        parts = new.cast(new.add(nn.ShiftRightOp(whole, places)), unsigned(after))
        return new.bits(parts, element)
    parts = new.cast(new.bits(value, unsigned(before)), unsigned(after))
    places = new.constant(np.arange(0, after, before, dtype=f"u{after // 8}"))
    placed = new.add(nn.ShiftLeftOp(parts, places))
    return new.bits(new.add(nn.ReduceOp(placed, "sum", [len(shape) - 1])), element)
