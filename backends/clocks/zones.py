"""Clock zones: the tiles that have a clock together.

Tiles of a zone meet at every superstep in which one of them does anything. Each chip is a zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ...ir.support.arrays import Integers
from ..target import Target


@dataclass(frozen=True, eq=False)
class Zones:
    """The zones of a machine.

    Attributes:
        chip: of each zone, (zones,).
        of_tile: the zone of each tile, (tiles,). Each zone has a tile.
    """

    chip: Integers
    of_tile: Integers

    @property
    def count(self) -> int:
        """The number of zones."""
        return len(self.chip)

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
        tiles: as many as there are, or more: a program that does not fit may name tiles behind
            those of the last chip. They count as tiles of the last one.
    """
    chip = np.arange(target.chips)
    return Zones(chip, np.minimum(np.arange(tiles) // target.tiles_per_chip, target.chips - 1))
