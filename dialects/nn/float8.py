"""Tensors of 8-bit floats with a scale: what writes their elements, and what reads them.

An element q of such a tensor stands for q * 2^scale. The scale is no part of the type, because it
decides no byte. It lives beside the tensor, as a number of the operations that write and read it:

- `quartered` writes: it divides by 2^scale, limits, and casts;
- `made_wide` reads: it casts, and multiplies by 2^scale;
- `kept_narrow` writes every format of 8 or 16 bits, for values that wait;
- a product of two such tensors has the sum of both scales as its `scale`: see `ContractionOp`.

A scale that only a run knows is a state or any other value, by which ordinary operations multiply
before and after (`nn.mul`).

    %1 = nn.scale %x by 32.0 : (tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.clip %1 to -240.0, 240.0 : (tensor<4xf32>) -> tensor<4xf32>
    %q = nn.cast %2 : (tensor<4xf32>) -> tensor<4xf8E4M3FNUZ>

The cast rounds to nearest, once, from float32, so no double rounding needs a sticky bit. The pass
round-stores lets it round stochastically. Later passes compute these operations in one codelet,
together with what makes or reads the values.
"""

from __future__ import annotations

from math import frexp

import numpy as np
from xdsl.dialects.builtin import f32, i8
from xdsl.ir import Attribute, Operation, SSAValue

from ...ir.support.number_formats import SCALES, NumberFormat, Overflow, format_of
from ..dtypes import QUARTERS, element_type, numpy_dtype
from .base import element_of
from .elementwise import CastOp, ClipOp, FromCodeOp, ScaleOp, ToCodeOp, ToNearestOp


def check_scale(scale: int) -> None:
    """Raise ValueError for an exponent that no tensor of 8-bit floats can have."""
    if scale not in SCALES:
        raise ValueError(f"scale {scale}; need {SCALES.start} to {SCALES.stop - 1}")


def quarter_format(element: Attribute) -> NumberFormat:
    """The format of an 8-bit float that products take. Raises ValueError for other types."""
    if element not in QUARTERS:
        raise ValueError(f"element type {element}; need {' or '.join(map(str, QUARTERS))}")
    return format_of(numpy_dtype(element))


def quartered(
    value: SSAValue, element: Attribute, scale: int, *, saturates: bool = True
) -> list[Operation]:
    """The operations, in order, that turn floats into 8-bit floats; the last one has the result.

    Raises ValueError for a type or a scale that does not exist.

    Args:
        scale: its exponent. Values up to 2^scale times the largest number of the type are kept.
        saturates: whether larger ones become the largest number; otherwise they become NaN.
    """
    largest = quarter_format(element).largest
    made = _divided(value, scale)
    if saturates:
        made.append(ClipOp(_last(made, value), -largest, largest))
    made.append(CastOp(_last(made, value), element))
    return made


def _divided(value: SSAValue, scale: int) -> list[Operation]:
    """The operations, in order, that divide floats by 2^scale in float32; [] if there are none."""
    check_scale(scale)
    made: list[Operation] = []
    if element_of(value) != f32:
        made.append(CastOp(value, f32))
    if scale:
        made.append(ScaleOp(_last(made, value), 2.0**-scale))
    return made


def kept_narrow(value: SSAValue, format_: NumberFormat, scale: int) -> list[Operation]:
    """The operations, in order, that turn floats into numbers of a format of 8 or 16 bits.

    The last one has the result. Too large values become the largest number. Where no type has the
    numbers of the format, their codes are kept as i8; NaN then becomes 0.
    Raises ValueError for a scale that does not exist.

    Args:
        scale: its exponent.
    """
    dtype = format_.numpy_dtype
    made = _divided(value, scale)
    if dtype is not None:
        made.append(ClipOp(_last(made, value), -format_.largest, format_.largest))
        made.append(CastOp(_last(made, value), element_type(dtype)))
        return made
    assert format_.bits == 8
    made.append(ToNearestOp(_last(made, value), format_, Overflow.CLIP))
    made.append(ToCodeOp(_last(made, value), format_))
    made.append(CastOp(_last(made, value), i8))
    return made


def made_wide(
    value: SSAValue, format_: NumberFormat, element: Attribute, scale: int
) -> list[Operation]:
    """The operations, in order, that turn what `kept_narrow` makes into floats of a type.

    The last one has the result.

    Args:
        element: the type of the result.
        scale: the exponent of that of the narrow values.
    """
    made: list[Operation] = [CastOp(value, f32)]
    if format_.numpy_dtype is None:
        made.append(FromCodeOp(_last(made, value), format_))
    return [*made, *_multiplied(_last(made, value), element, scale)]


def _multiplied(value: SSAValue, element: Attribute, scale: int) -> list[Operation]:
    """The operations, in order, that multiply floats of float32 by 2^scale, as a type."""
    check_scale(scale)
    made: list[Operation] = []
    if scale:
        made.append(ScaleOp(value, 2.0**scale))
    if element != f32:
        made.append(CastOp(_last(made, value), element))
    return made


def _last(made: list[Operation], value: SSAValue) -> SSAValue:
    return made[-1].results[0] if made else value


def least_scale(largest: float, element: Attribute) -> int:
    """The smallest exponent of a scale that keeps numbers up to the largest one.

    Raises ValueError if the largest number is not finite, or needs a scale beyond the last one.
    """
    if not np.isfinite(largest):
        raise ValueError(f"largest value {largest:g}; need a finite one")
    if largest == 0:
        return 0
    part, power = frexp(abs(largest) / quarter_format(element).largest)
    power -= part == 0.5
    if power >= SCALES.stop:
        raise ValueError(
            f"largest value {largest:g} needs a scale of 2^{power}; need at most "
            f"2^{SCALES.stop - 1}"
        )
    return max(power, SCALES.start)
