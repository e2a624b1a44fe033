"""Fixed sequences for float32: exp, log, tanh, erf, sin, cos, and functions made of them.

Every sequence is computed in float64, where numbers of float32 neither overflow nor lose digits,
and is rounded to float32 once. Polynomials are good to 2^-37 or better, so that a result is the
correctly rounded one except near a tie, and off by at most 0.51 units in the last place.

Each polynomial interpolates the named function at Chebyshev points of the named interval; the test
of this file fits them again and compares. Constants come first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from .sequences import NumpyProgram, Sequence, SequenceValue, sequence

LN2 = 0.6931471805599453
LOG2_E = 1.4426950408889634
PI = 3.141592653589793

ROUNDER = 6755399441055744.0
"""1.5 * 2^52. Adding and subtracting it rounds a number to the nearest integer.

The lowest bits of the sum hold that integer.
"""

ROUNDER_BITS = 0x4338000000000000
SIGN = -(1 << 63)
SIZE = (1 << 63) - 1
EXPONENT = 52
"""The lowest bit of an exponent."""

ONE_BITS = 1023 << EXPONENT

EXP = (
    0.9999999999955059, 0.49999999999955214, 0.16666666786375128, 0.04166666678619889,
    0.008333283519890574, 0.001388883911725189, 0.00019907581989957057, 2.4867869860332152e-05,
)  # fmt: skip
"""(exp(r) - 1) / r for |r| up to half of log(2)."""

LOG = (
    0.6666666666666201, 0.40000000011261155, 0.28571424129521145, 0.22222862803530083,
    0.18140181538683225, 0.16621902915053025,
)  # fmt: skip
"""(log((1 + z) / (1 - z)) - 2 z) / z^3 in z^2, for a fraction between the roots of 1/2 and 2."""

SIN = (
    -0.1666666666666662, 0.008333333333306756, -0.0001984126981199843, 2.7557306830960194e-06,
    -2.5049684730045125e-08, 1.5837924309939793e-10,
)  # fmt: skip
"""(sin(r) / r - 1) / r^2 in r^2, for |r| up to 0.626 right angles."""

COS = (
    -0.5000000000000002, 0.04166666666667587, -0.0013888888889880945, 2.4801587705382483e-05,
    -2.7557393291605824e-07, 2.0882654620963436e-09, -1.158644430361152e-11,
)  # fmt: skip
"""(cos(r) - 1) / r^2 in r^2, for |r| up to 0.626 right angles."""

ATAN = (
    0.9999999999997067, -0.3333333332018236, 0.19999999010049285, -0.1428568459346683,
    0.11110640040352462, -0.09086355487615597, 0.07663153529209107, -0.06536152436673698,
    0.054580653603342924, -0.04232177425284742, 0.02840731032676255, -0.015229828127970295,
    0.00593495803574721, -0.001466220368941625, 0.00017039676507314046,
)  # fmt: skip
"""atan(z) / z in z^2, for z up to 1."""

ERF = (
    1.1283791670946752, -0.37612638889622435, 0.11283791308371349, -0.02686613321778475,
    0.0052237834121404, -0.0008542636647544657, 0.00011956546898645011, -1.3909244641540084e-05,
    1.0589143666959874e-06,
)  # fmt: skip
"""erf(x) / x in x^2, for x up to 1."""

LOG_ERFC = (
    0.0001354150913259744, -1.1292146603785018, -0.6343061248669668, -0.10656556787273008,
    0.02320183008757193, -0.0027588556678932465, -0.00026395405014494674, 0.00021031450789060066,
    -5.017780605911649e-05, 6.768490963805872e-06, -5.142667727595956e-07, 1.720977975635231e-08,
)  # fmt: skip
"""log(1 - erf(x)) for x from 1 to 4. From 4 on, erf(x) rounds to 1."""

TWO_OVER_PI_BITS = 288


def _two_over_pi() -> int:
    """2 / pi times 2 to the TWO_OVER_PI_BITS, by Machin's formula, in integers."""
    extra = 32
    one = 1 << (TWO_OVER_PI_BITS + extra)

    def arctan_of_inverse(n: int) -> int:
        total, power, k = 0, one // n, 0
        while power:
            total += (-1) ** k * power // (2 * k + 1)
            power //= n * n
            k += 1
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    return 2 * one * one // pi >> extra


FIRST_LARGE = 24
"""The largest exponent at which a multiple of a right angle near a number is short enough to be
exact.
"""


def _right_angles() -> tuple[tuple[float, ...], ...]:
    """2 / pi without the bits that make multiples of 4, in three pieces, by exponent.

    The first row is for exponents up to FIRST_LARGE.

    A number x of that exponent has 24 bits, so that its products with the first two pieces, of 29
    bits each, are exact. The last entries, for infinities and NaN, are NaN.
    """
    whole = _two_over_pi()
    rows: list[tuple[float, ...]] = []
    for exponent in range(FIRST_LARGE, 128):
        # A bit of weight 2^(25 - exponent) times the lowest bit of x is 4.
        rest = whole % (1 << (TWO_OVER_PI_BITS + 25 - exponent))
        pieces: list[float] = []
        for below in (29, 58, 111):
            unit = TWO_OVER_PI_BITS + 25 - exponent - below
            pieces.append(math.ldexp(rest >> unit, unit - TWO_OVER_PI_BITS))
            rest %= 1 << unit
        rows.append(tuple(pieces))
    return tuple(zip(*rows, (math.nan,) * 3, strict=True))


RIGHT_ANGLES = _right_angles()


# Parts of functions


def _polynomial(coefficients: tuple[float, ...], x: SequenceValue) -> SequenceValue:
    """A polynomial, by Horner's rule."""
    *rest, before, last = coefficients
    total = x * last + before
    for each in reversed(rest):
        total = total * x + each
    return total


def _with_sign_of(size: SequenceValue, x: SequenceValue) -> SequenceValue:
    """A magnitude with the sign of another number."""
    return (size.bits | (x.bits & SIGN)).number


def _size(x: SequenceValue) -> SequenceValue:
    return (x.bits & SIZE).number


def _power_of_two(x: SequenceValue) -> tuple[SequenceValue, SequenceValue]:
    """2^n and exp(r) - 1, where x is n log(2) + r. x must be from -700 to 700."""
    rounded = x * LOG2_E + ROUNDER
    r = x - (rounded - ROUNDER) * LN2
    scale = ((rounded.bits << EXPONENT) + ONE_BITS).number
    return scale, r * _polynomial(EXP, r)


def _exp(x: SequenceValue) -> SequenceValue:
    scale, rest = _power_of_two(x)
    return scale * rest + scale


def _expm1(x: SequenceValue) -> SequenceValue:
    """exp(x) - 1 with full precision for a small x."""
    scale, rest = _power_of_two(x)
    return scale * rest + (scale - 1.0)


LOG_OFFSET = (1022 << EXPONENT | 0x6A09E667F3BCD) - (1024 << EXPONENT)
"""The bits of the root of 1/2, and an offset that keeps the difference from them positive."""


def _log_of_positive(x: SequenceValue) -> SequenceValue:
    """The logarithm of a finite positive number that is not subnormal in float64."""
    exponent = (x.bits - LOG_OFFSET) >> EXPONENT
    f = (x.bits - ((exponent - 1024) << EXPONENT)).number - 1.0
    z = f / (f + 2.0)
    w = z * z
    whole = (exponent + (ROUNDER_BITS - 1024)).number - ROUNDER
    return whole * LN2 + (w * _polynomial(LOG, w) * z + (z + z))


def _exp_of_any(x: SequenceValue) -> SequenceValue:
    return _exp(x.limited(-110.0, 110.0))


def _log(x: SequenceValue) -> SequenceValue:
    found = _log_of_positive(x)
    found = (x > 0.0).choose(found, x.equals(0.0).choose(-math.inf, math.nan))
    return (x < math.inf).choose(found, _not_negative(x))


def _not_negative(x: SequenceValue) -> SequenceValue:
    """The number itself; it is infinite or NaN."""
    return x + 0.0


def _log1p(x: SequenceValue) -> SequenceValue:
    """log(1 + x) with full precision for a small x."""
    total = x + 1.0
    lost = (x - (total - 1.0)) / total
    return (x < math.inf).choose(_log(total) + lost, _not_negative(x))


def _quarter(x: SequenceValue) -> tuple[SequenceValue, SequenceValue, SequenceValue]:
    """The sine and the cosine of x minus the nearest multiple of a right angle, and the bits of the
    factor.
    """
    exponent = (x.bits & SIZE) >> EXPONENT
    row = exponent - (1023 + FIRST_LARGE)
    row = row.apply("larger bits", 0).apply("smaller bits", len(RIGHT_ANGLES[0]) - 1)
    first, second, third = (row.apply("look up", table=piece) for piece in RIGHT_ANGLES)
    angles = x * first
    rounded = angles + ROUNDER
    rest = (angles - (rounded - ROUNDER)) + x * second + x * third
    r = rest * (0.5 * PI)
    w = r * r
    sine = (w * _polynomial(SIN, w) + 1.0) * r
    cosine = w * _polynomial(COS, w) + 1.0
    return sine, cosine, rounded.bits


def _odd(quarters: SequenceValue) -> SequenceValue:
    """Whether a number of right angles is odd.

    Args:
        quarters: its bits.
    """
    return ~((quarters & 1).number.equals(0.0))


# Functions


def _sin(x: SequenceValue) -> SequenceValue:
    sine, cosine, quarters = _quarter(x)
    size = _odd(quarters).choose(cosine, sine)
    return (size.bits ^ ((quarters & 2) << 62)).number


def _cos(x: SequenceValue) -> SequenceValue:
    sine, cosine, quarters = _quarter(x)
    size = _odd(quarters).choose(sine, cosine)
    return (size.bits ^ (((quarters + 1) & 2) << 62)).number


def _tan(x: SequenceValue) -> SequenceValue:
    sine, cosine, quarters = _quarter(x)
    odd = _odd(quarters)
    ratio = odd.choose(cosine, sine) / odd.choose(sine, cosine)
    return (ratio.bits ^ ((quarters & 1) << 63)).number


def _tanh(x: SequenceValue) -> SequenceValue:
    rest = _expm1((x + x).limited(-60.0, 60.0))
    return _with_sign_of(_size(rest / (rest + 2.0)), x)


def _sigmoid(x: SequenceValue) -> SequenceValue:
    return 1.0 / (_exp((0.0 - x).limited(-110.0, 110.0)) + 1.0)


def _softplus(x: SequenceValue) -> SequenceValue:
    rest = _exp((0.0 - _size(x)).apply("larger", -110.0))
    total = rest + 1.0
    # Use log(1 + rest), because the sum may have lost the digits of a small rest.
    return x.apply("larger", 0.0) + (_log_of_positive(total) + (rest - (total - 1.0)) / total)


def _erf(x: SequenceValue) -> SequenceValue:
    size = _size(x)
    small = size.apply("smaller", 1.0)
    near = _polynomial(ERF, small * small) * small
    far = 1.0 - _exp(_polynomial(LOG_ERFC, size.limited(1.0, 4.0)))
    return _with_sign_of((size < 1.0).choose(near, far), x)


def _sinh(x: SequenceValue) -> SequenceValue:
    rest = _expm1(_size(x).apply("smaller", 100.0))
    return _with_sign_of((rest / (rest + 1.0) + rest) * 0.5, x)


def _cosh(x: SequenceValue) -> SequenceValue:
    power = _exp(_size(x).apply("smaller", 100.0))
    return (1.0 / power + power) * 0.5


def _atan_of_size(size: SequenceValue) -> SequenceValue:
    """The arctangent of a number that is not negative."""
    is_small = size < 1.0
    z = is_small.choose(size, 1.0 / size)
    found = _polynomial(ATAN, z * z) * z
    return is_small.choose(found, 0.5 * PI - found)


def _atan(x: SequenceValue) -> SequenceValue:
    return _with_sign_of(_atan_of_size(_size(x)), x)


def _asin(x: SequenceValue) -> SequenceValue:
    size = _size(x)
    return _with_sign_of(_atan_of_size(size / ((1.0 - size) * (size + 1.0)).square_root()), x)


def _acos(x: SequenceValue) -> SequenceValue:
    return _atan_of_size(((1.0 - x) / (x + 1.0)).square_root()) * 2.0


def _asinh(x: SequenceValue) -> SequenceValue:
    size = _size(x)
    square = size * size
    found = _log1p(square / ((square + 1.0).square_root() + 1.0) + size)
    return _with_sign_of((size < math.inf).choose(found, size), x)


def _acosh(x: SequenceValue) -> SequenceValue:
    less = x - 1.0
    return _log1p(less.square_root() * (x + 1.0).square_root() + less)


def _atanh(x: SequenceValue) -> SequenceValue:
    size = _size(x)
    return _with_sign_of(_log1p((size + size) / (1.0 - size)) * 0.5, x)


def _power(x: SequenceValue, y: SequenceValue) -> SequenceValue:
    """The power x^y, as IEEE 754 defines pow."""
    size = _size(x)
    found = _exp((y * _log(size)).limited(-110.0, 110.0))
    # Every float32 beyond 2^30 is even.
    near = y.limited(-(2.0**30), 2.0**30)
    rounded = near + ROUNDER
    is_whole = (rounded - ROUNDER).equals(near)
    odd_sign = (rounded.bits << 63) & x.bits
    found = (found.bits | is_whole.choose(odd_sign.number, 0.0).bits).number
    has_none = (x < 0.0) & (x > -math.inf) & ~is_whole
    found = has_none.choose(math.nan, found)
    found = y.equals(y).choose(found, y)
    # The logarithm of 1 is 0, whose product with an infinity is no number.
    is_one = size.equals(1.0) & _size(y).equals(math.inf)
    return (is_one | x.equals(1.0) | y.equals(0.0)).choose(1.0, found)


def _square_root(x: SequenceValue) -> SequenceValue:
    # Rounded twice, it is the same as if rounded once to float32.
    return x.square_root()


def _leaky_relu(x: SequenceValue, slope: SequenceValue) -> SequenceValue:
    return (x < 0.0).choose(x * slope, x)


_FUNCTIONS: Mapping[str, tuple[Callable[..., SequenceValue], int]] = {
    "exp": (_exp_of_any, 1),
    "log": (_log, 1),
    "sqrt": (_square_root, 1),
    "tanh": (_tanh, 1),
    "sigmoid": (_sigmoid, 1),
    "softplus": (_softplus, 1),
    "erf": (_erf, 1),
    "sin": (_sin, 1),
    "cos": (_cos, 1),
    "tan": (_tan, 1),
    "asin": (_asin, 1),
    "acos": (_acos, 1),
    "atan": (_atan, 1),
    "sinh": (_sinh, 1),
    "cosh": (_cosh, 1),
    "asinh": (_asinh, 1),
    "acosh": (_acosh, 1),
    "atanh": (_atanh, 1),
    "pow": (_power, 2),
    "abs": (_size, 1),
    "leaky_relu": (_leaky_relu, 2),
}

SEQUENCES: Mapping[str, Sequence] = {
    name: sequence(function, operands) for name, (function, operands) in _FUNCTIONS.items()
}
"""The sequences, by name of function."""

PROGRAMS: Mapping[str, NumpyProgram] = {
    name: NumpyProgram(made) for name, made in SEQUENCES.items()
}
"""The sequences as calls of NumPy."""
