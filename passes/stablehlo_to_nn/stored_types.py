"""Functions of elements of types that tiles only store: they are computed in wider types.

Integers of 2 and 4 bits are computed in 8 bits, and wrap around as their own type does. Floats of 8
bits and fewer are computed in f32, and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerType, Signedness, f32
from xdsl.ir import Attribute, SSAValue

from ...dialects import nn
from ...dialects.dtypes import STORED
from .conversion import Lower, ToNn

BITS = 8
"""The bits of the integers in which narrower ones are computed."""


def computed_wide(lower: Lower) -> Lower:
    """A function of elements that also takes elements of types that are only stored."""

    def lower_wide(op: Any, new: ToNn) -> Sequence[SSAValue]:
        given = {each: new.value(each) for each in op.operands}
        if not any(nn.element_of(each) in STORED for each in given.values()):
            return lower(op, new)
        new.values.update({each: _widened(new, value) for each, value in given.items()})
        found = lower(op, new)
        new.values.update(given)
        pairs = zip(found, op.results, strict=True)
        return [_narrowed(new, value, nn.element_of(result)) for value, result in pairs]

    return lower_wide


def _widened(new: ToNn, value: SSAValue) -> SSAValue:
    element = nn.element_of(value)
    return new.cast(value, _wide(element)) if element in STORED else value


def _wide(element: Attribute) -> Attribute:
    if not isinstance(element, IntegerType):
        return f32
    unsigned = element.signedness.data == Signedness.UNSIGNED
    return IntegerType(BITS, Signedness.UNSIGNED if unsigned else Signedness.SIGNLESS)


def _narrowed(new: ToNn, value: SSAValue, element: Attribute) -> SSAValue:
    """A value in an element type; whole numbers wrap around."""
    if isinstance(element, IntegerType) and element in STORED:
        # The bits that the type lacks move out; copies of its sign, or zeros, move in.
        left = new.number(BITS - element.width.data, value)
        value = new.add(nn.ShiftRightOp(new.add(nn.ShiftLeftOp(value, left)), left))
    return new.cast(value, element)
