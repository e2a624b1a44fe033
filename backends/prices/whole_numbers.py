"""Arithmetic on integer arrays of candidates, which prices are computed on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...ir.support.arrays import Integers, integers


def together(*values: ArrayLike) -> tuple[Integers, ...]:
    """Integer arrays, broadcast to one shape."""
    return np.broadcast_arrays(*map(integers, values))


def divided_up(value: Integers, divisor: ArrayLike) -> Integers:
    """A quotient, rounded up to an integer."""
    return -(-value // integers(divisor))
