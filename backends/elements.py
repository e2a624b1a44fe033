"""The elements that a tile's memory consists of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..dialects.variable import ALIGNMENT
from ..ir.support.arrays import Integers, integers
from .target import Target


@dataclass(frozen=True)
class Elements:
    """The elements of a tile's memory. Each does one thing at a time: it is read, or written.

    The reserved bytes come first, because code must be at low addresses. Variables follow.

    Attributes:
        size: bytes of each element below the border.
        wide: bytes of each element from the border on.
        border: bytes of a tile's memory below it.
        reserved: bytes of a tile's memory before the address 0 of variables.
    """

    size: int
    wide: int
    border: int
    reserved: int

    @staticmethod
    def of(target: Target) -> Elements | None:
        """The elements of a target's tiles; None if nobody knows them."""
        memory = target.memory
        if not memory.element_bytes:
            return None
        return Elements(
            memory.element_bytes,
            memory.wide_element_bytes,
            memory.wide_elements_from,
            memory.reserved_bytes,
        )

    def numbers(self, address: ArrayLike) -> Integers:
        """The number of the element of each address, from 0."""
        place = integers(address) + self.reserved
        above = -(-self.border // self.size) + (place - self.border) // self.wide
        return np.where(place < self.border, place // self.size, above)

    def around(self, begin: ArrayLike, end: ArrayLike) -> tuple[Integers, Integers]:
        """The first address of the first element that ranges touch, and the end of the last one.

        Both are multiples of the alignment of variables, rounded so that no range touches less. A
        first address may be below 0.

        Args:
            begin, end: of ranges that are not empty.
        """
        first, last = self.numbers(begin), self.numbers(integers(end) - 1)
        low, high = self._begins(first), self._begins(last + 1)
        return low // ALIGNMENT * ALIGNMENT, -(-high // ALIGNMENT) * ALIGNMENT

    def _begins(self, number: Integers) -> Integers:
        """The first address of each element."""
        below = -(-self.border // self.size)
        above = self.border + (number - below) * self.wide
        return np.where(number < below, number * self.size, above) - self.reserved
