"""Functions of elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, f64, i1, i32
from xdsl.ir import Attribute, SSAValue

from ...dialects import nn, stablehlo
from ...dialects.dtypes import STORED
from ...ir.support.number_kinds import bit_width, is_floating, is_unsigned
from .conversion import Lower, ToNn, splat_of
from .formula import Number
from .integers import BYTE, divided, dtype_of, in_byte, remainder, signed, unsigned
from .stored_types import narrowed

Unary = Callable[[SSAValue], Any]
Binary = Callable[[SSAValue, SSAValue], Any]
Steps = Callable[[ToNn, SSAValue], SSAValue]


def is_float(value: SSAValue) -> bool:
    """Whether the elements are floats."""
    return is_floating(dtype_of(value))


def is_truth(value: SSAValue) -> bool:
    """Whether the elements are truth values."""
    return nn.element_of(value) == i1


def unary(make: Unary) -> Lower:
    """A function of one element that an operation of nn computes."""
    return lambda op, new: [new.add(make(new.value(op.operand)))]


def _in_wide(steps: Steps) -> Lower:
    """A function of several steps, which narrow floats take in f32."""

    def lower(op: Any, new: ToNn) -> Sequence[SSAValue]:
        value = new.value(op.operand)
        return [new.cast(steps(new, new.wide(value)), nn.element_of(value))]

    return lower


def _of_numbers(make: Unary) -> Lower:
    """A function that keeps whole numbers as they are."""

    def lower(op: Any, new: ToNn) -> Sequence[SSAValue]:
        value = new.value(op.operand)
        return [new.add(make(value)) if is_float(value) else value]

    return lower


def _binary(make: Binary, of_truths: Binary | None = None) -> Lower:
    """A function of two elements.

    Args:
        of_truths: what it is of truth values.
    """

    def lower(op: Any, new: ToNn) -> Sequence[SSAValue]:
        lhs, rhs = new.operands(op)
        use = make if of_truths is None or not is_truth(lhs) else of_truths
        return [new.add(use(lhs, rhs))]

    return lower


def built(build: Callable[..., SSAValue]) -> Lower:
    """A function of elements that a function builds from the program and the operands."""
    return lambda op, new: [build(new, *new.operands(op))]


# Functions of one element


def _cbrt(new: ToNn, x: SSAValue) -> SSAValue:
    root = new.add(nn.PowerOp(new.add(nn.AbsOp(x)), 1 / 3))
    return new.add(nn.MulOp(_sign(new, x), root))


def _sign(new: ToNn, x: SSAValue) -> SSAValue:
    """-1, 0 or 1. Of a float that is 0 it is the zero itself, where nn makes 0 of -0 too."""
    sign = new.add(nn.SignOp(x))
    if not is_float(x):
        return sign
    return new.add(nn.SelectOp(new.add(nn.EqualOp(x, new.number(0.0, x))), x, sign))


def _expm1(new: ToNn, x: SSAValue) -> SSAValue:
    """exp(x) - 1 as tanh(x / 2) * (exp(x) + 1), which loses no digits near 0."""
    half = new.add(nn.TanhOp(new.add(nn.ScaleOp(x, 0.5))))
    grown = new.add(nn.ExpOp(x))
    near = new.add(nn.MulOp(half, new.add(nn.ShiftOp(grown, 1.0))))
    # Far from 0, exp may be infinite while tanh is 1, and the difference is exact enough.
    far = new.add(nn.GreaterOp(new.add(nn.AbsOp(x)), new.number(1.0, x)))
    return new.add(nn.SelectOp(far, new.add(nn.ShiftOp(grown, -1.0)), near))


def _log1p(new: ToNn, x: SSAValue) -> SSAValue:
    return Number(new, x).log_plus_one().value


def _rsqrt(new: ToNn, x: SSAValue) -> SSAValue:
    return new.add(nn.ReciprocalOp(new.add(nn.SqrtOp(x))))


def _round_away(new: ToNn, x: SSAValue) -> SSAValue:
    """The nearest whole number; halfway between two, the one farther from 0."""
    size = new.add(nn.AbsOp(x))
    below = new.add(nn.FloorOp(size))
    rest = new.add(nn.SubOp(size, below))
    up = new.add(nn.LessOp(rest, new.number(0.5, x)))
    away = new.add(nn.SelectOp(up, below, new.add(nn.ShiftOp(below, 1.0))))
    negative = new.add(nn.LessOp(x, new.number(0.0, x)))
    found = new.add(nn.SelectOp(negative, new.add(nn.NegOp(away)), away))
    # Numbers that are large, infinite or NaN stay as they are.
    is_whole = new.add(nn.EqualOp(rest, new.number(0.0, x)))
    kept = new.add(nn.SelectOp(is_whole, x, found))
    finite = new.add(nn.LessOp(size, new.number(inf, x)))
    return new.add(nn.SelectOp(finite, kept, x))


def _is_finite(op: Any, new: ToNn) -> Sequence[SSAValue]:
    value = new.value(op.operand)
    return [new.add(nn.LessOp(new.add(nn.AbsOp(value)), new.number(inf, value)))]


def _not(op: Any, new: ToNn) -> Sequence[SSAValue]:
    value = new.value(op.operand)
    make = nn.LogicalNotOp if is_truth(value) else nn.BitwiseNotOp
    return [new.add(make(value))]


def _convert(op: Any, new: ToNn) -> Sequence[SSAValue]:
    return [new.cast(new.value(op.operand), nn.element_of(op.result))]


def _real(op: Any, new: ToNn) -> Sequence[SSAValue]:
    """The float itself. Parts of complex numbers are taken before."""
    return [new.value(op.operand)]


def _imag(op: Any, new: ToNn) -> Sequence[SSAValue]:
    value = new.value(op.operand)
    return [new.expand(new.number(0.0, value), nn.shape_of(value))]


# Functions of two elements


def _xor(op: Any, new: ToNn) -> Sequence[SSAValue]:
    lhs, rhs = new.operands(op)
    if is_truth(lhs):
        return [new.add(nn.LogicalNotOp(new.add(nn.EqualOp(lhs, rhs))))]
    return [new.add(nn.BitwiseXorOp(lhs, rhs))]


def _atan2(op: Any, new: ToNn) -> Sequence[SSAValue]:
    a, b = new.operands(op)
    found = nn.angle(new.wide(a), new.wide(b), new.add, new.number)
    return [new.cast(found, nn.element_of(a))]


def _shift_right(kind: Callable[[int], Attribute]) -> Lower:
    """Bits moved towards the lowest one.

    Args:
        kind: the integers of some bits. nn moves copies of the sign into signed ones, and zeros
            into unsigned ones.
    """

    def lower(op: Any, new: ToNn) -> Sequence[SSAValue]:
        lhs, rhs = new.operands(op)
        element = nn.element_of(lhs)
        if element in STORED:
            moved = new.add(nn.ShiftRightOp(in_byte(new, lhs), in_byte(new, rhs)))
            byte = (unsigned if is_unsigned(dtype_of(lhs)) else signed)(BYTE)
            return [narrowed(new, new.bits(moved, byte), element)]
        wanted = kind(bit_width(dtype_of(lhs)))
        found = nn.ShiftRightOp(new.bits(lhs, wanted), new.bits(rhs, wanted))
        return [new.bits(new.add(found), nn.element_of(lhs))]

    return lower


def _reduce_precision(op: stablehlo.ReducePrecisionOp, new: ToNn) -> Sequence[SSAValue]:
    """A float rounded to fewer bits, by arithmetic with the bits of a float32, or of a float64.

    What is too large becomes infinite, and what is too small 0, with the sign that it had. NaN
    becomes infinite if no bit of a mantissa is left.
    """
    given = new.value(op.operand)
    is_double = nn.element_of(given) == f64
    width, of_exponent, of_mantissa = (64, 11, 52) if is_double else (32, 8, 23)
    exponent, mantissa = op.exponent_bits.value.data, op.mantissa_bits.value.data
    value = given if is_double else new.cast(given, f32)
    bits = new.add(nn.BitCastOp(value, unsigned(width)))

    def word(number: int) -> SSAValue:
        return new.constant(np.array(number, f"u{width // 8}"))

    left, found = of_mantissa - mantissa, bits
    if left > 0:
        low = new.add(nn.BitwiseAndOp(new.add(nn.ShiftRightOp(bits, word(left))), word(1)))
        half = new.add(nn.AddOp(low, word((1 << left - 1) - 1)))
        found = new.add(nn.AddOp(bits, half))
        found = new.add(nn.BitwiseAndOp(found, word((1 << width) - 1 ^ (1 << left) - 1)))
    if exponent < of_exponent:
        sign = new.add(nn.BitwiseAndOp(bits, word(1 << width - 1)))
        largest = word((1 << of_exponent) - 1 << of_mantissa)
        size = new.add(nn.BitwiseAndOp(found, largest))
        # The exponents of the narrower float are those around that of 1.
        one, reach = (1 << of_exponent - 1) - 1, (1 << exponent - 1) - 1
        above = new.add(nn.GreaterOp(size, word(one + reach << of_mantissa)))
        below = new.add(nn.LessEqualOp(size, word(one - reach << of_mantissa)))
        infinite = new.add(nn.BitwiseOrOp(sign, largest))
        found = new.add(nn.SelectOp(above, infinite, found))
        found = new.add(nn.SelectOp(below, sign, found))
    rounded = new.add(nn.BitCastOp(found, nn.element_of(value)))
    is_number = new.add(nn.EqualOp(value, value))
    # A float without mantissa has no NaN.
    rest = value if mantissa else new.number(inf, value)
    return [new.cast(new.add(nn.SelectOp(is_number, rounded, rest)), nn.element_of(given))]


def _extreme(make: Binary, of_truths: Binary, lowest: float) -> Lower:
    """The larger or the smaller element.

    Args:
        lowest: the number that changes no element.
    """
    plain = _binary(make, of_truths)

    def lower(op: Any, new: ToNn) -> Sequence[SSAValue]:
        lhs, rhs = new.operands(op)
        shape = nn.shape_of(op.result)
        for value, other in ((lhs, rhs), (rhs, lhs)):
            number = splat_of(value) if is_float(value) else None
            if number is None or nn.shape_of(other) != shape:
                continue
            if number == lowest:
                return [other]
            if number == 0 and lowest < 0:
                return [new.add(nn.ReluOp(other))]
        return plain(op, new)

    return lower


# Comparisons and choices

COMPARISONS: Mapping[str, Binary] = {
    "EQ": nn.EqualOp,
    "GE": nn.GreaterEqualOp,
    "GT": nn.GreaterOp,
    "LE": nn.LessEqualOp,
    "LT": nn.LessOp,
}


def _compare(op: stablehlo.CompareOp, new: ToNn) -> Sequence[SSAValue]:
    lhs, rhs = new.operands(op)
    return [compared(new, lhs, rhs, op.comparison_direction.data, total=op.is_total)]


def compared(
    new: ToNn, lhs: SSAValue, rhs: SSAValue, direction: str, *, total: bool = False
) -> SSAValue:
    """Whether a comparison holds.

    Args:
        total: whether NaN and both zeros have places in the order.
    """
    if total and is_float(lhs):
        lhs, rhs = in_total_order(new, lhs), in_total_order(new, rhs)
    if is_truth(lhs) and direction not in ("EQ", "NE"):
        lhs, rhs = new.cast(lhs, i32), new.cast(rhs, i32)
    if direction == "NE":
        return new.add(nn.LogicalNotOp(new.add(nn.EqualOp(lhs, rhs))))
    return new.add(COMPARISONS[direction](lhs, rhs))


def in_total_order(new: ToNn, value: SSAValue) -> SSAValue:
    """Whole numbers in the order of floats: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    width = bit_width(dtype_of(value))
    bits = new.bits(value, signed(width))
    # The more the bits of a negative float grow, the smaller it is.
    without_sign = new.add(nn.BitwiseAndOp(bits, new.number((1 << width - 1) - 1, bits)))
    flipped = new.add(nn.SubOp(new.number(-1, bits), without_sign))
    negative = new.add(nn.LessOp(bits, new.number(0, bits)))
    return new.add(nn.SelectOp(negative, flipped, bits))


def _select(op: stablehlo.SelectOp, new: ToNn) -> Sequence[SSAValue]:
    return [new.add(nn.SelectOp(*new.operands(op)))]


def _clamp(op: stablehlo.ClampOp, new: ToNn) -> Sequence[SSAValue]:
    low, value, high = new.operands(op)
    least, most = splat_of(low), splat_of(high)
    if least is not None and most is not None and least <= most and is_float(value):
        return [new.add(nn.ClipOp(value, float(least), float(most)))]
    above = new.add(nn.MaxOp(low, value))
    return [new.add(nn.MinOp(above, high))]


TABLE: Mapping[str, Lower] = {
    "stablehlo.abs": unary(nn.AbsOp),
    "stablehlo.cbrt": _in_wide(_cbrt),
    "stablehlo.ceil": _of_numbers(nn.CeilOp),
    "stablehlo.convert": _convert,
    "stablehlo.cosine": unary(nn.CosOp),
    "stablehlo.exponential": unary(nn.ExpOp),
    "stablehlo.exponential_minus_one": _in_wide(_expm1),
    "stablehlo.floor": _of_numbers(nn.FloorOp),
    "stablehlo.imag": _imag,
    "stablehlo.is_finite": _is_finite,
    "stablehlo.log": unary(nn.LogOp),
    "stablehlo.log_plus_one": _in_wide(_log1p),
    "stablehlo.logistic": unary(nn.SigmoidOp),
    "stablehlo.negate": unary(nn.NegOp),
    "stablehlo.not": _not,
    "stablehlo.real": _real,
    "stablehlo.round_nearest_afz": _in_wide(_round_away),
    "stablehlo.round_nearest_even": _of_numbers(nn.RoundOp),
    "stablehlo.rsqrt": _in_wide(_rsqrt),
    "stablehlo.sign": built(_sign),
    "stablehlo.sine": unary(nn.SinOp),
    "stablehlo.sqrt": unary(nn.SqrtOp),
    "stablehlo.tan": unary(nn.TanOp),
    "stablehlo.tanh": unary(nn.TanhOp),
    "stablehlo.add": _binary(nn.AddOp, nn.LogicalOrOp),
    "stablehlo.and": _binary(nn.BitwiseAndOp, nn.LogicalAndOp),
    "stablehlo.atan2": _atan2,
    "stablehlo.divide": built(divided),
    "stablehlo.maximum": _extreme(nn.MaxOp, nn.LogicalOrOp, -inf),
    "stablehlo.minimum": _extreme(nn.MinOp, nn.LogicalAndOp, inf),
    "stablehlo.multiply": _binary(nn.MulOp, nn.LogicalAndOp),
    "stablehlo.or": _binary(nn.BitwiseOrOp, nn.LogicalOrOp),
    "stablehlo.power": _binary(nn.PowOp),
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.remainder": built(remainder),
    "stablehlo.shift_left": _binary(nn.ShiftLeftOp),
    "stablehlo.shift_right_arithmetic": _shift_right(signed),
    "stablehlo.shift_right_logical": _shift_right(unsigned),
    "stablehlo.subtract": _binary(nn.SubOp),
    "stablehlo.xor": _xor,
    "stablehlo.compare": _compare,
    "stablehlo.select": _select,
    "stablehlo.clamp": _clamp,
}
"""What lowers each operation on elements, by name."""
