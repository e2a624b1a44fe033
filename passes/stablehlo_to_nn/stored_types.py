"""Functions of elements of types that tiles only store: they are computed in wider types.

Integers of 2 and 4 bits are computed in 8 bits, and wrap around as their own type does. Floats of 8
bits and fewer are computed in f32, and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from ...dialects import nn
from ...dialects.dtypes import STORED, element_type, numpy_dtype
from ...ir.support.number_kinds import is_unsigned, is_whole
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
        return [narrowed(new, value, nn.element_of(result)) for value, result in pairs]

    return lower_wide


def _widened(new: ToNn, value: SSAValue) -> SSAValue:
    element = nn.element_of(value)
    return new.cast(value, _wide(element)) if element in STORED else value


def _wide(element: Attribute) -> Attribute:
    dtype = numpy_dtype(element)
    if not is_whole(dtype):
        return f32
    return element_type(np.dtype(np.uint8 if is_unsigned(dtype) else np.int8))


def narrowed(new: ToNn, value: SSAValue, element: Attribute) -> SSAValue:
    """A value in an element type; whole numbers wrap around."""
    dtype = numpy_dtype(element)
    if element in STORED and is_whole(dtype):
        # The bits that the type lacks move out; copies of its sign, or zeros, move in.
        left = new.number(BITS - ml_dtypes.iinfo(dtype).bits, value)
        value = new.add(nn.ShiftRightOp(new.add(nn.ShiftLeftOp(value, left)), left))
    return new.cast(value, element)
