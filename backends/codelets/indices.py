"""The check of index operands: an index outside its axis is a fault.

It reads every index once per run, and costs no cycles of the machine: a codelet compares each index
with the rows of its cell anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...ir.geometry.space import AccessMap
from ..faults import IndexFault
from .calls import Array


@dataclass(frozen=True)
class HeldIndices:
    """The indices that the cells of one shape class hold.

    Attributes:
        view: the indices, with one element along dimensions that they do not depend on.
        access: the map of the operand.
        points: for each dimension of the space, the points of the view.
    """

    view: Array
    access: AccessMap
    points: tuple[Array, ...]

    def first_outside(self, size: int) -> tuple[tuple[int, ...], int] | None:
        """The first index, in row-major order of the operand's tensor, outside an axis of this
        size.

        Returns its position and its value, or None.
        """
        outside = np.nonzero((self.view < -size) | (self.view >= size))
        if not len(outside[0]):
            return None
        positions: list[Array] = []
        for axis in self.access.axes:
            numerators = np.full(self.view.shape, axis.offset, np.int64)
            for d, coefficient in axis.terms:
                numerators = numerators + coefficient * self.points[d]
            positions.append(axis.resolve(numerators)[outside])
        order = np.lexsort(positions[::-1]) if positions else np.zeros(1, np.int64)
        first = int(order[0])
        value = int(self.view[tuple(each[first] for each in outside)])
        return tuple(int(each[first]) for each in positions), value


def check_indices(size: int, held: Iterable[HeldIndices]) -> None:
    """Raise IndexFault if an index is not in -size..size-1. The fault names the first one,
    row-major.
    """
    if all(not h.view.size or (-size <= h.view.min() and h.view.max() < size) for h in held):
        return
    found = (each.first_outside(size) for each in held)
    position, value = min(each for each in found if each is not None)
    raise IndexFault(value, position, size)
