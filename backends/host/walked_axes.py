"""The axes of a copy's target, in the order in which the copy walks them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.geometry.layout import Layout
from ..codelets.stamps import Table
from .bundles import entries_of
from .offsets import FILL, Offsets, Side, outer, parts_along

SHORT_ROW = 16
"""Innermost axes with fewer elements are walked together with the next axis."""

LONGEST_TABLE = 1 << 13
"""The most elements of the combined table of axes that are walked together."""


@dataclass(frozen=True, eq=False)
class WalkedAxis:
    """The cells of a target along one axis, or along several that are walked together.

    Attributes:
        axes: the axes.
        stride: bytes from one index to the next, if it is one axis.
        tiles: the offset in bytes of each cell.
        counts: elements of each cell.
        part, at: the cell of each element, and its offset in the block.
        numerators: those of each element, on each axis.
    """

    axes: tuple[int, ...]
    stride: int
    tiles: Table
    counts: Table
    part: Table
    at: Table
    numerators: tuple[Table, ...]

    def offsets(self, layout: Layout, sources: Offsets) -> Table:
        """The offset of the source of each element."""
        total = np.zeros(len(self.at), np.int64)
        for i, numerators in zip(self.axes, self.numerators, strict=True):
            total += np.append(sources[i], FILL)[layout.access.axes[i].resolve(numerators)]
        return total

    def times(self, inner: WalkedAxis) -> WalkedAxis:
        """This axis and an inner one, walked together."""
        cells = len(inner.tiles)
        part = (self.part[:, None] * cells + inner.part).reshape(-1)
        order = np.argsort(part, kind="stable")
        high, low = np.divmod(order, len(inner.part))
        return WalkedAxis(
            self.axes + inner.axes,
            inner.stride,
            outer(self.tiles, inner.tiles),
            (self.counts[:, None] * inner.counts).reshape(-1),
            part[order],
            self.at[high] + inner.at[low],
            (*(n[high] for n in self.numerators), *(n[low] for n in inner.numerators)),
        )


def walked_axes(target: Side) -> list[WalkedAxis] | None:
    """The axes of a target; None if a dimension that is cut moves along two of them.

    The second-to-last is walked as rows, one per index. The last one gives the runs of each row: it
    is the innermost axis that has several elements, together with the next one if it is short.
    """
    layout, row, unit = target.layout, target.row, target.unit
    cut = [d for a in layout.access.axes for d, _ in a.terms if layout.parts[d] > 1]
    if len(set(cut)) < len(cut):
        return None
    axes: list[WalkedAxis] = []
    for i in range(len(layout.access.axes)):
        tiles, starts, counts = parts_along(layout, i)
        part, within = entries_of(counts)
        numerators = starts[part] + within * layout.steps[i]
        stride = layout.strides[i] * unit
        axes.append(
            WalkedAxis((i,), stride, tiles * row, counts, part, within * stride, (numerators,))
        )
    zero = np.zeros(1, np.int64)
    while len(axes) < 2:
        axes.insert(0, WalkedAxis((), 0, zero, zero + 1, zero, zero, ()))
    long = [a for a in axes if a.counts.max() > 1] or axes[-1:]
    inner = long.pop()
    while long and inner.counts.max() < SHORT_ROW:
        if len(long[-1].at) * len(inner.at) > LONGEST_TABLE:
            break
        taken = long.pop()
        axes = [a for a in axes if a not in (taken, inner)]
        inner = taken.times(inner)
    axes = [a for a in axes if a is not inner]
    if not axes:
        axes = [WalkedAxis((), 0, zero, zero + 1, zero, zero, ())]
    rows = max(axes, key=lambda a: a.counts.max())
    return [*(a for a in axes if a is not rows), rows, inner]


def spans_of(counts: Table) -> Table:
    """The span (first, end) of each cell's elements."""
    ends = np.cumsum(counts)
    return np.stack([ends - counts, ends], axis=1)
