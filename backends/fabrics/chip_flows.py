"""Who sends to whom between chips, without a list of the pairs of tiles.

The chip of a cell is a sum of digits, one for each dimension of its layout. What two layouts share
is a product over groups of axes. So the chips that a cell reaches are a product as well, and there
are as many rows as cells reach chips. On a pod, pairs of tiles are many times as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from ...ir.geometry.layout import Layout, with_gaps
from ...ir.geometry.overlap import Overlap, sent_elements
from ...ir.support.arrays import Integers
from .traffic import Carried, Flows

MOST_ROWS = 1 << 22
"""Rows that are listed at once, unless a single group of axes has more. Chosen by judgement: a
quarter of a gigabyte with all that is computed from them."""


class Reached(NamedTuple):
    """A row for each cell and each chip that it sends to, or receives from; (rows,) each.

    Attributes:
        tile: of the cell.
        chip: the other chip.
        bytes: that it sends to the chip, each word once. Those of rows of receivers mean nothing.
    """

    tile: Integers
    chip: Integers
    bytes: Integers


@dataclass(frozen=True)
class Chips:
    """The chips of a machine.

    Attributes:
        count: how many there are.
        tiles: of a chip.
    """

    count: int
    tiles: int

    def of(self, tile: Integers) -> Integers:
        """The chip of each tile. Tiles behind the last chip count as tiles of this one."""
        return np.minimum(tile // self.tiles, self.count - 1)

    def digits(self, layout: Layout) -> _Digits | None:
        """The chip of every cell of a layout as a sum; None if it is no such sum."""
        layout = with_gaps(layout, self.tiles)
        tiles = layout.tiles
        first, rest = divmod(tiles.first, self.tiles)
        if rest + tiles.on_a_chip > self.tiles or tiles.apart % self.tiles:
            return None
        if (tiles.end - 1) // self.tiles >= self.count:
            return None
        each: list[Integers] = []
        for d, parts in enumerate(tiles.parts):
            chips = tiles.chips[d] if tiles.chips else 1
            digit = np.arange(parts) // (parts // chips)
            each.append(digit * (prod(tiles.chips[d + 1 :]) * tiles.apart // self.tiles))
        return _Digits(first, tuple(each))

    def senders(self, carried: Carried) -> Iterator[Reached]:
        """The chips to which each cell of the source sends."""
        yield from self._reached(carried, senders=True)

    def receivers(self, carried: Carried) -> Iterator[Reached]:
        """The chips from which each cell of the destination receives."""
        yield from self._reached(carried, senders=False)

    def pairs(self, carried: Iterable[Carried]) -> tuple[Integers, Integers]:
        """The pairs of chips between which copies move anything, each once, source * chips +
        destination, and the bytes of each, each word once."""
        total = np.zeros(self.count * self.count, np.int64)
        for each in carried:
            for rows in self.senders(each):
                pair = self.of(rows.tile) * self.count + rows.chip
                total += np.bincount(pair, rows.bytes, len(total)).astype(np.int64)
        found = np.flatnonzero(total)
        return found, total[found]

    def _reached(self, carried: Carried, *, senders: bool) -> Iterator[Reached]:
        shared = carried.shared
        of, to = self.digits(shared.source), self.digits(shared.destination)
        if of is not None and to is not None and of.only == to.only >= 0:
            return
        # A tile that holds a replica reads that, so which chips send is no product.
        if shared.source.replicas > 1 or of is None or to is None:
            flows = carried.flows()
            yield self._senders_of(flows) if senders else self._receivers_of(flows)
        elif senders:
            limit = sent_elements(shared)
            layout, product = shared.source, _to_chips(shared, to, self.count)
            for cell, chip, count in _multiplied(layout, product, to.first):
                moved = np.minimum(count, limit[cell]) * carried.itemsize
                yield self._of_others(Reached(layout.tiles.of(cell), chip, moved))
        else:
            layout, product = shared.destination, _from_chips(shared, of, self.count)
            for cell, chip, count in _multiplied(layout, product, of.first):
                yield self._of_others(Reached(layout.tiles.of(cell), chip, count))

    def _of_others(self, rows: Reached) -> Reached:
        """The rows whose chip is not the one of the tile."""
        other = self.of(rows.tile) != rows.chip
        return Reached(*(each[other] for each in rows))

    def _senders_of(self, flows: Flows) -> Reached:
        last = max(int(each.max(initial=0)) for each in (flows.source, flows.destination))
        among = flows.among(self.of(np.arange(last + 1)))
        tile = np.zeros(len(flows.stream_bytes), np.int64)
        tile[flows.stream] = flows.source
        return Reached(tile[among.stream], among.destination, among.bytes)

    def _receivers_of(self, flows: Flows) -> Reached:
        key = np.unique(flows.destination * self.count + self.of(flows.source))
        tile, chip = np.divmod(key, self.count)
        return self._of_others(Reached(tile, chip, np.ones_like(tile)))


class _Digits(NamedTuple):
    """The chip of every cell of a layout: the first one, and what each part of a dimension adds.

    Attributes:
        each: for each dimension of the grid, (parts,).
    """

    first: int
    each: tuple[Integers, ...]

    @property
    def only(self) -> int:
        """The chip of all cells; -1 if there are several."""
        return -1 if any(digit.any() for digit in self.each) else self.first

    def of_parts(self, parts: tuple[int, ...], dims: tuple[int, ...], part: Integers) -> Integers:
        """What parts along some dimensions add.

        Args:
            parts: of all dimensions of the grid.
            part: row-major over the dimensions.
        """
        total = np.zeros(len(part), np.int64)
        at = np.unravel_index(part, tuple(parts[d] for d in dims)) if dims else ()
        for d, index in zip(dims, at, strict=True):
            total += self.each[d][index]
        return total


class _Factor(NamedTuple):
    """Rows along some dimensions: what they add to the number of a cell and of a chip, and the
    elements by which they multiply."""

    cell: Integers
    chip: Integers
    elements: Integers


def _multiplied(
    layout: Layout, factors: list[_Factor], first: int
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """The rows of a product: the cell, the chip and the elements of each.

    Args:
        first: the chip to which the factors add.
    """
    cell, chip, count = np.zeros(1, np.int64), np.full(1, first), np.ones(1, np.int64)
    # A tensor without axes has no factors.
    one = _Factor(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64))
    *others, last = sorted([one, *factors], key=lambda each: len(each.cell))
    for each in others:
        cell = (cell[:, None] + each.cell).ravel()
        chip = (chip[:, None] + each.chip).ravel()
        count = (count[:, None] * each.elements).ravel()
    some = max(MOST_ROWS // max(len(cell), 1), 1)
    for begin in range(0, len(last.cell), some):
        here = slice(begin, begin + some)
        yield (
            (cell[:, None] + last.cell[here]).ravel(),
            (chip[:, None] + last.chip[here]).ravel(),
            (count[:, None] * last.elements[here]).ravel(),
        )


def _to_chips(shared: Overlap, to: _Digits, chips: int) -> list[_Factor]:
    """The factors of what each cell of the source sends to each chip."""
    source, destination = shared.source, shared.destination
    found: list[_Factor] = []
    for g in shared.groups:
        chip = to.of_parts(destination.parts, g.destination_dims, g.shared.destination)
        found.append(_factor(source, g.source_dims, g.shared.source, chip, g.shared.count, chips))
    for d in _unnamed(shared):
        chip, copies = np.unique(to.each[d], return_counts=True)
        found.append(_Factor(np.zeros_like(chip), chip, copies))
    return found


def _from_chips(shared: Overlap, of: _Digits, chips: int) -> list[_Factor]:
    """The factors of what each cell of the destination receives from each chip."""
    source, destination = shared.source, shared.destination
    found: list[_Factor] = []
    for g in shared.groups:
        chip = of.of_parts(source.parts, g.source_dims, g.shared.source)
        part, dims = g.shared.destination, g.destination_dims
        found.append(_factor(destination, dims, part, chip, g.shared.count, chips))
    for d in _unnamed(shared):
        part = np.arange(destination.parts[d])
        found.append(_Factor(part * destination.weights[d], np.zeros_like(part), part * 0 + 1))
    return found


def _unnamed(shared: Overlap) -> list[int]:
    """The dimensions over which the destination repeats its blocks."""
    named = {d for group in shared.groups for d in group.destination_dims}
    return [d for d in shared.destination.split_dims if d not in named]


def _factor(
    layout: Layout,
    dims: tuple[int, ...],
    part: Integers,
    chip: Integers,
    count: Integers,
    chips: int,
) -> _Factor:
    """The rows of a group of axes: the elements that each part shares with each chip."""
    key, which = np.unique(part * chips + chip, return_inverse=True)
    part, chip = np.divmod(key, chips)
    cell = np.zeros(len(part), np.int64)
    at = np.unravel_index(part, tuple(layout.parts[d] for d in dims)) if dims else ()
    for d, index in zip(dims, at, strict=True):
        cell += index * layout.weights[d]
    return _Factor(cell, chip, np.bincount(which, count, len(key)).astype(np.int64))
