"""What bytes between chips cost while operands arrive.

Each layout is reduced to its chips: a block for each chip, which is the union of those of its
tiles. Bytes that several tiles of a chip want cross a link once, so these blocks say what crosses.
Blocks of chips are taken to be of equal size, so the price is an estimate where parts are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from ...backends.fabrics.traffic import Carried
from ...backends.links.links import routes_of
from ...backends.prices import cost
from ...backends.target import Target
from ...ir.geometry.grid import Cut
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Space
from .traffic import traffic


def crossing_cycles(
    operands: Iterable[tuple[Layout, Layout, int, Space | None]], target: Target
) -> int:
    """The cycles until all operands have crossed the links of their chips, with the longer sync.

    0 if nothing crosses.

    Args:
        operands: for each the present layout, the wanted one, bytes of an element, and the space
            of the movement that it passes through, or None.
    """
    moved = np.zeros((target.chips, target.chips), np.int64)
    for source, wanted, itemsize, move in operands:
        of, to = on_chips(source, target), on_chips(wanted, target)
        if of.cells == to.cells == 1 and of.first_tile == to.first_tile:
            continue
        moved += itemsize * _elements(of, to, move, target.chips)
    pairs = np.flatnonzero(moved)
    if not len(pairs):
        return 0
    seconds = routes_of(target.links).seconds(pairs, moved.ravel()[pairs]).max()
    seconds += target.links.first_word_seconds()
    longer = cost.sync_cycles(target, "all") - cost.sync_cycles(target)
    return ceil(seconds * target.clock_hz) + longer


@lru_cache(maxsize=4096)
def on_chips(layout: Layout, target: Target) -> Layout:
    """A layout of the same tensor whose cells are chips."""
    chips = _chips(layout, target.tiles_per_chip)
    grid = tuple(
        Cut(cut.size, min(n, max(cut.size, 1))) for cut, n in zip(layout.grid, chips, strict=True)
    )
    first = layout.first_tile // target.tiles_per_chip
    return replace(layout, grid=grid, first_tile=first, apart=0)


def _chips(layout: Layout, chip_tiles: int) -> list[int]:
    """The chips over which the parts of each dimension of a layout are spread."""
    if layout.apart:
        return [cut.chips for cut in layout.grid]
    # Cells that fill several chips without a gap are numbered row-major.
    left = layout.cells // chip_tiles if layout.cells % chip_tiles == 0 else 1
    found = [1] * len(layout.grid)
    for d in layout.split_dims:
        parts = layout.parts[d]
        if left % parts == 0:
            found[d] = parts
        elif parts % left == 0:
            found[d] = left
        else:
            break
        left //= found[d]
    return found


@lru_cache(maxsize=4096)
def _elements(of: Layout, to: Layout, move: Space | None, chips: int) -> NDArray[np.int64]:
    """The elements that go from each chip to each other one: (chips, chips)."""
    found = np.zeros((chips, chips), np.int64)
    flows = Carried(traffic(of, to, move), 1).flows()
    np.add.at(found, (flows.source, flows.destination), flows.bytes)
    return found
