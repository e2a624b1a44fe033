"""Layouts on other tiles of the same chips, for what is kept there on its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from .grid import Cut, begin_of
from .layout import Layout, canonical, linear_layout
from .space import AccessMap, AxisMap

GRAIN_BYTES = 8
"""The bytes at whose multiples parts of the innermost axis begin, if parts are that large."""


def on_other_tiles(
    layout: Layout, itemsize: int, chip_tiles: int, first: int, count: int
) -> Layout:
    """A layout that has on each chip what another layout has there, spread over other tiles.

    So a copy between the two crosses no link, or few bytes do where the other layout cuts an axis
    into parts of several sizes. What all chips of the other layout hold is held on the first one,
    from which a copy would read it anyway.

        4 parts on tiles 0 1 and 4 5, of chips of 4 tiles, on tile 3 of each chip:
        2 parts on tiles 3 and 7

    Args:
        chip_tiles: the tiles of a chip of the machine.
        first: the first of these tiles on a chip.
        count: how many there are on a chip.
    """
    at = layout.first_tile // chip_tiles * chip_tiles + first
    dims = _dims_of_axes(layout)
    if dims is None or layout.apart % chip_tiles:
        return replace(linear_layout(layout.shape, itemsize, count), first_tile=at)
    parts = _parts(layout, dims, count)
    spread = [d for d, cut in enumerate(layout.grid) if cut.chips > 1]
    # Chips are numbered by the dimensions that are spread, in order, so these come first.
    axes = [next((i for i, d in dims.items() if d == own), None) for own in spread]
    axes += [i for i in range(len(layout.shape)) if i not in dims]
    grid: list[Cut] = []
    for k, axis in enumerate(axes):
        if axis is None:
            chips = layout.grid[spread[k]].chips
            grid.append(Cut(chips, chips, chips=chips))
        else:
            inner = prod(layout.shape[axis + 1 :]) * itemsize
            grain = max(1, GRAIN_BYTES // inner)
            grid.append(_cut_like(layout, axis, dims.get(axis), parts[axis], grain))
    maps = (AxisMap(n, ((axes.index(i), 1),)) for i, n in enumerate(layout.shape))
    return canonical(Layout(tuple(grid), AccessMap(tuple(maps)), at, layout.apart))


def _dims_of_axes(layout: Layout) -> dict[int, int] | None:
    """The dimension by which each axis is spread over chips; None if none is, or if an axis cannot
    be cut into parts for as many chips."""
    found: dict[int, int] = {}
    if 0 in layout.shape:
        return None
    for i, axis in enumerate(layout.access.axes):
        for d, _ in axis.terms:
            chips = layout.grid[d].chips
            if chips > 1 and (i in found or d in found.values() or axis.size < chips):
                return None
            if chips > 1:
                found[i] = d
    return found or None


def _parts(layout: Layout, dims: Mapping[int, int], count: int) -> list[int]:
    """The parts of each axis on a chip, at most `count` in all.

    Outer axes are cut first, but an axis that has enough elements is the only one.
    """
    room = [
        n // (layout.grid[dims[i]].chips if i in dims else 1) for i, n in enumerate(layout.shape)
    ]
    found, left = [1] * len(room), count
    enough = [i for i, n in enumerate(room) if n >= count]
    for axis in enough[:1] or range(len(room)):
        found[axis] = max(1, min(left, room[axis]))
        left //= found[axis]
    return found


def _cut(size: int, parts: int, grain: int, chips: int) -> Cut:
    """An axis in so many parts, in grains if it is long enough."""
    return Cut(size, parts, grain if size >= parts * grain else 1, chips)


def _cut_like(layout: Layout, axis: int, dim: int | None, parts: int, grain: int) -> Cut:
    """An axis in at most so many parts on each chip.

    Each chip has the share of the axis that it has in the layout, if there are such parts.

    Args:
        dim: the dimension of the layout by which the axis is spread over chips; None for none.
    """
    size = layout.shape[axis]
    if dim is None:
        return _cut(size, parts, grain, 1)
    given = layout.grid[dim]
    shares = given.edges()[:: given.parts // given.chips]
    if layout.access.axes[axis] == AxisMap(size, ((dim, 1),)):
        counts = np.arange(parts, 0, -1)[:, None] * given.chips
        grains = np.where(size >= counts * grain, (grain, 1), 1)[..., None]
        first = counts[..., None] // given.chips * np.arange(given.chips + 1)
        begins = begin_of(first, size, counts[..., None], grains)
        # The most parts first, and of these the ones in grains.
        alike = np.argwhere((begins == shares).all(axis=-1))
        if len(alike):
            at, coarse = alike[0]
            return Cut(size, int(counts[at, 0]), int(grains[at, coarse, 0]), given.chips)
    return _cut(size, parts * given.chips, grain, given.chips)
