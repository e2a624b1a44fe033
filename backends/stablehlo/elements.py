"""Functions of elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import erf, erfc
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from ...dialects import stablehlo
from ...dialects.source_types import dtype_of_elements
from ...ir.support.arrays import Array
from ...ir.support.number_kinds import bit_width, is_floating, is_unsigned, is_whole
from .special_functions import FUNCTIONS as SPECIAL

Function = Callable[..., Any]


def wide(array: Array) -> Array:
    """Floats as float64, complex numbers as complex128, and integers as they are."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128, copy=False)
    return array.astype(np.float64, copy=False) if is_floating(array.dtype) else array


def _rounded_away(x: Array) -> Array:
    whole: Array = np.trunc(x)
    away: Array = whole + np.sign(x)
    found: Array = np.where(np.abs(x - whole) >= 0.5, away, whole)
    return found


def _bits(a: Array) -> Array:
    """The bits of integers as large integers without a sign."""
    held = cast("Array", a.astype(np.int64).view(np.uint64))
    return cast("Array", held & _mask(a.dtype))


def _mask(dtype: np.dtype[Any]) -> np.uint64:
    return np.uint64((1 << bit_width(dtype)) - 1)


def _of_bits(bits: Array, dtype: np.dtype[Any]) -> Array:
    """The integers of a dtype that have these as their lowest bits."""
    if dtype == np.bool_ or is_unsigned(dtype):
        return (bits & _mask(dtype)).astype(dtype)
    left = np.uint64(64 - bit_width(dtype))
    # Shifting back copies the sign.
    return (np.left_shift(bits, left).view(np.int64) >> left.astype(np.int64)).astype(dtype)


def _on_bits(function: Function) -> Function:
    """A function of bits, on integers and truth values."""

    def applied(a: Array, *rest: Array) -> Array:
        return _of_bits(function(*map(_bits, (a, *rest))), a.dtype)

    return applied


def _shifted(shift: Function, beyond: Function = np.zeros_like) -> Function:
    """A shift.

    Args:
        beyond: the result of a shift by as many places as there are bits, or more.
    """

    def shifted(a: Array, b: Array) -> Array:
        places = _bits(b)
        inside: Array = places < bit_width(a.dtype)
        moved = shift(a, np.where(inside, places, 0).astype(np.uint64))
        return cast("Array", np.where(inside, moved, beyond(a)))

    return shifted


def _left(a: Array, places: Array) -> Array:
    return _of_bits(np.left_shift(_bits(a), places), a.dtype)


def _logical(a: Array, places: Array) -> Array:
    return _of_bits(np.right_shift(_bits(a), places), a.dtype)


def _arithmetic(a: Array, places: Array) -> Array:
    """The highest bit is a sign, also of integers that have none."""
    left = np.uint64(64 - bit_width(a.dtype))
    signed = np.left_shift(_bits(a), left).view(np.int64) >> left.astype(np.int64)
    return _of_bits(np.right_shift(signed, places.astype(np.int64)).view(np.uint64), a.dtype)


def _signs(a: Array) -> Array:
    return _arithmetic(a, np.full(a.shape, bit_width(a.dtype) - 1, np.uint64))


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
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, x, x / size)
    return np.where(np.isnan(x) | (x == 0), x, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


def _bits_set(x: Array) -> Array:
    return np.bitwise_count(_bits(x))


def _leading_zeros(x: Array) -> Array:
    """The bits above the highest that is set: those that no bit below it fills."""
    found = _bits(x)
    for places in (1, 2, 4, 8, 16, 32):
        found = found | np.right_shift(found, np.uint64(places))
    return bit_width(x.dtype) - np.bitwise_count(found).astype(np.int64)


def _cbrt(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.cbrt(x)
    return np.cbrt(np.abs(x)) * np.exp(1j * np.angle(x) / 3)


def _atan2(a: Array, b: Array) -> Array:
    if a.dtype.kind != "c":
        return np.arctan2(a, b)
    return -1j * np.log((b + 1j * a) / np.sqrt(a * a + b * b))


def _complex(a: Array, b: Array) -> Array:
    made = np.empty(a.shape, np.complex128)
    made.real, made.imag = a, b
    return made


def _logistic(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def _next_after(a: Array, b: Array) -> Array:
    """The neighbour among floats of 32 bits, which float64 holds."""
    return np.nextafter(a.astype(np.float32), b.astype(np.float32))


_NUMPY: Any = np
"""NumPy without types: its functions have more signatures than Function."""

FUNCTIONS: Mapping[str, Function] = {
    "stablehlo.abs": _NUMPY.abs,
    "stablehlo.cbrt": _cbrt,
    "stablehlo.ceil": _NUMPY.ceil,
    "stablehlo.cosine": _NUMPY.cos,
    "stablehlo.count_leading_zeros": _leading_zeros,
    "stablehlo.exponential": _NUMPY.exp,
    "stablehlo.exponential_minus_one": _NUMPY.expm1,
    "stablehlo.floor": _NUMPY.floor,
    "stablehlo.imag": _NUMPY.imag,
    "stablehlo.is_finite": _NUMPY.isfinite,
    "stablehlo.log": _NUMPY.log,
    "stablehlo.log_plus_one": _NUMPY.log1p,
    "stablehlo.logistic": _logistic,
    "stablehlo.negate": _NUMPY.negative,
    "stablehlo.not": _on_bits(_NUMPY.invert),
    "stablehlo.popcnt": _bits_set,
    "stablehlo.real": _NUMPY.real,
    "stablehlo.round_nearest_afz": _rounded_away,
    "stablehlo.round_nearest_even": _NUMPY.rint,
    "stablehlo.rsqrt": _rsqrt,
    "stablehlo.sign": _sign,
    "stablehlo.sine": _NUMPY.sin,
    "stablehlo.sqrt": _NUMPY.sqrt,
    "stablehlo.tan": _NUMPY.tan,
    "stablehlo.tanh": _NUMPY.tanh,
    "stablehlo.add": _NUMPY.add,
    "stablehlo.and": _on_bits(_NUMPY.bitwise_and),
    "stablehlo.atan2": _atan2,
    "stablehlo.complex": _complex,
    "stablehlo.divide": _divided,
    "stablehlo.maximum": _NUMPY.maximum,
    "stablehlo.minimum": _NUMPY.minimum,
    "stablehlo.multiply": _NUMPY.multiply,
    "stablehlo.or": _on_bits(_NUMPY.bitwise_or),
    "stablehlo.power": _power,
    "stablehlo.remainder": _remainder,
    "stablehlo.shift_left": _shifted(_left),
    "stablehlo.shift_right_arithmetic": _shifted(_arithmetic, _signs),
    "stablehlo.shift_right_logical": _shifted(_logical),
    "stablehlo.subtract": _NUMPY.subtract,
    "stablehlo.xor": _on_bits(_NUMPY.bitwise_xor),
}
"""The function of one or two elements that each operation of stablehlo is."""

OF_CHLO: Mapping[str, Function] = {
    "chlo.acos": _NUMPY.arccos,
    "chlo.acosh": _NUMPY.arccosh,
    "chlo.asin": _NUMPY.arcsin,
    "chlo.asinh": _NUMPY.arcsinh,
    "chlo.atan": _NUMPY.arctan,
    "chlo.atanh": _NUMPY.arctanh,
    "chlo.conj": _NUMPY.conj,
    "chlo.cosh": _NUMPY.cosh,
    "chlo.erf": _NUMPY.vectorize(erf, otypes=[np.float64]),
    "chlo.erfc": _NUMPY.vectorize(erfc, otypes=[np.float64]),
    "chlo.is_inf": _NUMPY.isinf,
    "chlo.is_neg_inf": _NUMPY.isneginf,
    "chlo.is_pos_inf": _NUMPY.isposinf,
    "chlo.next_after": _next_after,
    "chlo.sinh": _NUMPY.sinh,
    "chlo.square": _NUMPY.square,
    "chlo.tan": _NUMPY.tan,
}
"""The function that each operation of chlo is, if NumPy or Python has it."""


def function_of(name: str) -> Function | None:
    """The function of elements that an operation is; None if it is none."""
    return FUNCTIONS.get(name) or OF_CHLO.get(name) or SPECIAL.get(name)


def converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """An array in another dtype, as stablehlo converts it."""
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = np.real(array)
    if dtype == np.bool_:
        return array != 0
    with np.errstate(all="ignore"):
        if is_floating(array.dtype) and is_whole(dtype):
            # As XLA does it: NaN is 0, and what is out of range is the nearest number.
            info: Any = ml_dtypes.iinfo(dtype)
            found = np.trunc(np.nan_to_num(wide(array), posinf=np.inf, neginf=-np.inf))
            inside = np.where((found >= float(info.max)) | (found < info.min), 0, found)
            held = np.uint64 if is_unsigned(dtype) else np.int64
            ends = np.array([info.min, info.max], held)
            beyond = ends[(found >= float(info.max)).astype(np.int64)]
            kept = (found < float(info.max)) & (found >= info.min)
            return np.where(kept, inside.astype(held), beyond).astype(dtype)
        # NumPy converts no two types that it does not know.
        between = np.int64 if is_whole(array.dtype) and is_whole(dtype) else array.dtype
        return array.astype(between).astype(dtype)


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
        a, b = ordered(a), ordered(b)
    return _COMPARE[op.comparison_direction.data](a, b)


def ordered(array: Array) -> Array:
    """Integers in the total order of floats."""
    width = bit_width(array.dtype)
    held = array.view(f"u{array.dtype.itemsize}").astype(np.uint64)
    left = np.uint64(64 - width)
    bits = np.left_shift(held, left).view(np.int64) >> left.astype(np.int64)
    return np.where(bits < 0, np.int64(-(1 << width - 1)) - bits - 1, bits)


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
    rest = x if mantissa else np.where(np.isnan(x), np.inf, x)
    return np.where(np.isfinite(x), rounded, rest)


def dtype_of(op: Operation, result: int = 0) -> np.dtype[Any]:
    """The dtype of a result."""
    return dtype_of_elements(op.results[result])
