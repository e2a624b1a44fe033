"""Numbers that things are told apart by: 0.0 and -0.0 are equal, and not the same."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign


def same_number(one: float, other: float) -> bool:
    """Whether two numbers are equal, and of one sign; or one object, for no NaN equals itself."""
    if one is other:
        return True
    return one == other and (one != 0.0 or copysign(1.0, one) == copysign(1.0, other))


def same_numbers(some: Sequence[float], others: Sequence[float]) -> bool:
    """Whether there are as many numbers, and each is the same."""
    return len(some) == len(others) and all(map(same_number, some, others))
