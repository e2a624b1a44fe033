"""A part of a graph's vertices, for hosts without enough memory to draw all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....backends.graph import EdgeBlock, Link, VertexSet
from .drawable import Drawable


@dataclass(frozen=True)
class Sampled:
    """Every share-th vertex of each set of a graph, and the edges among them."""

    whole: Drawable
    share: int

    @property
    def sets(self) -> tuple[VertexSet, ...]:
        """The sets, with the ids of their vertices in this graph."""
        return self._sets

    @property
    def links(self) -> tuple[Link, ...]:
        """The links, with the number of edges that are kept."""
        return self._links

    @cached_property
    def _sets(self) -> tuple[VertexSet, ...]:
        found: list[VertexSet] = []
        first = 0
        for each in self.whole.sets:
            count = -(-each.count // self.share)
            found.append(replace(each, first=first, count=count))
            first += count
        return tuple(found)

    @cached_property
    def _links(self) -> tuple[Link, ...]:
        counts = np.zeros(len(self.whole.links), np.int64)
        for block in self.whole.edges():
            counts[block.link] += int(self._kept(block).sum())
        return tuple(
            replace(link, count=int(count)) for link, count in zip(self.whole.links, counts)
        )

    @property
    def vertex_count(self) -> int:
        """The number of vertices that are kept."""
        return sum(each.count for each in self.sets)

    @property
    def edge_count(self) -> int:
        """The number of edges that are kept."""
        return sum(link.count for link in self.links if not link.loop)

    @property
    def crossing_count(self) -> int:
        """The number of kept edges that lead from one chip to another."""
        return self._crossing_count

    @cached_property
    def _crossing_count(self) -> int:
        if self.chips == 1:
            return 0
        chip = self.vertices()["tile"] // (self.tiles // self.chips)
        blocks = self.edges()
        return sum(int((chip[b.producer] != chip[b.consumer]).sum()) for b in blocks)

    @property
    def target(self) -> str:
        """The machine that the whole graph was compiled for."""
        return self.whole.target

    @property
    def tiles(self) -> int:
        """The number of tiles of that machine."""
        return self.whole.tiles

    @property
    def chips(self) -> int:
        """The number of chips of that machine."""
        return self.whole.chips

    def vertices(self, first: int = 0, last: int | None = None) -> dict[str, NDArray[Any]]:
        """Columns of the vertices with ids [first, last) in this graph."""
        parts = [
            {
                name: values[:: self.share]
                for name, values in self.whole.vertices(each.first, each.first + each.count).items()
            }
            for each in self.whole.sets
        ]
        names = parts[0] if parts else ()
        return {name: np.concatenate([p[name] for p in parts])[first:last] for name in names}

    def edges(self, most: int = 4_000_000, loops: bool = False) -> Iterator[EdgeBlock]:
        """The edges between vertices that are kept, with their ids in this graph."""
        for block in self.whole.edges(most, loops):
            kept = self._kept(block)
            link = self.whole.links[block.link]
            yield EdgeBlock(
                block.link,
                self._number(block.producer[kept], link.producer),
                self._number(block.consumer[kept], link.consumer),
                block.bytes[kept],
            )

    def _kept(self, block: EdgeBlock) -> NDArray[np.bool_]:
        link = self.whole.links[block.link]
        ends = (block.producer, link.producer), (block.consumer, link.consumer)
        one, other = ((ids - self.whole.sets[index].first) % self.share == 0 for ids, index in ends)
        return one & other

    def _number(self, ids: NDArray[np.int32], index: int) -> NDArray[np.int32]:
        inside = (ids - self.whole.sets[index].first) // self.share
        return (inside + self.sets[index].first).astype(np.int32)
