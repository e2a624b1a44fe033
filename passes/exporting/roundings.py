"""The functions of nn that round to the numbers of a format, made of arithmetic on float64.

Every number of the formats is a float64, and so is each step here: the last digit of a value is a
power of two, which the bits of its exponent give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, nan

import numpy as np
from xdsl.dialects.builtin import f64, i64

from ...ir.support.number_formats import WORD_BITS, Overflow, unit_exponent
from .random_words import as_word, philox, word
from .terms import Algebra, Term

Rounding = Callable[[Algebra, Sequence[float], Sequence[Term]], Term]
"""What computes a function from its constants and its operands."""

DIGITS, BIAS, TOP = 52, 1023, 0x7FF
"""Of float64: the digits of a fraction, what is added to an exponent, and the largest sum."""


def _exponent(to: Algebra, value: Term, digits: int, least: int) -> Term:
    """The exponent of the last digit of each value, as an i64; that of the smallest number for
    infinities and NaN."""
    bits = to.bits(value, i64)
    written = to.primitive("shift_right", bits, to.number(DIGITS, i64))
    written = to.primitive("and", written, to.number(TOP, i64))
    is_number = to.compare("less", written, to.number(TOP, i64))
    kept = to.select(is_number, written, to.number(0, i64))
    kept = to.primitive("max", kept, to.number(least + BIAS, i64))
    return to.primitive("sub", kept, to.number(BIAS + digits - 1, i64))


def _power(to: Algebra, exponent: Term) -> Term:
    """2 to the power of whole numbers, as float64; infinity from 1024 on."""
    written = to.primitive("add", exponent, to.number(BIAS, i64))
    written = to.primitive("min", written, to.number(TOP, i64))
    return to.bits(to.primitive("shift_left", written, to.number(DIGITS, i64)), f64)


def _steps(to: Algebra, value: Term, digits: int, least: int) -> tuple[Term, Term]:
    """Each value in units of its last digit, and these units."""
    exponent = _exponent(to, value, digits, least)
    inverse = _power(to, to.primitive("sub", to.number(0, i64), exponent))
    return to.primitive("mul", value, inverse), _power(to, exponent)


def _with_sign(to: Algebra, size: Term, sign: Term) -> Term:
    """A size with the sign of another number."""
    kept = to.primitive("and", to.bits(sign, i64), to.number(-(1 << 63), i64))
    return to.bits(to.primitive("or", to.bits(size, i64), kept), f64)


def _limited(to: Algebra, value: Term, largest: float, rule: Overflow) -> Term:
    kept = {Overflow.INFINITY: inf, Overflow.CLIP: largest, Overflow.NAN: nan}[rule]
    beyond = to.compare("greater", to.primitive("abs", value), to.number(largest, f64))
    return to.select(beyond, _with_sign(to, to.number(kept, f64), value), value)


def _form(parameters: Sequence[float]) -> tuple[int, int, float, Overflow]:
    digits, least, largest, overflow = parameters
    return int(digits), int(least), largest, Overflow(int(overflow))


def _nearest(to: Algebra, value: Term, digits: int, least: int) -> Term:
    steps, unit = _steps(to, value, digits, least)
    return to.primitive("mul", to.primitive("round", steps), unit)


def _to_nearest(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    digits, least, largest, rule = _form(parameters)
    value = to.cast(given[0], f64)
    made = _limited(to, _nearest(to, value, digits, least), largest, rule)
    return to.cast(made, given[0].element)


def _drawn(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    """The nearest number that is finite, if there is one."""
    digits, least, largest, rule = _form(parameters)
    value = to.cast(given[0], f64)
    made = _nearest(to, value, digits, least)
    last = float(np.ldexp(1.0, unit_exponent(np.array(largest), digits, least)))
    size = to.primitive("abs", value)
    between = to.compare("less", size, to.number(largest + last, f64))
    inside = to.primitive("min", to.primitive("abs", made), to.number(largest, f64))
    made = to.select(between, _with_sign(to, inside, made), made)
    return to.cast(_limited(to, made, largest, rule), given[0].element)


def _by(to: Algebra, form: Sequence[float], given: Term, words: Term) -> Term:
    """One of the two numbers around each value, as random words decide."""
    digits, least, largest, rule = _form(form)
    value = to.cast(given, f64)
    steps, unit = _steps(to, value, digits, least)
    share = to.primitive("mul", to.cast(words, f64), to.number(2.0**-WORD_BITS, f64))
    steps = to.primitive("floor", to.primitive("add", to.primitive("abs", steps), share))
    made = _with_sign(to, to.primitive("mul", steps, unit), value)
    return to.cast(_limited(to, made, largest, rule), given.element)


def _by_word(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    value, words = given
    return _by(to, parameters, value, as_word(to, words))


def _stochastic(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    """A rounding by the word of Philox for the counter [column, row, low, 1] and the key
    [high, key]."""
    key, *form = parameters
    value, *numbers = given
    column, row, low, high = (as_word(to, each) for each in numbers)
    words = philox(to, (column, row, low, word(to, 1)), (high, word(to, int(key))))
    return _by(to, form, value, words)


def _to_code(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    """The place of each value in the order of the numbers of a format."""
    digits, least = map(int, parameters)
    value = to.cast(given[0], f64)
    exponent = _exponent(to, value, digits, least)
    steps, _ = _steps(to, to.primitive("abs", value), digits, least)
    binades = to.primitive("sub", exponent, to.number(least + 1 - digits, i64))
    full = to.primitive("mul", to.cast(binades, f64), to.number(2.0 ** (digits - 1), f64))
    made = _with_sign(to, to.primitive("add", steps, full), value)
    return to.cast(made, given[0].element)


def _from_code(to: Algebra, parameters: Sequence[float], given: Sequence[Term]) -> Term:
    """The value at each place in the order of the numbers of a format."""
    digits, least = map(int, parameters)
    place = to.cast(given[0], f64)
    none, most = to.number(0.0, f64), to.number(4096.0, f64)
    size = to.primitive("abs", place)
    finite = to.select(to.compare("less", size, to.number(inf, f64)), size, none)
    binades = to.primitive("mul", finite, to.number(2.0 ** (1 - digits), f64))
    binades = to.primitive("sub", to.primitive("floor", binades), to.number(1.0, f64))
    # Beyond the exponents of float64, every value is infinite.
    binades = to.primitive("min", to.primitive("max", binades, none), most)
    smallest = to.number(least + 1 - digits, i64)
    unit = _power(to, to.primitive("add", to.cast(binades, i64), smallest))
    before = to.primitive("mul", binades, to.number(2.0 ** (digits - 1), f64))
    made = to.primitive("mul", to.primitive("sub", size, before), unit)
    return to.cast(_with_sign(to, made, place), given[0].element)


ROUNDINGS: Mapping[str, Rounding] = {
    "by_word": _by_word,
    "drawn": _drawn,
    "from_code": _from_code,
    "stochastic": _stochastic,
    "to_code": _to_code,
    "to_nearest": _to_nearest,
}
"""What computes each function."""
