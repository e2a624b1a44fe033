"""Binary floating-point formats as data: how their numbers are written as bits, and rounded.

A number of a format is a sign, a significand of `digits` bits, and a power of two. Below the least
normal exponent, the power stays and the significand gets shorter: subnormal numbers. Values are
float64, which holds every number of every format here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from .number_kinds import is_floating

Doubles = NDArray[np.float64]
Codes = NDArray[np.unsignedinteger[Any]]
Words = NDArray[np.unsignedinteger[Any]]

Rounding = Literal["nearest", "stochastic"]
"""How a value between two numbers of a format becomes one of them. Nearest: the closer one, and of
two equally close ones that with an even significand. Stochastic: each with the probability that
makes the mean of many roundings the value itself."""

NotANumber = Literal["exponent", "negative zero", "none"]
"""How a format writes NaN: by the largest exponent, as IEEE 754 does; by the bits of -0, which is
then missing; or not at all."""

WORD_BITS = 32
"""The bits of a random word."""


class Overflow(IntEnum):
    """Which number replaces a value that is too large for a format. NaN stays NaN."""

    INFINITY = 0
    CLIP = 1
    NAN = 2


@dataclass(frozen=True)
class NumberFormat:
    """A binary floating-point format.

    Attributes:
        name: what abele calls it.
        bits: of a number, sign included.
        digits: of a significand, the leading one included.
        bias: is subtracted from a written exponent.
        infinities: whether the largest written exponent stands for infinities, as in IEEE 754.
        nan: how it writes NaN.
        dtype: the dtype of ml_dtypes or NumPy with these bits; "" if there is none.
    """

    name: str
    bits: int
    digits: int
    bias: int
    infinities: bool = True
    nan: NotANumber = "exponent"
    dtype: str = ""

    @property
    def exponent_bits(self) -> int:
        """The bits of a written exponent."""
        return self.bits - self.digits

    @property
    def least(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.bias

    @cached_property
    def largest(self) -> float:
        """The largest finite number."""
        reserved = 1 if self.nan == "exponent" else 0
        exponent = (1 << self.exponent_bits) - 1 - reserved - self.bias
        return (2.0 - 2.0 ** (1 - self.digits)) * 2.0**exponent

    @property
    def smallest(self) -> float:
        """The smallest number above 0, which is subnormal."""
        return 2.0 ** (self.least + 1 - self.digits)

    @cached_property
    def code_dtype(self) -> np.dtype[Any]:
        """The unsigned dtype that holds a code."""
        return np.dtype(f"u{(self.bits + 7) // 8}")

    @cached_property
    def numpy_dtype(self) -> np.dtype[Any] | None:
        """The dtype whose elements have these bits; None if there is none."""
        if not self.dtype:
            return None
        return np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))

    def decode(self, codes: Codes) -> Doubles:
        """The numbers that codes stand for."""
        wide = codes.astype(np.int64)
        fraction_bits = self.digits - 1
        fraction = wide & ((1 << fraction_bits) - 1)
        exponent = (wide >> fraction_bits) & ((1 << self.exponent_bits) - 1)
        normal = exponent > 0
        significand = fraction + np.where(normal, 1 << fraction_bits, 0)
        power = np.maximum(exponent, 1) - self.bias - fraction_bits
        values = np.ldexp(significand.astype(np.float64), power.astype(np.int32))
        if self.nan == "exponent":
            top = exponent == (1 << self.exponent_bits) - 1
            infinite = np.inf if self.infinities else np.nan
            values = np.where(top, np.where(fraction == 0, infinite, np.nan), values)
        sign = 1 << (self.bits - 1)
        values = np.where(wide & sign, -values, values)
        if self.nan == "negative zero":
            values = np.where(wide == sign, np.nan, values)
        return values

    def encode(self, numbers: Doubles) -> Codes:
        """The codes of numbers of this format.

        A -0 becomes 0 if the format has none. Raises ValueError for other values, and for NaN or an
        infinity that the format cannot write.
        """
        fraction_bits = self.digits - 1
        magnitude = np.abs(numbers)
        finite = np.isfinite(numbers)
        power = unit_exponent(np.where(finite, magnitude, 0.0), self.digits, self.least)
        significand = np.ldexp(np.where(finite, magnitude, 0.0), -power)
        whole = significand.astype(np.int64)
        bad = finite & ((whole != significand) | (magnitude > self.largest))
        bad |= np.isinf(numbers) & (not self.infinities)
        bad |= np.isnan(numbers) & (self.nan == "none")
        if bad.any():
            wrong = float(numbers[bad].reshape(-1)[0])
            raise ValueError(f"{wrong:g} is no number of {self.name}; round it first")
        # The leading one of a normal significand adds 1 to the exponent of the subnormals.
        codes = whole + ((power + fraction_bits - self.least).astype(np.int64) << fraction_bits)
        sign = np.int64(1 << (self.bits - 1))
        top = ((1 << self.exponent_bits) - 1) << fraction_bits
        codes = np.where(np.isinf(numbers), top, codes)
        codes |= np.where(np.signbit(numbers), sign, 0)
        if self.nan == "negative zero":
            codes = np.where(np.isnan(numbers), sign, np.where(codes == sign, 0, codes))
        else:
            codes = np.where(np.isnan(numbers), top | (1 << max(fraction_bits - 1, 0)), codes)
        return codes.astype(self.code_dtype)

    def round(
        self,
        values: Doubles,
        rounding: Rounding = "nearest",
        overflow: Overflow = Overflow.CLIP,
        words: Words | None = None,
    ) -> Doubles:
        """The numbers of this format that values become.

        Raises ValueError for a rule of overflow that the format cannot follow.

        Args:
            words: random bits for stochastic rounding, one word of 32 bits per value.
        """
        if overflow is Overflow.INFINITY and not self.infinities:
            raise ValueError(f"overflow of {self.name} to infinity, which it has not; need a limit")
        if overflow is Overflow.NAN and self.nan == "none":
            raise ValueError(f"overflow of {self.name} to NaN, which it has not; need a limit")
        if rounding == "nearest":
            made = to_nearest(values, self.digits, self.least)
        else:
            assert words is not None
            made = stochastically(values, words, self.digits, self.least)
        return limited(made, self.largest, overflow)


def to_nearest(values: Doubles, digits: int, least: int) -> Doubles:
    """Values rounded to the nearest number of a significand of so many digits, ties to even.

    Numbers have no upper limit. Infinities and NaN stay.

    Args:
        least: the exponent of the smallest normal number.
    """
    power = unit_exponent(values, digits, least)
    with np.errstate(invalid="ignore"):
        return np.ldexp(np.rint(np.ldexp(values, -power)), power)


def stochastically(values: Doubles, words: Words, digits: int, least: int) -> Doubles:
    """Values rounded to one of the two numbers around each, as random words decide.

    A value that is x of the way from the number below its magnitude to the number above becomes the
    upper one with probability x, to within 2^-32. Numbers of the format, infinities and NaN stay.

    Args:
        words: of 32 random bits each; a word w stands for w / 2^32. They broadcast with the values.
        least: the exponent of the smallest normal number.
    """
    power = unit_exponent(values, digits, least)
    with np.errstate(invalid="ignore"):
        steps = np.abs(np.ldexp(values, -power))
        steps = steps + words.astype(np.float64) * 2.0**-WORD_BITS
        return np.copysign(np.ldexp(np.floor(steps), power), values)


def limited(numbers: Doubles, largest: float, overflow: Overflow) -> Doubles:
    """Numbers whose magnitude is above the largest one are replaced as the rule says.

    The signs of replaced numbers stay.
    """
    kept = {Overflow.INFINITY: np.inf, Overflow.CLIP: largest, Overflow.NAN: np.nan}[overflow]
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(numbers) > largest, np.copysign(kept, numbers), numbers)


def unit_exponent(values: Doubles, digits: int, least: int) -> NDArray[np.int32]:
    """The exponent of the last digit of each value; that of the smallest number for infinities and
    NaN."""
    bits = np.asarray(values, np.float64).view(np.int64)
    exponent = ((bits >> 52) & 0x7FF) - 1023
    exponent = np.where(exponent == 1024, least, np.maximum(exponent, least))
    return (exponent - (digits - 1)).astype(np.int32)


def order_of(values: Doubles, digits: int, least: int) -> Doubles:
    """The place of each value in the order of the numbers of a format; 0 is at 0.

    The n-th number above 0 is at n, and the n-th below at -n, so that places are the codes of a
    format without the sign bit. Values between two numbers are between their places. Infinities
    and NaN stay.

    Args:
        least: the exponent of the smallest normal number.
    """
    power = unit_exponent(values, digits, least)
    binades = (power - (least + 1 - digits)).astype(np.float64)
    places = np.ldexp(np.abs(values), -power) + np.ldexp(binades, digits - 1)
    return np.copysign(places, values)


def value_at(places: Doubles, digits: int, least: int) -> Doubles:
    """The values at places in the order of the numbers of a format: the inverse of order_of."""
    size = np.abs(places)
    finite = np.where(np.isfinite(size), size, 0.0)
    binades = np.floor(np.ldexp(finite, 1 - digits)) - 1
    # Beyond the exponents of doubles, every value is infinite.
    binades = np.clip(binades, 0.0, 4096.0)
    power = binades.astype(np.int32) + (least + 1 - digits)
    with np.errstate(over="ignore"):
        found = np.ldexp(size - np.ldexp(binades, digits - 1), power)
    return np.copysign(found, places)


_UNSIGNED_ZERO: Mapping[str, Any] = {"infinities": False, "nan": "negative zero"}

FORMATS: Mapping[str, NumberFormat] = {
    each.name: each
    for each in (
        NumberFormat("f32", 32, 24, 127, dtype="float32"),
        NumberFormat("f16", 16, 11, 15, dtype="float16"),
        NumberFormat("bf16", 16, 8, 127, dtype="bfloat16"),
        NumberFormat("f143", 8, 4, 8, **_UNSIGNED_ZERO, dtype="float8_e4m3fnuz"),
        NumberFormat("f152", 8, 3, 16, **_UNSIGNED_ZERO, dtype="float8_e5m2fnuz"),
        NumberFormat("f134", 8, 5, 0, infinities=False, nan="none"),
    )
}
"""The formats by name.

f143 and f152 are the two 8-bit formats of Graphcore's C600. f134, of three exponent bits, four
fraction bits and no bias, is the format in which Graphcore's MLPerf submissions stash activations.
"""


def format_of(dtype: np.dtype[Any]) -> NumberFormat:
    """The format of a dtype. Raises ValueError if none of FORMATS has its bits."""
    found = [each for each in FORMATS.values() if each.numpy_dtype == dtype]
    if not found or not is_floating(dtype):
        raise ValueError(f"dtype {dtype}; need one of {', '.join(FORMATS)}")
    return found[0]


# The scale of a tensor of 8 bits

SCALES = range(-32, 32)
"""The exponents of a scale: an element q of a tensor stands for q * 2^scale."""

_SCALED = ("f152", "f143")


def scale_byte(format_name: str, scale: int) -> int:
    """The byte beside a tensor of 8-bit floats: bit 7 is its format, bits 0 to 5 are its scale.

    Source: poplar, gfloat metadata. Raises ValueError for other formats and scales.
    """
    if format_name not in _SCALED or scale not in SCALES:
        raise ValueError(
            f"{format_name} with scale {scale}; need {' or '.join(_SCALED)}, and a scale of "
            f"{SCALES.start} to {SCALES.stop - 1}"
        )
    return _SCALED.index(format_name) << 7 | scale & 0x3F


def scale_of(byte: int) -> tuple[str, int]:
    """The format and the scale that a byte of `scale_byte` says."""
    scale = byte & 0x3F
    return _SCALED[byte >> 7], scale - 64 if scale & 0x20 else scale
