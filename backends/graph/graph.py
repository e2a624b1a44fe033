"""The compiled graph: vertex sets, the links between them, and their tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ...dialects.steps import Vertices
from ...ir.geometry.pairs import Pairs
from ...ir.phases import FORWARD, Phases, several
from ...ir.provenance import line_of, origin
from ...ir.support.arrays import Integers
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ..target import Target
from .chips import ChipCounts, listed_pair_counts, pair_counts
from .columns import SetColumns
from .flow import flow_of, set_of
from .layers import layers_of
from .links import reaches
from .memory import check_memory
from .parts import fields_of, vertex_count

MOST_IDS = 2**31 - 1
"""Vertices that a graph can have: their ids are 32-bit integers."""

VERTEX_BYTES = 32
"""Bytes per vertex in memory: its columns, and temporaries.

The columns take 23 bytes, or 25 with more than 2**15 tiles. The temporaries take up to 20 bytes
for each of at most `columns.MOST` vertices. Measured: 23.5 bytes per vertex of ResNet-50 on mk2
(4.4 million vertices), 25.3 for a single set of 8.4 million, and 35.0 for a set of a million, which
is 3 MB more than this number allows for.
"""


@dataclass(frozen=True)
class VertexSet:
    """The vertices of one operation: one codelet on every cell and worker part of a split.

    Their ids are [first, first + count).

    Attributes:
        compute_set: the number of the superstep or compute set, in program order.
        name: its name.
        origin: the name of the node that it came from.
        layer: that name without the steps of its lowering, for pictures.
        phase: of a step of training; forward in any other program.
        connections: the number of operands and results of all its vertices.
        line: of the user's file, such as net.py:12; "" if it is not known.
    """

    index: int
    compute_set: int
    name: str
    origin: str | None
    layer: str
    codelet: str
    first: int
    count: int
    phase: str = FORWARD
    connections: int = 0
    line: str = ""


@dataclass(frozen=True)
class Link:
    """The edges from one vertex set to one operand of another.

    Attributes:
        producer, consumer: indices of vertex sets.
        loop: whether the edges exist only around a loop.
        bytes: the bytes of all edges together.
    """

    producer: int
    consumer: int
    operand: int
    count: int
    loop: bool
    bytes: int


@dataclass(frozen=True, eq=False)
class EdgeBlock:
    """Some edges of one link: (n,) each.

    Attributes:
        link: the index in the graph's links.
        bytes: of the elements that the consuming vertex reads from the producing vertex.
    """

    link: int
    producer: NDArray[np.int32]
    consumer: NDArray[np.int32]
    bytes: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Graph:
    """The vertices and edges of a compiled program, as `counts` defines them.

    Attributes:
        target, tiles, chips: of the machine that it was compiled for.
    """

    sets: tuple[VertexSet, ...]
    links: tuple[Link, ...]
    target: str
    tiles: int
    chips: int
    _columns: tuple[SetColumns, ...]
    _pairs: tuple[Pairs, ...]
    _itemsizes: tuple[int, ...]

    @property
    def vertex_count(self) -> int:
        """The number of vertices."""
        return sum(each.count for each in self.sets)

    @property
    def edge_count(self) -> int:
        """The number of edges, without edges that exist only around a loop."""
        return sum(link.count for link in self.links if not link.loop)

    @property
    def loop_edge_count(self) -> int:
        """The number of edges that exist only around a loop."""
        return sum(link.count for link in self.links if link.loop)

    @property
    def crossing_count(self) -> int:
        """The number of edges between vertices on different chips, without loop edges."""
        return self.by_chip.between if self.chips > 1 else 0

    @property
    def connection_count(self) -> int:
        """The number of connections: the operands and results of all vertices."""
        return sum(each.connections for each in self.sets)

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases of its vertices, in order; empty if all are forward."""
        return several(each.phase for each in self.sets)

    @property
    def compute_sets(self) -> tuple[str, ...]:
        """The names of the supersteps or compute sets, by number."""
        return tuple({each.compute_set: each.name for each in self.sets}.values())

    def vertices(self, first: int = 0, last: int | None = None) -> dict[str, NDArray[Any]]:
        """The columns of the vertices with ids [first, last): (last - first,) each.

        id: int32. tile: int16, or int32 on machines with more than 2**15 tiles. worker: int8, -1
        for a codelet that the supervisor runs with all workers. set, compute_set: int32, indices of
        vertex sets and compute sets. cycles: int32, as if all workers ran such vertices at the same
        time. bytes: int32, the bytes that it writes.
        Raises InputError for ids that do not exist, and for more vertices than fit in memory.
        """
        last = self.vertex_count if last is None else last
        if not 0 <= first <= last <= self.vertex_count:
            raise InputError(
                f"vertices [{first}, {last}); need a range of [0, {self.vertex_count})"
            )
        n = last - first
        check_memory(n * VERTEX_BYTES, f"{n:,} vertices at once")
        tile = np.int16 if self.tiles <= 2**15 else np.int32
        columns: dict[str, NDArray[Any]] = {
            "id": np.arange(first, last, dtype=np.int32),
            "tile": np.empty(n, tile),
            "worker": np.empty(n, np.int8),
            "set": np.empty(n, np.int32),
            "compute_set": np.empty(n, np.int32),
            "cycles": np.empty(n, np.int32),
            "bytes": np.empty(n, np.int32),
        }
        for each, made in zip(self.sets, self._columns, strict=True):
            start, stop = max(first, each.first), min(last, each.first + each.count)
            if start >= stop:
                continue
            here = slice(start - first, stop - first)
            columns["set"][here] = each.index
            columns["compute_set"][here] = each.compute_set
            names = ("tile", "worker", "cycles", "bytes")
            made.write({name: columns[name][here] for name in names}, start - each.first)
        return columns

    @cached_property
    def by_chip(self) -> ChipCounts:
        """The vertices on each chip, and the edges from chip to chip, without those that exist only
        around a loop.

        No vertex and no edge is listed, unless a set has vertices whose chips do not follow from
        their parts alone.
        """
        chips, width = self.chips, self.tiles // self.chips
        known = [each.chips(width) for each in self._columns]
        listed = cache(self._chips_of)
        vertices, connections = np.zeros((2, chips), np.int64)
        for k, (each, on) in enumerate(zip(self.sets, known, strict=True)):
            own = np.bincount(listed(k), minlength=chips) if on is None else on.counts(chips)
            vertices += own
            connections += own * (each.connections // max(each.count, 1))
        edges, size = np.zeros((2, chips * chips), np.int64)
        for link, pairs, itemsize in zip(self.links, self._pairs, self._itemsizes, strict=True):
            if link.loop:
                continue
            source, destination = known[link.producer], known[link.consumer]
            if source is None or destination is None:
                ends = listed(link.producer), listed(link.consumer)
                found = listed_pair_counts(pairs, *ends, chips)
            else:
                found = [pair_counts(pairs, source, destination, chips)]
            for keys, count, shared in found:
                np.add.at(edges, keys, count)
                np.add.at(size, keys, shared * itemsize)
        (pair,) = np.nonzero(edges)
        return ChipCounts(vertices, connections, pair, edges[pair], size[pair])

    def _chips_of(self, index: int) -> Integers:
        """The chip of each vertex of a set: (vertices,)."""
        of = self.sets[index]
        tile = self.vertices(of.first, of.first + of.count)["tile"]
        return tile.astype(np.int64) // (self.tiles // self.chips)

    def edges(self, most: int = 4_000_000, loops: bool = False) -> Iterator[EdgeBlock]:
        """The edges, link by link, in blocks of at most `most` edges.

        The caller may keep and change the blocks.

        Args:
            loops: whether to include edges that exist only around a loop.
        """
        for index, link in enumerate(self.links):
            if loops or not link.loop:
                yield from self.edges_of(index, most)

    def edges_of(self, link: int, most: int = 4_000_000) -> Iterator[EdgeBlock]:
        """The edges of one link, in blocks of at most `most` edges."""
        ends = self.links[link]
        first, second = self.sets[ends.producer].first, self.sets[ends.consumer].first
        for producer, consumer, shared in self._pairs[link].blocks(most):
            producer += first
            consumer += second
            shared *= self._itemsizes[link]
            yield EdgeBlock(link, producer, consumer, shared)


def graph_of(module: ModuleOp, target: Target) -> Graph:
    """The graph of a tile or exchange module that was compiled for a target.

    No vertex or edge is listed yet: each set and link is described axis by axis.
    Raises InputError if the module has no entry function or names an unknown variable, and for a
    graph of more than MOST_IDS vertices.
    """
    flow = flow_of(module)
    numbers: dict[Operation, int] = {}
    phases = Phases.of(module)
    layers = layers_of([set_of(op) or op for op in flow.vertices])
    sets: list[VertexSet] = []
    first = 0
    for op in flow.vertices:
        outer = set_of(op)
        count = vertex_count(op.space.data, op.plan.data)
        sets.append(
            VertexSet(
                index=len(sets),
                compute_set=numbers.setdefault(outer or op, len(numbers)),
                name=outer.sym_name.data if outer else op.destination,
                origin=origin(op) or origin(outer or op),
                layer=layers[len(sets)],
                codelet=codelet_name(op),
                first=first,
                count=count,
                phase=phases.phase(origin(op) or origin(outer or op)),
                connections=count * fields_of(op),
                line=line_of(op) or line_of(outer or op),
            )
        )
        first += count
    if first > MOST_IDS:
        raise InputError(f"a graph of {first:,} vertices; need at most {MOST_IDS:,}")
    index: dict[Operation, int] = {op: i for i, op in enumerate(flow.vertices)}
    links: list[Link] = []
    products: list[Pairs] = []
    itemsizes: list[int] = []
    for reach in sorted(
        (each for each in reaches(flow) if isinstance(each.producer, Vertices)),
        key=lambda each: (index[each.consumer], each.operand, index[each.producer], each.loop),
    ):
        pairs = reach.pairs
        if not pairs.count:
            continue
        itemsize = flow.variables[reach.consumer.sources[reach.operand]].dtype.itemsize
        ends = index[reach.producer], index[reach.consumer]
        size = pairs.shared_elements * itemsize
        links.append(Link(*ends, reach.operand, pairs.count, reach.loop, size))
        products.append(pairs)
        itemsizes.append(itemsize)
    return Graph(
        sets=tuple(sets),
        links=tuple(links),
        target=target.spelling(),
        tiles=target.tiles,
        chips=target.chips,
        _columns=tuple(SetColumns(op, flow.variables, target) for op in flow.vertices),
        _pairs=tuple(products),
        _itemsizes=tuple(itemsizes),
    )


def codelet_name(op: Vertices) -> str:
    """The codelet that a vertex runs: its method, if any, and its body without parameters."""
    body = op.body.data
    core = " ".join(filter(None, (op.plan.data.method, body.function, body.combiner)))
    if body.signature is not None:
        core = body.signature.name
    elif body.along is not None:
        core += f" along {body.along.name}"
    then = ", ".join(stage.function for stage in body.then)
    return f"{core} then {then}" if then else core
