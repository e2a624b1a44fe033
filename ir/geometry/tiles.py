"""Tiles: which tiles hold the cells of a grid. Every question of that kind is answered here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

Rows = slice
"""Selects the tiles of some cells, in the order of the cells, in an array with a row a tile."""


@dataclass(frozen=True)
class Tiles:
    """The tiles that hold the cells of a grid, one cell each.

    Attributes:
        first: the tile of cell 0.
        count: the number of cells.
    """

    first: int
    count: int

    @property
    def end(self) -> int:
        """The tile after the last one."""
        return self.first + self.count

    @property
    def span(self) -> tuple[int, int]:
        """The smallest range that contains all of the tiles: the first, and one past the last."""
        return self.first, self.end

    @property
    def rows(self) -> Rows:
        """Selects the tiles in an array with a row a tile."""
        return slice(self.first, self.end)

    @overload
    def of(self, cell: int) -> int: ...
    @overload
    def of(self, cell: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def of(self, cell: int | NDArray[np.int64]) -> int | NDArray[np.int64]:
        """The tile of each cell."""
        return self.first + cell

    def __contains__(self, tile: int) -> bool:
        return self.first <= tile < self.end

    def cell_on(self, tile: int) -> int:
        """The cell that a tile holds. Raises ValueError if it holds none."""
        if tile not in self:
            raise ValueError(f"tile {tile} holds no cell; tiles {self} do")
        return tile - self.first

    def __str__(self) -> str:
        return f"{self.first}..{self.end - 1}"


def in_common(one: Tiles, other: Tiles) -> tuple[Rows, Rows]:
    """The cells of two grids that lie on the same tiles: the cells of one, and those of the other.

    Both are in the order of the tiles.
    """
    begin = max(one.first, other.first)
    end = max(min(one.end, other.end), begin)
    return (
        slice(begin - one.first, end - one.first),
        slice(begin - other.first, end - other.first),
    )
