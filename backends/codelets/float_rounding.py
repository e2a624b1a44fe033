"""Scalar functions that round float32 values to the numbers of a narrower type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.support.number_formats import (
    Overflow,
    limited,
    order_of,
    stochastically,
    to_nearest,
    unit_exponent,
    value_at,
)
from ...ir.support.number_kinds import is_floating
from .conversion import FLOAT64, Array, Arrays, Doubles, Parameters, convert_into, converted
from .philox import philox

ROUNDS = np.ones((), np.int64)
"""The least last word of a counter of roundings. It tells their words from random numbers, whose
last word is 0."""

_MOST = 2.0**62
_MASK = np.int64(0xFFFFFFFF)


def random_words(
    key: float, column: Array, row: Array, low: Array, high: Array, place: int = 0
) -> Array:
    """The random word of each element: the first word of Philox for the counter [column, row, low,
    1 + place] and the key [high, key].

    Args:
        key: tells the operation from others.
        column, row: the place of an element in the result.
        low, high: whole numbers that differ from step to step and from seed to seed.
        place: of a rounding within the sum that makes the element, such as the number of a partial
            sum, below 2^32 - 1; 0 for the rounding of the result.
    """
    column, row, low, high = (_word(each) for each in (column, row, low, high))
    own = np.array(int(key), np.int64)
    return philox((column, row, low, ROUNDS + place), (high, own))[0]


def _word(numbers: Array) -> Array:
    """Whole numbers; 0 for floats that are none, or are too large to be kept apart."""
    if not is_floating(numbers.dtype):
        return numbers.astype(np.int64)
    wide = numbers.astype(np.float64)
    return np.where(np.abs(wide) < _MOST, wide, 0.0).astype(np.int64)


def round_to_nearest(
    parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]
) -> None:
    """Write the nearest numbers of a type.

    Args:
        parameters: its digits, its least exponent, its largest number, and the rule of overflow.
    """
    digits, least, largest, overflow = parameters
    made = to_nearest(converted(arrays[0], FLOAT64), int(digits), int(least))
    convert_into(limited(made, largest, Overflow(int(overflow))), out)


def round_stochastically(
    parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any], place: int = 0
) -> None:
    """Write one of the two numbers of a type around each value, as random words decide.

    Args:
        parameters: the key, then as for round_to_nearest.
        arrays: the values, then those of random_words.
        place: as for random_words.
    """
    key, *form = parameters
    value, column, row, low, high = arrays
    _round_by(random_words(key, column, row, low, high, place), form, value, out)


def round_by_word(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """Write one of the two numbers of a type around each value, as given words decide.

    Args:
        parameters: as for round_to_nearest.
        arrays: the values, and a word of 32 bits for each.
    """
    value, words = arrays
    _round_by((_word(words) & _MASK).astype(np.uint32), parameters, value, out)


def round_somehow(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """Write one of the two numbers of a type around each value: the nearest that is finite.

    Args:
        parameters: as for round_to_nearest.
    """
    digits, least, largest, overflow = parameters
    value = converted(arrays[0], FLOAT64)
    made = to_nearest(value, int(digits), int(least))
    between = np.abs(value) < largest + _last_step(parameters)
    made = np.where(between, np.clip(made, -largest, largest), made)
    convert_into(limited(made, largest, Overflow(int(overflow))), out)


def to_code(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """Write the place of each value in the order of the numbers of a type.

    Args:
        parameters: its digits and its least exponent.
    """
    digits, least = map(int, parameters)
    convert_into(order_of(converted(arrays[0], FLOAT64), digits, least), out)


def from_code(parameters: Parameters, arrays: Arrays, out: Array, dtype: np.dtype[Any]) -> None:
    """Write the value at each place in the order of the numbers of a type.

    Args:
        parameters: its digits and its least exponent.
    """
    digits, least = map(int, parameters)
    convert_into(value_at(converted(arrays[0], FLOAT64), digits, least), out)


def unless_whole(parameters: Parameters, arrays: Arrays, result: Doubles) -> Doubles:
    """The magnitude of each place that is no whole number. The others are exact."""
    return np.where(result == np.rint(result), 0.0, np.abs(result))


def _round_by(words: Array, form: Sequence[float], value: Array, out: Array) -> None:
    digits, least, largest, overflow = form
    made = stochastically(converted(value, FLOAT64), words, int(digits), int(least))
    convert_into(limited(made, largest, Overflow(int(overflow))), out)


def _last_step(form: Sequence[float]) -> float:
    """The distance between the two largest numbers of a type."""
    digits, least, largest, _ = form
    return float(np.ldexp(1.0, unit_exponent(np.array(largest), int(digits), int(least))))


def one_step(parameters: Parameters, arrays: Arrays, result: Doubles) -> Doubles:
    """The distance between the two numbers around each value.

    It is infinite between the largest number and what overflows, unless both are the same.

    Args:
        parameters: perhaps a key, then as for round_to_nearest.
    """
    form = parameters[-4:]
    digits, least, largest, overflow = form
    value = converted(arrays[0], FLOAT64)
    step = np.ldexp(1.0, unit_exponent(value, int(digits), int(least)))
    if overflow != Overflow.CLIP:
        size = np.abs(value)
        step = np.where((size > largest) & (size < largest + _last_step(form)), np.inf, step)
    return np.broadcast_to(step, result.shape)
