"""Graphs for tests of pictures: layers of vertices, each joined to the next."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abele.backends.graph import EdgeBlock, Link, VertexSet
from abele.ir.phases import PHASES


class LayeredGraph:
    """Layers in a chain. Each vertex is read by a few vertices at the same place of the next layer.

    names: of layers; one may end in a phase: "conv backward". Each layer has one vertex set of
    partials, joined within the layer too.
    """

    target = "tiny"
    tiles = 4
    chips = 1
    crossing_count = 0

    def __init__(self, names: tuple[str, ...] = ("a", "b", "c"), size: int = 40, fan: int = 3):
        self.sets: list[VertexSet] = []
        self.links: list[Link] = []
        self._edges: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        for name in names:
            node, _, phase = name.rpartition(" ")
            layer, phases = (node, [phase]) if phase in PHASES else (name, [])
            for part, count in (("/partials", size // 2), ("", size)):
                first = sum(each.count for each in self.sets)
                index = len(self.sets)
                self.sets.append(
                    VertexSet(
                        index,
                        index,
                        name + part,
                        name,
                        layer,
                        "sum",
                        first,
                        count,
                        *phases,
                    )
                )
                if index:
                    self._join(index - 1, index, fan * (4 if part == "" else 1))
        # An edge round a loop is listed, and never drawn.
        self.links.append(Link(0, 0, 0, 5, True, 0))
        self._edges.append((np.zeros(5, np.int32), np.zeros(5, np.int32)))

    def _join(self, one: int, other: int, fan: int) -> None:
        a, b = self.sets[one], self.sets[other]
        fan = min(fan, a.count)
        consumer = np.repeat(np.arange(b.count), fan)
        producer = (consumer * a.count // b.count + np.tile(np.arange(fan), b.count)) % a.count
        self.links.append(Link(one, other, 0, len(consumer), False, 4 * len(consumer)))
        self._edges.append(
            ((producer + a.first).astype(np.int32), (consumer + b.first).astype(np.int32))
        )

    @property
    def vertex_count(self) -> int:
        return sum(each.count for each in self.sets)

    @property
    def edge_count(self) -> int:
        return sum(link.count for link in self.links if not link.loop)

    def vertices(self, first: int = 0, last: int | None = None) -> dict[str, NDArray[Any]]:
        ids = np.arange(self.vertex_count, dtype=np.int32)
        set_of = np.repeat(np.arange(len(self.sets)), [each.count for each in self.sets])
        columns = {
            "id": ids,
            "tile": ids % 4,
            "worker": ids % 6,
            "set": set_of.astype(np.int32),
            "compute_set": set_of.astype(np.int32),
            "cycles": 10 + ids % 90,
            "bytes": ids * 0 + 4,
        }
        return {name: values[first:last] for name, values in columns.items()}

    def edges(self, most: int = 4_000_000, loops: bool = False) -> Iterator[EdgeBlock]:
        for index, (link, (producer, consumer)) in enumerate(zip(self.links, self._edges)):
            if link.loop and not loops:
                continue
            for first in range(0, len(producer), most):
                here = slice(first, first + most)
                yield EdgeBlock(
                    index, producer[here], consumer[here], np.full(len(producer[here]), 4, np.int32)
                )


class DenseBlocks(LayeredGraph):
    """Blocks in which every producer is joined to every consumer."""

    def __init__(self, blocks: int, producers: int, consumers: int):
        count = np.array([blocks * producers, blocks * consumers])
        self.sets = [
            VertexSet(k, k, name, name, name, "sum", int(k * count[0]), int(count[k]))
            for k, name in enumerate(("a", "b"))
        ]
        one, other = np.meshgrid(np.arange(producers), np.arange(consumers))
        shift = np.arange(blocks)[:, None]
        # Vertices are numbered across the blocks, so those of one block are not consecutive.
        self._ends = (
            (one.ravel() * blocks + shift).ravel().astype(np.int32),
            (other.ravel() * blocks + shift + count[0]).ravel().astype(np.int32),
        )
        self.links = [Link(0, 1, 0, len(self._ends[0]), False, 0)]

    def edges(self, most: int = 4_000_000, loops: bool = False) -> Iterator[EdgeBlock]:
        yield EdgeBlock(0, *self._ends, np.empty(0, np.int32))
