"""Tiles: which tiles hold the cells of a grid. Every question of that kind is answered here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from ..support.kept_tables import kept_tables

MOST_TILES = 1 << 31
"""Tiles of a machine. Their numbers are multiplied with bytes, in 64-bit integers."""

MOST_CHIPS = 4096
"""Chips of a machine. A round bound of ours: tables grow with the square of it, and a text of a few
words could name very many."""

Rows: TypeAlias = "slice | NDArray[np.int64]"
"""Selects the tiles of cells, in the order of the cells, in an array with a row a tile.

A slice is a view of the array, and an array of tile numbers makes a copy. Both can be assigned to,
and added to, because no tile holds two cells.
"""


@dataclass(frozen=True)
class Tiles:
    """The tiles that hold the cells of a grid, one cell each.

    Cells are numbered row-major over the parts of the grid's dimensions. On one chip, cell c lies
    on tile first + c. Where the parts of a dimension are spread over several chips, the most
    significant digit of a part's number counts chips, and the others say where on a chip its cells
    lie. Chips are numbered row-major over these digits.

        6 parts on 2 chips that are 16 tiles apart, from tile 1 on:   1 2 3   17 18 19

    Attributes:
        first: the tile of cell 0.
        parts: of each dimension, the slowest first.
        chips: the chips over which the parts of each dimension are spread; () for one chip.
        apart: the distance in tiles from a chip to the next; 0 for one chip.
    """

    first: int
    parts: tuple[int, ...]
    chips: tuple[int, ...] = ()
    apart: int = 0

    @cached_property
    def count(self) -> int:
        """The number of cells, which is the number of tiles."""
        return prod(self.parts)

    @property
    def on_a_chip(self) -> int:
        """The number of cells on each chip."""
        return self.count // prod(self.chips)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The distance in tiles from one part to the next on the same chip, for each dimension."""
        each = self.parts
        if self.chips:
            each = [n // k for n, k in zip(each, self.chips, strict=True)]
        return tuple(prod(each[i + 1 :]) for i in range(len(each)))

    def along(self, dim: int) -> NDArray[np.int64]:
        """What each part of a dimension adds to the number of the tile: (parts,)."""
        part = np.arange(self.parts[dim])
        if not self.chips:
            return part * self.weights[dim]
        chip, own = np.divmod(part, self.parts[dim] // self.chips[dim])
        return chip * (prod(self.chips[dim + 1 :]) * self.apart) + own * self.weights[dim]

    @property
    def end(self) -> int:
        """The tile after the last one."""
        chips = prod(self.chips)
        return self.first + (chips - 1) * self.apart + self.count // chips

    @property
    def span(self) -> tuple[int, int]:
        """The smallest range that contains all of the tiles: the first, and one past the last."""
        return self.first, self.end

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The range of tiles on each chip: the first, and one past the last."""
        begins = (self.first + chip * self.apart for chip in range(prod(self.chips)))
        return tuple((begin, begin + self.on_a_chip) for begin in begins)

    def used_chips(self, chip_tiles: int) -> NDArray[np.int64]:
        """The chips of a machine that have some of these tiles, each once, in order.

        Args:
            chip_tiles: the tiles of a chip of the machine.
        """
        begins, ends = np.array(self.spans).T
        # Cells in a row may go on from a chip to the next.
        first, last = begins // chip_tiles, (ends - 1) // chip_tiles
        more = np.arange(int((last - first).max(initial=0)) + 1)
        return np.unique(np.minimum(first[:, None] + more, last[:, None]))

    @property
    def rows(self) -> Rows:
        """Selects the tiles in an array with a row a tile."""
        return _table(self) if self.chips else slice(self.first, self.end)

    @overload
    def of(self, cell: int) -> int: ...
    @overload
    def of(self, cell: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def of(self, cell: int | NDArray[np.int64]) -> int | NDArray[np.int64]:
        """The tile of each cell."""
        if not self.chips:
            return self.first + cell
        return int(_table(self)[cell]) if isinstance(cell, int) else _table(self)[cell]

    def spread(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Values of cells as values of all tiles from the first to the last; 0 between chips."""
        if not self.chips:
            return values
        found = np.zeros(self.end - self.first, values.dtype)
        found[_table(self) - self.first] = values
        return found

    def cells_on(self, tiles: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cell on each tile; -1 for a tile that holds none."""
        if not self.chips:
            cells = tiles - self.first
            return np.where((cells >= 0) & (cells < self.count), cells, -1)
        at = tiles - self.first
        cells = _cells(self)
        inside = (at >= 0) & (at < len(cells))
        return np.where(inside, cells[np.where(inside, at, 0)], -1)

    def cell_on(self, tile: int) -> int:
        """The cell on a tile. Raises ValueError if there is none."""
        cell = int(self.cells_on(np.array([tile]))[0])
        if cell < 0:
            raise ValueError(f"tile {tile} holds no cell; tiles {self} do")
        return cell

    def __contains__(self, tile: int) -> bool:
        return any(first <= tile < end for first, end in self.spans)

    def __str__(self) -> str:
        return ", ".join(f"{first}..{end - 1}" for first, end in self.spans)


@kept_tables(len, entries=4096)
def _table(tiles: Tiles) -> NDArray[np.int64]:
    """The tile of each cell: (cells,). Read-only."""
    table = np.full((), tiles.first, np.int64)
    for dim in range(len(tiles.parts)):
        table = np.add.outer(table, tiles.along(dim))
    table = table.ravel()
    table.flags.writeable = False
    return table


@kept_tables(len, entries=4096)
def _cells(tiles: Tiles) -> NDArray[np.int64]:
    """The cell on each tile from the first to the last; -1 between chips. Read-only."""
    cells = np.full(tiles.end - tiles.first, -1, np.int64)
    cells[_table(tiles) - tiles.first] = np.arange(tiles.count)
    cells.flags.writeable = False
    return cells


class TileSets:
    """Which of several sets of tiles have a tile in common.

    Sets on every other chip have none, although the range of tiles from the first to the last of
    one contains tiles of the other.

    Attributes:
        number: of each set, (sets,). Equal sets have the same number.
        are_ranges: whether each set is a range of tiles.
    """

    def __init__(self, sets: Sequence[Tiles]) -> None:
        index: dict[tuple[int, int, int, int], int] = {}
        keys = ((t.first, t.on_a_chip, prod(t.chips), t.apart) for t in sets)
        self.number = np.array([index.setdefault(key, len(index)) for key in keys], np.int64)
        first, tiles, chips, apart = np.array([*index], np.int64).reshape(-1, 4).T
        self.are_ranges = bool((chips == 1).all())
        # The ranges of all different sets, one set after the other.
        self._stop = np.cumsum(chips)
        self._begin = self._stop - chips
        chip = np.arange(int(chips.sum())) - np.repeat(self._begin, chips)
        self._first = np.repeat(first, chips) + chip * np.repeat(apart, chips)
        self._end = self._first + np.repeat(tiles, chips)
        self._known: dict[int, NDArray[np.bool_]] = {}

    def _met(self, number: int) -> NDArray[np.bool_]:
        """Whether each of the different sets has a tile in common with one of them."""
        if number not in self._known:
            ranges = slice(self._begin[number], self._stop[number])
            begun = np.searchsorted(self._first[ranges], self._end, side="left")
            ended = np.searchsorted(self._end[ranges], self._first, side="right")
            self._known[number] = np.logical_or.reduceat(begun > ended, self._begin)
        return self._known[number]

    def meeting(self, index: int, others: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a set has a tile in common with each of some others: (others,)."""
        return self._met(int(self.number[index]))[self.number[others]]

    def meet(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the sets of each pair have a tile in common: (pairs,)."""
        found = np.zeros(len(left), np.bool_)
        one, other = self.number[left], self.number[right]
        for number in np.unique(one).tolist():
            at = one == number
            found[at] = self._met(number)[other[at]]
        return found


def check_spread(parts: Sequence[int], chips: Sequence[int], apart: int) -> None:
    """Raise ValueError if parts cannot be spread over chips that are so many tiles apart.

    Args:
        chips: for the parts of each dimension; empty for one chip.
    """
    if len(chips) not in (0, len(parts)):
        raise ValueError(f"across {list(chips)}; need a number for each of {len(parts)} dimensions")
    for n, k in zip(parts, chips, strict=False):
        if k < 1 or n % k:
            raise ValueError(f"{n} parts across {k} chips; need a multiple")
    if prod(chips) == 1:
        if apart or chips:
            raise ValueError(f"across {list(chips)} apart {apart}; need several chips, or neither")
        return
    cells = prod(parts) // prod(chips)
    if not cells <= apart <= MOST_TILES:
        raise ValueError(
            f"{cells} cells on each chip, and chips {apart} tiles apart; need {cells} to "
            f"{MOST_TILES} tiles"
        )


def digits_of_chips(tiles: Tiles, chip_tiles: int) -> tuple[int, ...] | None:
    """The chips over which the parts of each dimension are spread, where cells in a row fill
    several chips. None if they fill none, or only one.

    Args:
        chip_tiles: the tiles of a chip.
    """
    left, rest = divmod(tiles.count, chip_tiles)
    if tiles.chips or tiles.first % chip_tiles or rest or left == 1:
        return None
    found = [1] * len(tiles.parts)
    for d, parts in enumerate(tiles.parts):
        # The slowest digits count chips.
        found[d] = parts if left % parts == 0 else left
        if parts % found[d]:
            return None
        left //= found[d]
    return tuple(found)


def in_common(one: Tiles, other: Tiles) -> tuple[Rows, Rows]:
    """The cells of two grids that lie on the same tiles: the cells of one, and those of the other.

    Both are in the same order.
    """
    if one.chips or other.chips:
        cells = other.cells_on(one.of(np.arange(one.count)))
        there = np.flatnonzero(cells >= 0)
        return there, cells[there]
    begin = max(one.first, other.first)
    end = max(min(one.end, other.end), begin)
    return (
        slice(begin - one.first, end - one.first),
        slice(begin - other.first, end - other.first),
    )
