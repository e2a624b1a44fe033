"""A second definition of every scalar function, combiner and rule for indices.

The reference and the codelets share one definition of these, so comparing them with each other
cannot show that it is wrong. The definitions here use Python's own numbers alone: floats are
float64, integers are exact and wrap at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Number = Any

INFINITY, NAN = math.inf, math.nan


# Floating point


def _quotient(x: float, y: float) -> float:
    if y != 0 or math.isnan(x):
        return x / y if y != 0 else NAN
    return NAN if x == 0 else math.copysign(INFINITY, x) * math.copysign(1.0, y)


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INFINITY if x < 0 and y % 2 == 1 else INFINITY
    except ValueError:
        # 0 to a negative power, or a negative number to a power that is not whole.
        if x != 0:
            return NAN
        return math.copysign(INFINITY, x) if y % 2 == 1 else INFINITY


def _exponential(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INFINITY


def _logarithm(x: float) -> float:
    if x == 0:
        return -INFINITY
    return NAN if x < 0 else math.log(x)


def _root(x: float) -> float:
    return NAN if x < 0 else math.sqrt(x)


def _sigmoid(x: float) -> float:
    return 1 / (1 + _exponential(-x))


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x))) if not math.isnan(x) else x


def _largest(*values: float) -> float:
    return NAN if any(math.isnan(v) for v in values) else max(values)


def _smallest(*values: float) -> float:
    return NAN if any(math.isnan(v) for v in values) else min(values)


def _floor(x: float) -> float:
    return x if x == 0 or not math.isfinite(x) else float(math.floor(x))


def _sign(x: float) -> float:
    return x if x == 0 or math.isnan(x) else math.copysign(1.0, x)


def _whole(round_to: Callable[[float], int]) -> Callable[[float], float]:
    def rounded(x: float) -> float:
        return x if x == 0 or not math.isfinite(x) else math.copysign(float(round_to(x)), x)

    return rounded


def _inside(
    function: Callable[[float], float], low: float, high: float = INFINITY
) -> Callable[[float], float]:
    """A function that is NaN outside of its domain."""
    return lambda x: function(x) if low <= x <= high else NAN


def _overflowing(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function that Python refuses to compute where it overflows. All are odd or even."""

    def value(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return INFINITY if function(-1.0) > 0 else math.copysign(INFINITY, x)

    return value


def _area_tangent(x: float) -> float:
    if abs(x) == 1:
        return math.copysign(INFINITY, x)
    return math.atanh(x) if abs(x) < 1 else NAN


def _floored_remainder(x: float, y: float) -> float:
    return x % y if y != 0 and math.isfinite(x) else NAN


def _truncated_remainder(x: float, y: float) -> float:
    return math.fmod(x, y) if y != 0 and math.isfinite(x) else NAN


def _turning(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: function(x) if math.isfinite(x) else NAN


def _of_bits(function: Callable[..., int]) -> Callable[..., float]:
    """A function of integers of 64 bits, of truncated floats."""
    width = np.dtype(np.int64)
    return lambda *xs: float(as_integer(function(*(as_integer(x, width) for x in xs)), width))


def _shifted_left(x: int, by: int) -> int:
    return x << by if 0 <= by < 64 else 0


def _shifted_right(x: int, by: int) -> int:
    return x >> (by if 0 <= by < 64 else 64)


BITS: Mapping[str, Callable[..., int]] = {
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "bitwise_not": lambda x: ~x,
    "shift_left": _shifted_left,
    "shift_right": _shifted_right,
}
"""Functions of the bits of integers. By 64 places or more, every width is moved out."""


def _random_bits(index: int, step: int, seed: int, key: float) -> int:
    return _philox((index, 0, step, 0), (seed, int(key)))


def _philox(counter: Sequence[int], key: Sequence[int]) -> int:
    """The first word of Philox, word by word as in the paper."""
    whole = 1 << 32
    low, high = (each % whole for each in key)
    a, b, c, d = (each % whole for each in counter)
    for _ in range(10):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (
            second // whole ^ b ^ low,
            second % whole,
            first // whole ^ d ^ high,
            first % whole,
        )
        low, high = (low + 0x9E3779B9) % whole, (high + 0xBB67AE85) % whole
    return a


def _of_format(count: Callable[[Fraction], int], x: float, form: Sequence[float]) -> float:
    """A magnitude as a whole number of steps of a format, chosen by `count` from the exact one."""
    digits, least, largest, overflow = form
    if math.isfinite(x):
        exponent = max(math.frexp(x)[1] - 1, int(least)) if x else int(least)
        step = Fraction(2) ** (exponent - int(digits) + 1)
        made = count(abs(Fraction(x)) / step) * step
        if made <= Fraction(largest):
            return math.copysign(float(made), x)
    elif math.isnan(x):
        return NAN
    return math.copysign((math.inf, largest, NAN)[int(overflow)], x)


def _stochastic(
    x: float, column: float, row: float, low: float, high: float, key: float, *form: float
) -> float:
    *counter, seed = (
        int(each) if abs(each) < 2.0**62 else 0 for each in (column, row, low, 1.0, high)
    )
    word = _philox(counter, (seed, int(key)))
    return _of_format(lambda steps: math.floor(steps + Fraction(word, 1 << 32)), x, form)


def _drawn(x: float, *form: float) -> float:
    """The nearest of both numbers around x that is no overflow, if there is one."""
    digits, least, largest, _ = form
    exponent = max(math.frexp(largest)[1] - 1, int(least))
    if abs(x) < largest + 2.0 ** (exponent - int(digits) + 1):
        x = math.copysign(min(abs(x), largest), x)
    return _of_format(round, x, form)


def _by_word(x: float, word: float, *form: float) -> float:
    word = int(word) % (1 << 32) if abs(word) < 2.0**62 else 0
    return _of_format(lambda steps: math.floor(steps + Fraction(word, 1 << 32)), x, form)


def _to_code(x: float, digits: float, least: float) -> float:
    """The number of steps from 0 to x, where the steps of each binade but the least are doubled."""
    if not math.isfinite(x):
        return x
    exponent = max(math.frexp(x)[1] - 1 if x else int(least), int(least))
    before = (exponent - int(least)) * 2 ** (int(digits) - 1)
    steps = abs(Fraction(x)) / Fraction(2) ** (exponent + 1 - int(digits))
    return math.copysign(float(steps + before), x)


def _from_code(place: float, digits: float, least: float) -> float:
    if not math.isfinite(place):
        return place
    binade = 2 ** (int(digits) - 1)
    n = abs(Fraction(place))
    above = max(n // binade - 1, 0)
    if above > 2000:
        return math.copysign(math.inf, place)
    found = (n - above * binade) * Fraction(2) ** (above + int(least) + 1 - int(digits))
    try:
        return math.copysign(float(found), place)
    except OverflowError:
        return math.copysign(math.inf, place)


def _packed_mul(x: float, packed: int, scale: float, zero: float, shift: int, bits: int) -> float:
    return x * (((_shifted_right(packed, shift) & 2**bits - 1) - zero) * scale)


def _packed_mul_of_floats(
    x: float, packed: float, scale: float, zero: float, shift: float, bits: float
) -> float:
    byte, at = (as_integer(each, np.dtype(np.int64)) for each in (packed, shift))
    return _packed_mul(x, byte, scale, zero, at, int(bits))


ROUNDINGS = ("to_nearest", "drawn", "by_word", "stochastic")

CURVES: Mapping[str, Callable[[float], float]] = {
    "erf": math.erf,
    "sin": _turning(math.sin),
    "cos": _turning(math.cos),
    "tan": _turning(math.tan),
    "asin": _inside(math.asin, -1, 1),
    "acos": _inside(math.acos, -1, 1),
    "atan": math.atan,
    "sinh": _overflowing(math.sinh),
    "cosh": _overflowing(math.cosh),
    "asinh": math.asinh,
    "acosh": _inside(math.acosh, 1),
    "atanh": _area_tangent,
}
"""Functions of one float that are not rounded correctly."""

FLOATS: Mapping[str, Callable[..., Number]] = {
    "identity": lambda x: x,
    "bitcast": lambda x: x,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": _quotient,
    "max": _largest,
    "min": _smallest,
    "pow": _power,
    "relu": lambda x: _largest(x, 0.0),
    "exp": _exponential,
    "log": _logarithm,
    "sqrt": _root,
    "reciprocal": lambda x: _quotient(1.0, x),
    "tanh": math.tanh,
    "sigmoid": _sigmoid,
    "neg": lambda x: -x,
    "abs": abs,
    "square": lambda x: x * x,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "logical_and": lambda x, y: x != 0 and y != 0,
    "logical_or": lambda x, y: x != 0 or y != 0,
    "logical_not": lambda x: x == 0,
    "select": lambda c, x, y: x if c else y,
    "leaky_relu": lambda x, slope: x * slope if x < 0 else x,
    "clip": lambda x, low, high: _smallest(_largest(x, low), high),
    "scale": lambda x, factor: x * factor,
    "scaled_mul": lambda x, y, factor: x * y * factor,
    "shift": lambda x, by: x + by,
    "power": _power,
    "softplus": _softplus,
    "floor": _floor,
    "sign": _sign,
    "ceil": _whole(math.ceil),
    "round": _whole(round),
    **CURVES,
    "mod": _floored_remainder,
    "fmod": _truncated_remainder,
    "is_nan": math.isnan,
    "is_inf": math.isinf,
    **{name: _of_bits(function) for name, function in BITS.items()},
    "gate": lambda x, y: y if x > 0 else 0,
    "match": lambda x, y, z: z if x == y else 0,
    "random_bits": lambda *xs: float(
        _random_bits(*(as_integer(x, np.dtype(np.int64)) for x in xs[:3]), xs[3])
    ),
    "to_nearest": lambda x, *form: _of_format(round, x, form),
    "drawn": _drawn,
    "by_word": _by_word,
    "stochastic": _stochastic,
    "to_code": _to_code,
    "from_code": _from_code,
    "packed_mul": _packed_mul_of_floats,
}
"""Each function of floats. The parameters follow the operands."""

ANY_ZERO = frozenset({"max", "min", "relu", "clip", "sign", "floor"})
"""Functions of which 0 and -0 are the same result."""

APPROXIMATE: Mapping[str, float] = {
    "pow": 16,
    "power": 16,
    "exp": 8,
    "log": 8,
    "tanh": 8,
    "sigmoid": 8,
    "softplus": 8,
    "packed_mul": 4,
    **dict.fromkeys(CURVES, 8),
}
"""The functions that are not rounded correctly: units in the last place that they may be off by."""


# Integers


def _truncated_quotient(x: int, y: int) -> int:
    return 0 if y == 0 else math.trunc(Fraction(x, y))


def _whole_power(x: int, y: int) -> int:
    if y >= 0:
        # Modulo a power of two that all widths divide.
        return pow(x, y, 1 << 64)
    return 0 if x == 0 else math.trunc(Fraction(1, x) ** min(-y, 2 + y % 2))


def _through_floats(function: Callable[..., float]) -> Callable[..., Number]:
    return lambda *operands: function(*map(float, operands))


def _by_parameter(
    whole: Callable[[int, int], int], otherwise: Callable[[float, float], float]
) -> Callable[[int, float], Number]:
    return lambda x, p: whole(x, int(p)) if p.is_integer() else otherwise(float(x), p)


def _leaky(x: int, slope: float) -> Number:
    if x >= 0:
        return x
    return x * int(slope) if slope.is_integer() else x * slope


def _clip(x: int, low: float, high: float) -> Number:
    # A limit is a float, because limits out of range become the nearest number, and do not wrap.
    if high < max(x, low):
        return float(math.floor(high))
    return float(math.ceil(low)) if x < low else x


INTEGERS: Mapping[str, Callable[..., Number]] = {
    **{
        name: FLOATS[name]
        for name in ("identity", "bitcast", "add", "sub", "mul", "neg", "abs", "square")
    },
    **{name: FLOATS[name] for name in ("less", "less_equal", "greater", "greater_equal", "equal")},
    **{name: FLOATS[name] for name in ("logical_and", "logical_or", "logical_not", "select")},
    **{
        name: _through_floats(FLOATS[name])
        for name in ("exp", "log", "sqrt", "tanh", "sigmoid", "softplus", *CURVES)
    },
    "div": _truncated_quotient,
    "max": max,
    "min": min,
    "pow": _whole_power,
    "relu": lambda x: max(x, 0),
    "reciprocal": lambda x: _truncated_quotient(1, x),
    "leaky_relu": _leaky,
    "clip": _clip,
    "scale": _by_parameter(lambda x, p: x * p, lambda x, p: x * p),
    "scaled_mul": lambda x, y, factor: x * y * int(factor),
    "shift": _by_parameter(lambda x, p: x + p, lambda x, p: x + p),
    "power": _by_parameter(_whole_power, _power),
    "floor": lambda x: x,
    "sign": lambda x: (x > 0) - (x < 0),
    "ceil": lambda x: x,
    "round": lambda x: x,
    "mod": lambda x, y: x % y if y else 0,
    "fmod": lambda x, y: x - y * _truncated_quotient(x, y) if y else 0,
    "is_nan": lambda x: False,
    "is_inf": lambda x: False,
    **BITS,
    **{name: FLOATS[name] for name in ("gate", "match")},
    "random_bits": _random_bits,
    **{name: _through_floats(FLOATS[name]) for name in (*ROUNDINGS, "to_code", "from_code")},
    "packed_mul": lambda *xs: _packed_mul(*xs[:5], int(xs[5])),
}
"""Each function of integers: an integer, which wraps, or a float, which is truncated."""


def as_integer(value: Number, dtype: np.dtype[Any]) -> int:
    """A result as a number of an integer dtype."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return low if value <= low else high if value >= high else math.trunc(value)
    return (int(value) - low) % (high - low + 1) + low


# Combiners


def _exact_sum(values: Sequence[float]) -> float:
    if all(isinstance(v, float) and math.isfinite(v) for v in values):
        return math.fsum(values)
    return sum(values)


COMBINERS: Mapping[str, Callable[[Sequence[Number]], Number]] = {
    "sum": lambda values: _exact_sum(values) if values else 0.0,
    "max": lambda values: _largest(*values) if values else -INFINITY,
    "min": lambda values: _smallest(*values) if values else INFINITY,
    "prod": math.prod,
    "pick": lambda values: next((v for v in values if v), 0),
    "last": lambda values: values[-1],
}
"""What each combiner makes of a list of numbers."""


# Sequences along a dimension


def _before(x: Number, y: Number) -> bool:
    """Whether x comes before y in order: NaN is larger than any number."""
    if x != x or y != y:
        return x == x and y != y
    return x < y


def in_order(values: Sequence[Number], *, reverse: bool) -> list[int]:
    """The index of each element in order, by insertion; equal elements keep their order."""
    order: list[int] = []
    for i, value in enumerate(values):
        at = len(order)
        while at:
            before = values[order[at - 1]]
            if not (_before(before, value) if reverse else _before(value, before)):
                break
            at -= 1
        order.insert(at, i)
    return order


def scanned(
    values: Sequence[Number], merge: Callable[[Number, Number], Number], first: Number | None
) -> list[Number]:
    """Each element merged with those before it. first: what an exclusive scan begins with."""
    found: list[Number] = []
    for value in values:
        if first is not None:
            found.append(first)
            first = merge(first, value)
        else:
            found.append(merge(found[-1], value) if found else value)
    return found


# Rules for indices


def _reflected(index: int, size: int) -> int:
    while size > 1 and not 0 <= index < size:
        index = -index if index < 0 else 2 * (size - 1) - index
    return index if size > 1 else 0


def _wrapped(index: int, size: int) -> int:
    while index < 0:
        index += size
    while index >= size:
        index -= size
    return index


OUTSIDE: Mapping[str, Callable[[int, int], int]] = {
    "none": lambda index, size: index if 0 <= index < size else -1,
    "fill": lambda index, size: index if 0 <= index < size else -1,
    "edge": lambda index, size: sorted((0, index, size - 1))[1],
    "reflect": _reflected,
    "wrap": _wrapped,
}
"""The element that an index outside a tensor names, or -1, for each rule."""

DIVISION: Mapping[str, Callable[[int, int], int | None]] = {
    "floor": lambda numerator, divisor: math.floor(Fraction(numerator, divisor)),
    "exact": lambda numerator, divisor: (
        int(Fraction(numerator, divisor)) if Fraction(numerator, divisor).denominator == 1 else None
    ),
}
"""The index of a numerator, for each rule; None for none."""
