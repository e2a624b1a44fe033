"""How the numbers of an array lie in the range of their type, as counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ....ir.support.arrays import Array
from ....ir.support.number_formats import format_of

NEAR = 0.125
"""Numbers of at least this share of the largest one of their type are near the limit. Source:
PopART's automatic loss scale, whose edge this is: 8188 for float16."""


@dataclass(frozen=True)
class Tally:
    """Counts of the elements of one or several arrays.

    Attributes:
        largest: the largest magnitude of a finite element; 0 if there is none.
        subnormals: those that are not 0, but below the smallest normal number.
        near: those near the limit of the type, the largest number included.
        clipped: those whose magnitude is the largest number itself, which is what a machine that
            clips makes of an overflow.
        infinities, nans: those that are no finite numbers.
    """

    elements: int = 0
    largest: float = 0.0
    zeros: int = 0
    subnormals: int = 0
    near: int = 0
    clipped: int = 0
    infinities: int = 0
    nans: int = 0

    def __or__(self, other: Tally) -> Tally:
        return Tally(
            self.elements + other.elements,
            max(self.largest, other.largest),
            self.zeros + other.zeros,
            self.subnormals + other.subnormals,
            self.near + other.near,
            self.clipped + other.clipped,
            self.infinities + other.infinities,
            self.nans + other.nans,
        )

    @property
    def overflows(self) -> int:
        """The elements that an overflow may have made: clipped ones, infinities and NaN."""
        return self.clipped + self.infinities + self.nans


def tally(array: Array) -> Tally:
    """The counts of an array of floating-point numbers. Raises ValueError for another type."""
    magnitude = np.abs(array.astype(np.float32, copy=False))
    # NaN is neither below a step nor at or above it.
    known, above_zero, normal, near, limit, infinite = (
        int(np.count_nonzero(magnitude >= step)) for step in _steps(array.dtype)
    )
    is_finite = known == array.size and not infinite
    finite = magnitude if is_finite else magnitude[magnitude < np.inf]
    return Tally(
        elements=array.size,
        largest=float(finite.max(initial=0)),
        zeros=known - above_zero,
        subnormals=above_zero - normal,
        near=near - infinite,
        clipped=limit - infinite,
        infinities=infinite,
        nans=array.size - known,
    )


@cache
def _steps(dtype: np.dtype[Any]) -> tuple[np.float32, ...]:
    """The magnitudes where the kinds of numbers of a type begin."""
    kind = format_of(dtype)
    steps = 0.0, kind.smallest, 2.0**kind.least, NEAR * kind.largest, kind.largest, np.inf
    return tuple(map(np.float32, steps))
