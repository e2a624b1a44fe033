"""Functions of elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import erf
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ...dialects import nn, stablehlo
from ...dialects.dtypes import numpy_dtype
from ...ir.support.arrays import Array
from ...ir.support.number_kinds import bit_width, is_floating, is_unsigned, is_whole

Function = Callable[..., Any]


def wide(array: Array) -> Array:
    """Narrow floats as float64, and integers as they are."""
    return array.astype(np.float64) if is_floating(array.dtype) else array


def _rounded_away(x: Array) -> Array:
    whole: Array = np.trunc(x)
    away: Array = whole + np.sign(x)
    found: Array = np.where(np.abs(x - whole) >= 0.5, away, whole)
    return found


def _shifted(shift: Function, fill: Function) -> Function:
    """A shift, which moves out all bits if it is by as many places or more."""

    def shifted(a: Array, b: Array) -> Array:
        bits = bit_width(a.dtype)
        places = b.astype(f"u{b.dtype.itemsize}")
        inside = places < bits
        moved: Array = shift(a, np.where(inside, places, 0).astype(a.dtype))
        beyond: Array = fill(a)
        return np.where(inside, moved, beyond)

    return shifted


def _zeros(a: Array) -> Array:
    return np.zeros_like(a)


def _logical(a: Array, b: Array) -> Array:
    unsigned = f"u{a.dtype.itemsize}"
    return np.right_shift(a.view(unsigned), b.view(unsigned)).view(a.dtype)


def _arithmetic(a: Array, b: Array) -> Array:
    signed = f"i{a.dtype.itemsize}"
    return np.right_shift(a.view(signed), b.view(signed)).view(a.dtype)


def _signs(a: Array) -> Array:
    return _arithmetic(a, np.full_like(a, bit_width(a.dtype) - 1))


def _divided(a: Array, b: Array) -> Array:
    """A quotient; of integers, rounded towards 0, and -1 for a divisor of 0."""
    if not is_whole(a.dtype):
        return a / b
    size = _size(a) // np.where(b == 0, 1, _size(b))
    return np.where(b == 0, np.array(-1).astype(a.dtype), _signed(size, (a < 0) ^ (b < 0), a))


def _remainder(a: Array, b: Array) -> Array:
    """What a division leaves; the dividend for a divisor of 0."""
    if not is_whole(a.dtype):
        return np.fmod(a, b)
    size = _size(a) % np.where(b == 0, 1, _size(b))
    return np.where(b == 0, a, _signed(size, a < 0, a))


def _size(values: Array) -> Array:
    """The magnitudes of integers, which the unsigned integers of 64 bits all hold."""
    bits = values.astype(np.uint64)
    return np.where(values < 0, np.uint64(0) - bits, bits)


def _signed(sizes: Array, negative: Array, like: Array) -> Array:
    """Integers of some magnitudes and signs, which wrap around."""
    return np.where(negative, np.uint64(0) - sizes, sizes).astype(like.dtype)


def _power(a: Array, b: Array) -> Array:
    """A power; of integers by repeated squares, which wrap around, and rounded towards 0."""
    if not is_whole(a.dtype):
        return np.power(a, b)
    square, left = a.astype(np.uint64), np.where(b < 0, 0, b).astype(np.uint64)
    found = np.ones_like(square)
    while left.any():
        found = np.where(left & np.uint64(1), found * square, found)
        square, left = square * square, left >> np.uint64(1)
    # Only 1 and -1 have powers that are whole.
    inverse = np.where(_size(a) == 1, np.where(b % 2 == 0, 1, a.astype(np.int64)), 0)
    return np.where(b < 0, inverse.astype(a.dtype), found.astype(a.dtype))


def _sign(x: Array) -> Array:
    return np.where(np.isnan(x) | (x == 0), x, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


def _bits_set(x: Array) -> Array:
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}"))


def _leading_zeros(x: Array) -> Array:
    """The bits above the highest that is set: those that no bit below it fills."""
    found = x.view(f"u{x.dtype.itemsize}")
    for places in (1, 2, 4, 8, 16, 32):
        if places < bit_width(x.dtype):
            found = found | np.right_shift(found, np.array(places, found.dtype))
    return bit_width(x.dtype) - np.bitwise_count(found).astype(np.int64)


def _logistic(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _or(a: Array, b: Array) -> Array:
    return a | b


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def _erfc(x: float) -> float:
    return 1.0 - erf(x)


_NUMPY: Any = np
"""NumPy without types: its functions have more signatures than Function."""

FUNCTIONS: Mapping[str, Function] = {
    "stablehlo.abs": _NUMPY.abs,
    "stablehlo.cbrt": _NUMPY.cbrt,
    "stablehlo.ceil": _NUMPY.ceil,
    "stablehlo.cosine": _NUMPY.cos,
    "stablehlo.count_leading_zeros": _leading_zeros,
    "stablehlo.exponential": _NUMPY.exp,
    "stablehlo.exponential_minus_one": _NUMPY.expm1,
    "stablehlo.floor": _NUMPY.floor,
    "stablehlo.is_finite": _NUMPY.isfinite,
    "stablehlo.log": _NUMPY.log,
    "stablehlo.log_plus_one": _NUMPY.log1p,
    "stablehlo.logistic": _logistic,
    "stablehlo.negate": _NUMPY.negative,
    "stablehlo.not": _NUMPY.invert,
    "stablehlo.popcnt": _bits_set,
    "stablehlo.round_nearest_afz": _rounded_away,
    "stablehlo.round_nearest_even": _NUMPY.rint,
    "stablehlo.rsqrt": _rsqrt,
    "stablehlo.sign": _sign,
    "stablehlo.sine": _NUMPY.sin,
    "stablehlo.sqrt": _NUMPY.sqrt,
    "stablehlo.tan": _NUMPY.tan,
    "stablehlo.tanh": _NUMPY.tanh,
    "stablehlo.add": _NUMPY.add,
    "stablehlo.and": _NUMPY.bitwise_and,
    "stablehlo.atan2": _NUMPY.arctan2,
    "stablehlo.divide": _divided,
    "stablehlo.maximum": _NUMPY.maximum,
    "stablehlo.minimum": _NUMPY.minimum,
    "stablehlo.multiply": _NUMPY.multiply,
    "stablehlo.or": _or,
    "stablehlo.power": _power,
    "stablehlo.remainder": _remainder,
    "stablehlo.shift_left": _shifted(np.left_shift, _zeros),
    "stablehlo.shift_right_arithmetic": _shifted(_arithmetic, _signs),
    "stablehlo.shift_right_logical": _shifted(_logical, _zeros),
    "stablehlo.subtract": _NUMPY.subtract,
    "stablehlo.xor": _NUMPY.bitwise_xor,
}
"""The function of one or two elements that each operation of stablehlo is."""

OF_CHLO: Mapping[str, Function] = {
    "chlo.acos": _NUMPY.arccos,
    "chlo.acosh": _NUMPY.arccosh,
    "chlo.asin": _NUMPY.arcsin,
    "chlo.asinh": _NUMPY.arcsinh,
    "chlo.atan": _NUMPY.arctan,
    "chlo.atanh": _NUMPY.arctanh,
    "chlo.cosh": _NUMPY.cosh,
    "chlo.erf": _NUMPY.vectorize(erf, otypes=[np.float64]),
    "chlo.erfc": _NUMPY.vectorize(_erfc, otypes=[np.float64]),
    "chlo.is_inf": _NUMPY.isinf,
    "chlo.is_neg_inf": _NUMPY.isneginf,
    "chlo.is_pos_inf": _NUMPY.isposinf,
    "chlo.sinh": _NUMPY.sinh,
    "chlo.square": _NUMPY.square,
    "chlo.tan": _NUMPY.tan,
}
"""The function that each operation of chlo is, if NumPy has it."""


def function_of(name: str) -> Function | None:
    """The function of elements that an operation is; None if it is none."""
    return FUNCTIONS.get(name) or OF_CHLO.get(name)


def converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """An array in another dtype, as stablehlo converts it."""
    if dtype == np.bool_:
        return array != 0
    with np.errstate(all="ignore"):
        if is_floating(array.dtype) and is_whole(dtype):
            info: Any = np.iinfo(np.int64 if not is_unsigned(dtype) else np.uint64)
            limited = np.clip(
                np.nan_to_num(np.trunc(wide(array))), float(info.min), float(info.max)
            )
            return limited.astype(info.dtype).astype(dtype)
        return array.astype(dtype)


_COMPARE: Mapping[str, Function] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


def compare(op: stablehlo.CompareOp, operands: Sequence[Array]) -> Array:
    """Whether a comparison holds."""
    a, b = operands
    if op.is_total and is_floating(a.dtype):
        a, b = _ordered(a), _ordered(b)
    return _COMPARE[op.comparison_direction.data](a, b)


def _ordered(array: Array) -> Array:
    """Integers in the total order of floats."""
    bits = array.view(f"i{array.dtype.itemsize}").astype(np.int64)
    lowest = -(1 << 8 * array.dtype.itemsize - 1)
    return np.where(bits < 0, lowest - bits - 1, bits)


def reduce_precision(op: stablehlo.ReducePrecisionOp, operands: Sequence[Array]) -> Array:
    """Floats rounded to fewer bits, and back."""
    (x,) = map(wide, operands)
    exponent, mantissa = op.exponent_bits.value.data, op.mantissa_bits.value.data
    fraction, power = np.frexp(x)
    scale = np.ldexp(1.0, mantissa + 1)
    rounded = np.ldexp(np.rint(fraction * scale) / scale, power)
    reach = (1 << exponent - 1) - 1
    size = np.abs(rounded)
    rounded = np.where(size >= np.ldexp(1.0, reach + 1), np.copysign(np.inf, x), rounded)
    rounded = np.where(size < np.ldexp(1.0, 1 - reach), np.copysign(0.0, x), rounded)
    return np.where(np.isfinite(x), rounded, x)


def dtype_of(op: Operation, result: int = 0) -> np.dtype[Any]:
    """The dtype of a result."""
    return numpy_dtype(nn.element_of(op.results[result]))
