"""Pieces: the parts of vertex sets that lie on one chip each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .drawable import Drawable
from .forces import Ids


@dataclass(frozen=True, eq=False)
class Pieces:
    """The parts of vertex sets that lie on one chip each; on a machine of one chip, all sets.

    Attributes:
        of: the piece of each vertex, (n,).
        set_of, chip_of, size: the set, the chip, and the number of vertices of each piece,
            (pieces,) each.
    """

    of: Ids
    set_of: Ids
    chip_of: Ids
    size: NDArray[np.int64]

    @staticmethod
    def in_graph(graph: Drawable) -> Pieces:
        """The pieces of a graph, set by set, and chip by chip in each set."""
        counts = np.array([each.count for each in graph.sets], np.int64)
        sets = np.arange(len(counts), dtype=np.int32)
        set_of = np.repeat(sets, counts)
        if graph.chips == 1:
            return Pieces(set_of, sets, np.zeros(len(sets), np.int32), counts)
        width = graph.tiles // graph.chips
        found: list[Ids] = []
        for each in graph.sets:
            tile = graph.vertices(each.first, each.first + each.count)["tile"]
            found.append((tile // width).astype(np.int32))
        chip = np.concatenate(found)
        keys, of = np.unique(set_of.astype(np.int64) * graph.chips + chip, return_inverse=True)
        of_set, of_chip = np.divmod(keys, graph.chips)
        return Pieces(
            of.astype(np.int32),
            of_set.astype(np.int32),
            of_chip.astype(np.int32),
            np.bincount(of, minlength=len(keys)),
        )

    @property
    def count(self) -> int:
        """The number of pieces."""
        return len(self.set_of)

    def members(self) -> list[NDArray[np.int64]]:
        """The vertices of each piece, in the order of their ids."""
        order = np.argsort(self.of, kind="stable")
        return np.split(order, np.cumsum(self.size)[:-1])
