"""Assumed prices are the instructions of codelets, which this file runs and counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from abele.backends.codelets.scalar import loops_of
from abele.backends.prices import cost
from abele.backends.target import resolve_target

MK2 = resolve_target("mk2")
LARGEST = 1e5
ROUNDER = 1.5 * 2**23
"""Added to a number, it leaves the nearest whole one in the lowest bits."""

WHOLE = 0x4B000000
"""The exponent of such a sum: these bits alone are 2^23."""

RIGHT_ANGLE = [
    float.fromhex(piece)
    for piece in (
        "0x1.92p0",
        "0x1.ep-12",
        "0x1.b4p-16",
        "0x1.44p-24",
        "0x1.08p-34",
        "0x1.a308d4p-41",
    )
]
"""Its pieces have 8 bits, so that their products with a number of 16 bits are exact."""

# Interpolations at Chebyshev points, for |r| up to half a right angle.
SINE = -0.166666641831398, 0.008332747966051102, -0.000195878412341699
COSINE = 0.0416666641831398, -0.001388830249197781, 2.454789137118496e-05


class Register:
    """Vectors of float32, and the instructions that made registers from them.

    One operation of Python is one instruction of the floating-point unit: f32v2add, f32v2sub,
    f32v2mul, f32v2cmpeq, and64, andc64, or64.
    """

    made = 0

    def __init__(self, values: np.ndarray):
        self.values = np.asarray(values, np.float32)

    def _result(self, values: np.ndarray) -> Register:
        Register.made += 1
        return Register(values)

    def __add__(self, other: Register) -> Register:
        return self._result(self.values + other.values)

    def __sub__(self, other: Register) -> Register:
        return self._result(self.values - other.values)

    def __mul__(self, other: Register) -> Register:
        return self._result(self.values * other.values)

    def equals(self, other: Register) -> Register:
        return self._result(bits(np.where(self.values == other.values, 0xFFFFFFFF, 0)).values)

    def __and__(self, other: Register) -> Register:
        return self._result((self._bits & other._bits).view(np.float32))

    def without(self, other: Register) -> Register:
        return self._result((self._bits & ~other._bits).view(np.float32))

    def __or__(self, other: Register) -> Register:
        return self._result((self._bits | other._bits).view(np.float32))

    @property
    def _bits(self) -> np.ndarray:
        return self.values.view(np.uint32)


def number(value: float) -> Register:
    """A constant, whose load is paired with an instruction."""
    return Register(np.full(1, value))


def bits(values: int | np.ndarray) -> Register:
    return Register(np.atleast_1d(np.asarray(values, np.uint32)).view(np.float32))


def turn(x: Register) -> tuple[Register, Register, Register]:
    """The sine and the cosine of what is left of an angle, and the whole number, with ROUNDER."""
    rounded = x * number(2 / np.pi) + number(ROUNDER)
    whole = rounded - number(ROUNDER)
    rest = x
    for piece in RIGHT_ANGLE:
        rest = rest - whole * number(piece)
    square = rest * rest
    first, second, third = map(number, SINE)
    sine = (((third * square + second) * square + first) * square + number(1)) * rest
    first, second, third = map(number, COSINE)
    cosine = (third * square + second) * square + first
    cosine = (cosine * square - number(0.5)) * square + number(1)
    return sine, cosine, rounded


def even(rounded: Register) -> Register:
    return (rounded & bits(WHOLE | 1)).equals(bits(WHOLE))


def choose(where: Register, a: Register, b: Register) -> Register:
    return (a & where) | b.without(where)


def with_sign(size: Register, rounded: Register) -> Register:
    """Times 1 or -1, by the second bit of the whole number."""
    return size * (number(2**23 + 1) - (rounded & bits(WHOLE | 2)))


def sin(x: Register) -> Register:
    sine, cosine, rounded = turn(x)
    return with_sign(choose(even(rounded), sine, cosine), rounded)


def cos(x: Register) -> Register:
    sine, cosine, rounded = turn(x)
    return with_sign(choose(even(rounded), cosine, sine), rounded + number(1))


def tan(x: Register) -> Register:
    sine, cosine, rounded = turn(x)
    where = even(rounded)
    above, below = choose(where, sine, cosine), choose(where, cosine, sine)
    # Its instructions are those of the published loop.
    ratio = Register(above.values / below.values)
    loop = loops_of("div").float32
    assert (loop.elements, loop.counted) == (2, True)
    Register.made += loop.cycles - MK2.vector.binary_loop_cycles
    return ratio * (bits(1 << 31).without(where) | number(1))


CODELETS: dict[str, tuple[Callable[[Register], Register], np.ufunc, float]] = {
    "sin": (sin, np.sin, 4),
    "cos": (cos, np.cos, 4),
    "tan": (tan, np.tan, 6),
}
"""Each codelet, its function for float64, and its error in roundoffs."""


def instructions(name: str) -> int:
    """The instructions of a codelet for one vector."""
    Register.made = 0
    CODELETS[name][0](Register(np.ones(2)))
    return Register.made


def angles() -> np.ndarray:
    """Angles of all sizes up to LARGEST, and those next to every multiple of a right angle."""
    rng = np.random.default_rng(1)
    near = (np.arange(1, LARGEST / (np.pi / 2)) * (np.pi / 2)).astype(np.float32)
    sizes = 10 ** rng.uniform(-30, np.log10(LARGEST), 200_000)
    some = [near, np.nextafter(near, 0), np.nextafter(near, 2 * LARGEST, dtype=np.float32)]
    positive = np.concatenate([*some, sizes, rng.uniform(0, LARGEST, 200_000)]).astype(np.float32)
    return np.concatenate([positive, -positive])


@pytest.mark.parametrize("name", CODELETS)
def test_the_codelet_that_is_priced_computes_its_function(name: str):
    codelet, function, roundoffs = CODELETS[name]
    x = angles()
    exact = function(x.astype(np.float64))
    assert np.abs(codelet(Register(x)).values / exact - 1).max() < roundoffs * 2.0**-24
    zeros = np.array([0.0, -0.0], np.float32)
    found = codelet(Register(zeros)).values
    assert found.tobytes() == function(zeros).tobytes()
    with np.errstate(invalid="ignore"):
        assert np.isnan(codelet(Register(np.array([np.inf, -np.inf, np.nan]))).values).all()


@pytest.mark.parametrize("name", CODELETS)
def test_a_price_is_the_instructions_of_its_codelet(name: str):
    loop = loops_of(name).float32
    assert (loop.cycles, loop.elements, loop.counted) == (instructions(name), 0, False)
    assert loop.assumed


def test_a_tangent_in_float16_is_two_vectors_of_float32_and_conversions():
    loop = loops_of("tan").float16
    assert (loop.cycles, loop.elements, loop.assumed) == (2 * instructions("tan") + 2 + 1, 0, True)


@pytest.mark.parametrize(
    ("name", "dtype", "cycles"),
    [
        ("sin", "float32", 21.5),
        ("cos", "float32", 22),
        ("tan", "float32", 27),
        ("sin", "float16", 26),
        ("cos", "float16", 26),
        ("tan", "float16", 26.75),
    ],
)
def test_one_more_element_costs(name: str, dtype: str, cycles: float):
    once, twice = cost.elementwise_cycles(np.array([6000, 12000]), 1, name, dtype, MK2)
    assert twice - once == 6000 * cycles
