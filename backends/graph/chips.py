"""Vertices on each chip, and edges from chip to chip, counted without listing them.

The tile of a vertex is a sum of what its parts along each dimension add, and so is its chip, unless
these sums carry from chip to chip. Pairs of vertices are products of factors, and so are their
counts by pair of chips.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ...ir.geometry.pairs import Factor, Pairs
from ...ir.support.arrays import Integers

Numbers = tuple[Integers, Integers]

LISTED = 1 << 22
"""Edges in a block of those that have to be listed."""


@dataclass(frozen=True, eq=False)
class ChipCounts:
    """The vertices and edges of a graph, by chip; edges around a loop are left out.

    Attributes:
        vertices, connections: on each chip, (chips,).
        pair: source chip * chips + destination chip, of pairs that an edge joins, (pairs,).
        edges, bytes: of each of these pairs, (pairs,).
    """

    vertices: Integers
    connections: Integers
    pair: Integers
    edges: Integers
    bytes: Integers

    @property
    def chips(self) -> int:
        """The number of chips."""
        return len(self.vertices)

    @property
    def source(self) -> Integers:
        """The chip of the producers, of each pair: (pairs,)."""
        return self.pair // self.chips

    @property
    def destination(self) -> Integers:
        """The chip of the consumers, of each pair: (pairs,)."""
        return self.pair % self.chips

    @property
    def between(self) -> int:
        """The edges from one chip to another."""
        return int(self.edges[self.source != self.destination].sum())


@dataclass(frozen=True, eq=False)
class SetChips:
    """The chips of the vertices of one set, which are numbered row-major over their parts.

    Attributes:
        first: the chip of vertex 0.
        parts: for each dimension, the chips that each part adds, (parts,) each.
    """

    first: int
    parts: tuple[Integers, ...]

    @staticmethod
    def of(first: int, parts: Sequence[Integers], chip_tiles: int) -> SetChips | None:
        """The chips of vertices; None if they are no sum.

        Args:
            first: the tile of vertex 0.
            parts: for each dimension, the tiles that each part adds.
            chip_tiles: tiles of a chip.
        """
        chip, rest = divmod(first, chip_tiles)
        chips, rests = zip(*(np.divmod(each, chip_tiles) for each in parts)) if parts else ((), ())
        if rest + sum(int(each.max(initial=0)) for each in rests) >= chip_tiles:
            return None
        return SetChips(chip, chips)

    def added(self, numbers: Integers) -> Integers:
        """What these vertices' parts add to the number of the chip: (numbers,)."""
        total, weight = np.zeros(len(numbers), np.int64), 1
        for each in reversed(self.parts):
            if each.any():
                total += each[numbers // weight % len(each)]
            weight *= len(each)
        return total

    def counts(self, chips: int) -> Integers:
        """Vertices on each chip: (chips,)."""
        along = [np.bincount(each) for each in self.parts]
        every = reduce(np.convolve, along, np.ones(1, np.int64))
        found = np.zeros(chips, np.int64)
        found[self.first : self.first + len(every)] = every[: chips - self.first]
        return found


def pair_counts(
    pairs: Pairs, source: SetChips, destination: SetChips, chips: int
) -> tuple[Integers, Integers, Integers]:
    """The pairs of chips that some pairs of vertices join, and how many pairs and shared elements
    each has: (found,) each."""
    known = [_factor_counts(each, source, destination, chips) for each in pairs.factors]
    start = np.array([source.first * chips + destination.first]), np.ones(1, np.int64)
    keys, counts, shared = start[0], start[1], start[1]
    for more, count, elements in known:
        keys = np.add.outer(keys, more).ravel()
        counts = np.multiply.outer(counts, count).ravel()
        shared = np.multiply.outer(shared, elements).ravel()
    return keys, counts, shared


def _factor_counts(
    factor: Factor, source: SetChips, destination: SetChips, chips: int
) -> tuple[Integers, Integers, Integers]:
    """The pairs of chips that a factor adds, and how many pairs and shared elements each has."""
    key = source.added(factor.source) * chips + destination.added(factor.destination)
    keys, which = np.unique(key, return_inverse=True)
    shared = np.zeros(len(keys), np.int64)
    np.add.at(shared, which, factor.shared)
    return keys, np.bincount(which, minlength=len(keys)).astype(np.int64), shared


def listed_pair_counts(
    pairs: Pairs, source: Integers, destination: Integers, chips: int
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """The same as pair_counts, block by block, of vertices whose chips are listed.

    Args:
        source, destination: the chip of each vertex of both sets.
    """
    for one, other, elements in pairs.blocks(LISTED):
        key = source[one] * chips + destination[other]
        keys, which = np.unique(key, return_inverse=True)
        shared = np.zeros(len(keys), np.int64)
        np.add.at(shared, which, elements)
        yield keys, np.bincount(which, minlength=len(keys)).astype(np.int64), shared
