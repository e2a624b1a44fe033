"""Clock zones: the tiles that have a clock together.

Tiles of a zone meet at every superstep in which one of them does anything. Each chip is a zone; its
I/O tiles, if it has any, are another one. So they bring what is needed next while the others
compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Integers
from ..target import Target


@dataclass(frozen=True, eq=False)
class Zones:
    """The zones of a machine: one for each chip, and then those of I/O tiles.

    Attributes:
        chip: of each zone, (zones,). Zone c is that of chip c, without its I/O tiles.
        of_tile: the zone of each tile, (tiles,). Each zone has a tile.
    """

    chip: Integers
    of_tile: Integers

    @property
    def count(self) -> int:
        """The number of zones."""
        return len(self.chip)

    @property
    def chips(self) -> int:
        """The number of chips. The zones of I/O tiles come behind as many others."""
        return int(self.chip.max()) + 1

    def name(self, zone: int) -> str:
        """What reports call a zone of a machine with several."""
        chip = f"chip {self.chip[zone]}" if self.chips > 1 else ""
        if zone < self.chips:
            return chip
        return f"{chip}, I/O tiles".removeprefix(", ")

    def meeting(self, group: Integers, works: NDArray[np.bool_]) -> Integers:
        """The number of the group that each zone meets, (zones,); -1 if it meets no other zone.

        Zones of a chip meet in a superstep in which both do something. Else the I/O tiles stay out
        of what the others do, and the others out of what they do.

        Args:
            group: of each chip, (chips,); -1 for one that meets no other chip.
            works: whether the zone does anything, (zones,).
        """
        if self.count == self.chips:
            return group
        busy = np.bincount(self.chip, works)
        here = np.where(busy[self.chip] > 0, works, np.arange(self.count) < self.chips)
        # Numbers of chips alone come behind those of groups.
        alone = np.where(busy > 1, group.max(initial=-1) + 1 + np.arange(self.chips), -1)
        return np.where(here, np.where(group < 0, alone, group)[self.chip], -1)

    @cached_property
    def _order(self) -> Integers:
        """The tiles, zone by zone: (tiles,)."""
        return np.argsort(self.of_tile, kind="stable")

    @cached_property
    def _first(self) -> Integers:
        """Where the tiles of each zone begin in this order: (zones,)."""
        return np.searchsorted(self.of_tile[self._order], np.arange(self.count))

    def most(self, values: Integers) -> Integers:
        """The largest value in each zone: (zones,).

        Args:
            values: of each tile, (tiles,).
        """
        if self.count == 1:
            return values.max(keepdims=True)
        return np.maximum.reduceat(values[self._order], self._first)

    def first_with_most(self, values: Integers) -> Integers:
        """The first tile of each zone that has the largest value in it: (zones,).

        Args:
            values: of each tile, (tiles,).
        """
        if self.count == 1:
            return np.argmax(values, keepdims=True)
        order = self._order
        tiles = np.where(values[order] == self.most(values)[self.of_tile[order]], order, len(order))
        return np.minimum.reduceat(tiles, self._first)


@lru_cache(maxsize=64)
def zones_of(target: Target, tiles: int) -> Zones:
    """The zones of a target.

    Args:
        tiles: as many as there are, or more, as for Links.chip_of_tiles.
    """
    chips = np.arange(target.chips)
    zone = target.links.chip_of_tiles(tiles, target.tiles_per_chip)
    if not target.io_tiles:
        return Zones(chips, zone)
    aside = target.are_aside(np.arange(tiles))
    return Zones(np.tile(chips, 2), np.where(aside, zone + target.chips, zone))
