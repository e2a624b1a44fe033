"""The distance of results from their reference, in units of their error bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.support.number_kinds import is_floating
from ..codelets.conversion import Array, Doubles, float_limits


@dataclass(frozen=True)
class Worst:
    """The element with the largest ratio of error to bound. It is wrong if the ratio exceeds 1.

    The ratio is inf if only one of the two values is NaN or infinite.

    Attributes:
        index: of the element, () for a scalar and for an array without elements.
    """

    ratio: float
    index: tuple[int, ...] = ()
    actual: float = 0.0
    expected: float = 0.0
    bound: float = 0.0

    def __str__(self) -> str:
        return (
            f"{list(self.index)}: {self.actual!r}; need {self.expected!r} "
            f"within {self.bound:.3g}, error is {self.ratio:.3g} times that"
        )


def within(actual: Array, value: Array, bound: Doubles) -> float:
    """The largest ratio of error to bound; at most 1 if every element is right."""
    return worst_of(actual, value, bound).ratio


def worst_of(actual: Array, value: Array, bound: Doubles) -> Worst:
    """The element with the largest ratio of error to bound.

    Raises ValueError if the shapes differ.

    An infinity is right if the value comes within the bound of the largest number of actual's
    dtype.

    Args:
        actual: in its own dtype.
        value, bound: as evaluate_structure returns them.
    """
    if not actual.shape == value.shape == bound.shape:
        raise ValueError(f"shapes {actual.shape}, {value.shape} and {bound.shape}; need one")
    if actual.size == 0:
        return Worst(0.0)
    flat, values, bounds = (each.reshape(-1) for each in (actual, value, bound))
    worst, at = -1.0, 0
    for begin in range(0, flat.size, PIECE):
        piece = slice(begin, begin + PIECE)
        with np.errstate(all="ignore"):
            ratio = _ratios(flat[piece], values[piece], bounds[piece])
        here = int(ratio.argmax())
        # A NaN, if there is one, counts as the largest.
        if not ratio[here] <= worst:
            worst, at = float(ratio[here]), begin + here
    index = tuple(int(i) for i in np.unravel_index(at, actual.shape))
    return Worst(worst, index, float(flat[at]), float(values[at]), float(bounds[at]))


PIECE = 1 << 15
"""Elements that are compared at a time, so that intermediate arrays stay in a cache."""


def _ratios(actual: Array, value: Array, bound: Doubles) -> Doubles:
    if not is_floating(actual.dtype) and not is_floating(value.dtype):
        error = np.where(actual == value, 0.0, np.abs(_doubles(actual) - _doubles(value)))
        # Unequal integers may be equal as float64, so compare them as integers.
        error = np.where((actual != value) & (error == 0), 1.0, error)
        return _divided(error, bound)
    a, v = _doubles(actual), _doubles(value)
    ratio = _divided(np.abs(a - v), bound)
    free = bound == np.inf
    wrong: NDArray[np.bool_] = np.isnan(a) != np.isnan(v)
    infinite = np.isinf(a) | np.isinf(v)
    same = (a == v) | (np.isnan(a) & np.isnan(v)) | _overflows(a, v, bound, actual.dtype)
    if actual.dtype.itemsize == 1 and is_floating(actual.dtype):
        # Each type of few bits lacks something else: infinity, NaN, zero or a sign.
        held = _doubles(value.astype(actual.dtype))
        same |= (a == held) | (np.isnan(a) & np.isnan(held))
    wrong = (wrong | infinite) & ~same
    settled = np.where(wrong, np.inf, np.where(same, 0.0, ratio))
    return np.where(free & np.isfinite(v), 0.0, settled)


def _overflows(a: Doubles, v: Doubles, bound: Doubles, dtype: np.dtype[Any]) -> Array:
    """Where an infinity is a correct rounding of a value that may be out of range.

    In a dtype without infinity, NaN takes its place.
    """
    if not is_floating(dtype):
        return np.zeros(a.shape, bool)
    reached = np.abs(v) + bound >= float_limits(dtype).largest
    if not np.isinf(np.array(np.inf, np.float32).astype(dtype).astype(np.float32)):
        return reached & np.isnan(a)
    return reached & np.isinf(a) & (np.sign(a) == np.sign(v))


def _doubles(array: Array) -> Doubles:
    return array.astype(np.float64, copy=False)


def _divided(error: Doubles, bound: Doubles) -> Doubles:
    return np.where(error == 0, 0.0, np.divide(error, bound))
