"""The places of a tensor's elements, as one table of offsets per axis.

The address of an element is the sum of the offsets of its indices. Moves and reshapes of a tensor
give other tables of this form, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Space
from ..codelets.stamps import Table
from .bundles import entries_of

FILL = 1 << 50
"""The offset of an element without a source, which is filled. Offsets are added up, so any larger
number means the same.
"""

ABSENT = 1 << 56
"""The offset of an element that another move brings."""

Offsets = list[Table]
"""For each axis of a tensor, the offset in bytes of the source of each index; FILL or ABSENT if it
has none."""


class Side(NamedTuple):
    """A variable at an unknown address: its layout relative to tile 0, the bytes of a tile, and the
    dtype.
    """

    layout: Layout
    row: int
    dtype: np.dtype[Any]

    @property
    def unit(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize


def parts_along(layout: Layout, axis: int) -> tuple[Table, Table, Table]:
    """For each cell along an axis, row-major over the axis's dimensions: tile offset, first
    numerator, count.
    """
    starts, counts = layout.starts(axis), layout.counts(axis)
    tiles = np.zeros((1,) * len(layout.grid), np.int64)
    for d, _ in layout.access.axes[axis].terms:
        shape = [-1 if i == d else 1 for i in range(len(layout.grid))]
        tiles = tiles + layout.tiles.along(d).reshape(shape)
    return np.broadcast_to(tiles, starts.shape).ravel(), starts.ravel(), counts.ravel()


def offsets_of(source: Side) -> Offsets | None:
    """The offsets of a variable's elements in its first replicas; None for overlapping blocks."""
    layout, row, unit = source.layout, source.row, source.unit
    if not layout.is_partition:
        return None
    found: Offsets = []
    for i, axis in enumerate(layout.access.axes):
        tiles, starts, counts = parts_along(layout, i)
        part, within = entries_of(counts)
        index = axis.resolve(starts[part] + within * layout.steps[i])
        there = index >= 0
        offsets = np.full(axis.size, FILL, np.int64)
        offsets[index[there]] = (tiles[part] * row + within * layout.strides[i] * unit)[there]
        found.append(offsets)
    return found


def outer(a: Table, b: Table) -> Table:
    """The sums of two tables of offsets, row-major over the indices of both."""
    return (a[:, None] + b).reshape(-1)


def reshaped(offsets: Offsets, old: Sequence[int], new: Sequence[int]) -> Offsets | None:
    """The offsets of a tensor in another shape, row-major; None if an axis cannot be split."""
    if tuple(old) == tuple(new):
        return offsets
    if not new:
        return None
    found: Offsets = []
    i = j = 0
    while i < len(old) or j < len(new):
        # The smallest groups of axes on each side with equal numbers of elements.
        begin, first = i, j
        have, wanted = prod(old[i : i + 1]), prod(new[j : j + 1])
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while have != wanted:
            if have < wanted:
                have *= old[i]
                i += 1
            else:
                wanted *= new[j]
                j += 1
        merged = reduce(outer, offsets[begin:i], np.zeros(1, np.int64))
        if first == j:
            found[-1] = found[-1] + merged[0]
            continue
        pieces = _split(merged, new[first:j])
        if pieces is None:
            return None
        found += pieces
    return found


def _split(offsets: Table, sizes: Sequence[int]) -> Offsets | None:
    """Offsets of several axes that add up to these; None if there are none.

    The offsets of each axis are relative to the lowest source, so that they are not negative, and
    adding them to FILL or ABSENT does not change its meaning.
    """
    if len(sizes) <= 1:
        return [offsets]
    first = int(offsets.argmin())
    if offsets[first] >= FILL:
        return None
    box, at = offsets.reshape(tuple(sizes)), np.unravel_index(first, tuple(sizes))
    found: Offsets = []
    for d in range(len(sizes)):
        along = box[tuple(slice(None) if i == d else at[i] for i in range(len(sizes)))]
        found.append(np.where(along < FILL, along - offsets[first], along) if found else along)
    total = reduce(outer, found)
    same_state = states(total) == states(offsets)
    return found if (same_state & ((total == offsets) | (offsets >= FILL))).all() else None


def states(offsets: Table) -> Table:
    """For each offset: 0 if it has a source, 1 if it is filled, 2 if it is absent."""
    return np.searchsorted([FILL, ABSENT], offsets, side="right")


def after_move(offsets: Offsets | None, space: Space) -> Offsets | None:
    """The offsets of a move's result; None if the move reads windows."""
    if offsets is None:
        return None
    (operand,), (result,) = space.operands, space.results
    walked = [np.zeros(n, np.int64) for n in space.sizes]
    start = 0
    for axis, of_axis in zip(operand.axes, offsets, strict=True):
        padded = np.append(of_axis, FILL)
        if len(axis.terms) > 1:
            return None
        if not axis.terms:
            start += int(padded[axis.resolve(np.array([axis.offset]))[0]])
        for d, a in axis.terms:
            walked[d] = (
                walked[d] + padded[axis.resolve(np.arange(space.sizes[d]) * a + axis.offset)]
            )
    named = [axis.terms[0][0] for axis in result.axes if axis.terms]
    for d, each in enumerate(walked):
        if d not in named:
            if len(each) > 1:
                return None
            start += int(each[0])
    found: Offsets = []
    for axis in result.axes:
        moved = np.full(axis.size, ABSENT, np.int64)
        each = walked[axis.terms[0][0]] if axis.terms else np.zeros(1, np.int64)
        moved[axis.offset : axis.offset + len(each)] = each
        found.append(moved)
    if not found:
        return None
    found[0] = found[0] + start
    return found
