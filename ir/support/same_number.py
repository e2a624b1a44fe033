"""Comparison of numbers that distinguishes 0.0 from -0.0, unlike ==."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign


def same_number(one: float, other: float) -> bool:
    """Whether two numbers are equal and have the same sign, or are the same object.

    The last case makes a NaN the same as itself.
    """
    if one is other:
        return True
    return one == other and (one != 0.0 or copysign(1.0, one) == copysign(1.0, other))


def same_numbers(some: Sequence[float], others: Sequence[float]) -> bool:
    """Whether two sequences have the same length and the same number at each index."""
    return len(some) == len(others) and all(map(same_number, some, others))
