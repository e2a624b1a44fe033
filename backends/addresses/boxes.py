"""Finds pairs of boxes that meet. A box is a range of phases, of bytes and of tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...ir.support.arrays import Integers

AXES = 3
"""Phases, bytes of a tile, tiles."""

MOST_PAIRS = 1 << 20
"""At most about this many candidate pairs are held at a time. Assumed: 8 MB per column."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes, each a range of phases, a range of bytes and a range of tiles.

    Attributes:
        low, high: the ranges, ends excluded, (3, boxes). A box with an empty range meets nothing.
    """

    low: Integers
    high: Integers

    def __len__(self) -> int:
        return self.low.shape[1]

    def taken(self, index: Integers) -> Boxes:
        """Some of the boxes."""
        return Boxes(self.low[:, index], self.high[:, index])


def meetings(left: Boxes, right: Boxes) -> Iterator[tuple[Integers, Integers]]:
    """The pairs of a left and a right box that share a byte of a tile in a phase.

    Yields indices of left boxes and of right boxes, (pairs,) each, in chunks.
    For each left box, the candidates are the right boxes that meet it along one axis: the axis with
    the fewest. If live variables lie apart, as in a correct program, these are few.
    """
    left_index, right_index = _not_empty(left), _not_empty(right)
    if not len(left_index) or not len(right_index):
        return
    left, right = left.taken(left_index), right.taken(right_index)
    counts = np.stack([_candidates(left, right, axis) for axis in range(AXES)])
    best = counts.argmin(axis=0)
    for axis in range(AXES):
        chosen = np.flatnonzero(best == axis)
        if not len(chosen):
            continue
        for i, j in _along(left.taken(chosen), right, axis):
            i = chosen[i]
            meets = np.ones(len(i), bool)
            for other in range(AXES):
                if other != axis:
                    meets &= left.low[other, i] < right.high[other, j]
                    meets &= right.low[other, j] < left.high[other, i]
            if meets.any():
                yield left_index[i[meets]], right_index[j[meets]]


def _not_empty(boxes: Boxes) -> Integers:
    return np.flatnonzero((boxes.low < boxes.high).all(axis=0))


def _candidates(left: Boxes, right: Boxes, axis: int) -> Integers:
    """The number of right boxes that meet each left box along an axis."""
    low: Integers = left.low[axis]
    high: Integers = left.high[axis]
    begun = np.searchsorted(np.sort(right.low[axis]), high, side="left")
    ended = np.searchsorted(np.sort(right.high[axis]), low, side="right")
    return begun - ended


def _along(left: Boxes, right: Boxes, axis: int) -> Iterator[tuple[Integers, Integers]]:
    """The pairs that meet along an axis.

    Either the right range begins in the left one, or it begins earlier and the left one begins
    inside it.
    """
    for i, j in _begins_in(left.low[axis], left.high[axis], right.low[axis]):
        yield i, j
    for j, i in _begins_in(right.low[axis] + 1, right.high[axis], left.low[axis]):
        yield i, j


def _begins_in(
    low: Integers, high: Integers, begins: Integers
) -> Iterator[tuple[Integers, Integers]]:
    """The pairs of a range and a begin that lies in the range, in chunks."""
    order = np.argsort(begins, kind="stable")
    ordered = begins[order]
    first = np.searchsorted(ordered, low, side="left")
    count = np.maximum(np.searchsorted(ordered, high, side="left") - first, 0)
    total = np.cumsum(count)
    start = 0
    while start < len(low):
        done = total[start - 1] if start else 0
        stop = max(int(np.searchsorted(total, done + MOST_PAIRS, side="right")), start + 1)
        part = count[start:stop]
        pairs = int(part.sum())
        if pairs:
            index = np.repeat(np.arange(start, stop), part)
            within = np.arange(pairs) - np.repeat(np.cumsum(part) - part, part)
            yield index, order[first[index] + within]
        start = stop
