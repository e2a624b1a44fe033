"""Integer arrays of candidates, which prices are computed on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]


def integers(value: ArrayLike) -> Integers:
    """An array of 64-bit integers; floats are rounded towards zero."""
    return np.asarray(value, dtype=np.int64)


def together(*values: ArrayLike) -> tuple[Integers, ...]:
    """Integer arrays, broadcast to one shape."""
    return np.broadcast_arrays(*map(integers, values))


def divided_up(value: Integers, divisor: ArrayLike) -> Integers:
    """A quotient, rounded up."""
    return -(-value // integers(divisor))
