"""Where to store a tensor that many tiles need: on those tiles, but each element only once."""

from __future__ import annotations

from math import prod
from typing import TypeAlias

from .grid import Cut
from .layout import Layout, canonical
from .space import AccessMap, AxisMap
from .table import Table


def spread(layout: Layout) -> Layout | None:
    """A layout on the same tiles that stores each element once, on a tile that needs it.

    If several tiles need a copy of a block, the block is divided among them. The dimension that
    numbers the copies cuts the axis that the dimension before it cuts (for the first dimension:
    the one after it), as far as possible, and then axes that nothing else cuts. Padding is left
    out, and windows are cut as if they did not overlap. A layout without copies is returned
    unchanged. If a table says which elements tiles need, they get equal shares of all elements.
    Returns None if the tiles cannot be numbered this way, or if there are too few elements.

        [8, 6], rows in 2 parts, 3 copies of each:   rows in 6 parts
    """
    shape = layout.shape
    if not layout.replica_dims and layout.is_partition:
        return layout
    if 0 in shape:
        return None
    tabled = [i for i, axis in enumerate(layout.access.axes) if isinstance(axis.outside, Table)]
    if tabled:
        return None if layout.apart else _evenly(layout, tabled)
    axis_of: dict[int, int] = {}
    for i, axis in enumerate(layout.access.axes):
        for d, _ in axis.terms:
            if axis_of.setdefault(d, i) != i:
                return None
    own = [axis_of[d] for d in layout.split_dims if d in axis_of]
    free = [i for i, n in enumerate(shape) if i not in own and n > 1]
    left = {
        i: n // prod(layout.parts[d] for d in layout.split_dims if axis_of.get(d) == i)
        for i, n in enumerate(shape)
    }
    if min(left.values(), default=0) < 1:
        return None
    cuts: list[_Cut] = []
    for d in layout.split_dims:
        chips = layout.grid[d].chips
        if d in axis_of:
            cuts.append((axis_of[d], layout.parts[d], chips))
            continue
        neighbour = [cuts[-1][0]] if cuts else own[:1]
        rest = layout.parts[d]
        for i in dict.fromkeys((*neighbour, *free)):
            share = _largest_divisor(rest, left[i])
            if chips > 1 and share < rest:
                continue
            if share > 1:
                cuts.append((i, share, chips))
                left[i] //= share
                rest //= share
        if rest > 1:
            return None
    return _layout_of_cuts(layout, cuts)


def _evenly(layout: Layout, first: list[int]) -> Layout | None:
    """A layout on at most as many tiles that cuts some axes first, and then the others."""
    cuts: list[_Cut] = []
    rest = layout.cells
    for i in dict.fromkeys((*first, *range(len(layout.shape)))):
        share = min(layout.shape[i], rest)
        if share > 1:
            cuts.append((i, share, 1))
            rest //= share
    return _layout_of_cuts(layout, cuts)


def _largest_divisor(number: int, most: int) -> int:
    """The largest divisor of a number that is at most `most`; 0 if there is none."""
    return max((k for k in range(1, min(number, most) + 1) if number % k == 0), default=0)


_Cut: TypeAlias = tuple[int, int, int]
"""An axis, its parts, and the chips over which these are spread."""


def _layout_of_cuts(layout: Layout, cuts: list[_Cut]) -> Layout | None:
    """The layout whose tiles are numbered along these cuts; None if an axis occurs twice."""
    merged: dict[int, Cut] = {}
    last = -1
    for axis, parts, chips in cuts:
        before = merged.get(axis, Cut(1))
        if before.parts > 1 and (axis != last or (chips > 1 and before.chips < before.parts)):
            return None
        parts *= before.parts
        merged[axis] = Cut(layout.shape[axis], parts, chips=before.chips * chips)
        last = axis
    order = [*merged, *(i for i in range(len(layout.shape)) if i not in merged)]
    grid = tuple(merged.get(i, Cut(layout.shape[i])) for i in order)
    axes = tuple(AxisMap(n, ((order.index(i), 1),)) for i, n in enumerate(layout.shape))
    return canonical(Layout(grid, AccessMap(axes), layout.first_tile, layout.apart))
