"""Computes the graph of a small program by following every element of every tensor."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from abele.backends.reference.moves import evaluate_moves
from abele.dialects.steps import Copy, Input, Vertices
from abele.dialects.variable import Variable
from abele.ir.geometry.layout import placement_order
from abele.ir.geometry.space import AccessMap, Space


def parts_of(size: int, parts: int) -> list[range]:
    """A range cut evenly, the longer parts first."""
    found, start = [], 0
    for p in range(parts):
        length = size // parts + (p < size % parts)
        found.append(range(start, start + length))
        start += length
    return found


@dataclass(frozen=True)
class Vertex:
    """One vertex: its range in each dimension, its cell, and its number in the cell."""

    ranges: tuple[range, ...]
    tile: int
    turn: int


def vertices_of(op: Vertices) -> list[Vertex]:
    """The vertices of a set, row-major over the parts of its dimensions."""
    plan, sizes = op.plan.data, op.space.data.sizes
    workers = plan.workers or (1,) * len(sizes)
    along = [
        [
            (c, range(cell.start + part.start, cell.start + part.stop))
            for c, cell in enumerate(parts_of(n, k))
            for part in parts_of(len(cell), w)
            if part
        ]
        for n, k, w in zip(sizes, plan.split, workers)
    ]
    turns: Counter[int] = Counter()
    found = []
    for parts in product(*along):
        cell = 0
        for d in placement_order(len(sizes), plan.order):
            cell = cell * plan.split[d] + parts[d][0]
        found.append(Vertex(tuple(r for _, r in parts), plan.first_tile + cell, turns[cell]))
        turns[cell] += 1
    return found


@dataclass
class ElementFlow:
    """Runs a program without control flow on tensors that hold the producer of each element.

    edges: number of elements by (producing vertex, consuming vertex, operand); vertices are
    numbered from 0 in program order. source_edges: by (source, consuming vertex, operand).
    vertices: of each set.
    """

    module: ModuleOp
    held: dict[str, np.ndarray] = field(default_factory=dict)
    vertices: list[tuple[Vertices, list[Vertex]]] = field(default_factory=list)
    count: int = 0
    sources: int = 0
    edges: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    source_edges: set[tuple[int, int, int]] = field(default_factory=set)

    def run(self) -> ElementFlow:
        self.shapes = {}
        for op in self.module.walk():
            if isinstance(op, Variable):
                self.shapes[op.symbol] = tuple(op.tensor.get_shape())
                self.held[op.symbol] = np.full(self.shapes[op.symbol], -1)
                if op.is_resident:
                    self.source(op.symbol)
            elif isinstance(op, Input):
                self.source(op.writes.string_value())
            elif isinstance(op, Copy):
                self.copy(op)
            elif isinstance(op, Vertices):
                self.compute(op)
        return self

    def source(self, name: str) -> None:
        """Sources are numbered -2, -3, ...: -1 is padding."""
        self.sources += 1
        self.held[name] = np.full(self.shapes[name], -1 - self.sources)

    def copy(self, op: Copy) -> None:
        shape = self.shapes[op.destination]
        sources = [self.held[name] for name in op.sources]
        if op.spaces is None:
            self.held[op.destination] = sources[0].reshape(shape)
            return
        moves = [
            Space(s.dims, (AccessMap(s.operands[0].axes, -1.0),), s.results) for s in op.spaces
        ]
        self.held[op.destination] = evaluate_moves(moves, sources, shape, np.dtype(np.int64))

    def compute(self, op: Vertices) -> None:
        space = op.space.data
        mine = vertices_of(op)
        for number, vertex in enumerate(mine, self.count):
            for operand, (access, name) in enumerate(zip(space.operands, op.sources)):
                for owner, elements in self.read(access, name, vertex).items():
                    if owner >= 0:
                        self.edges[owner, number, operand] += elements
                    elif owner < -1:
                        self.source_edges.add((owner, number, operand))
        for access, name in zip(space.results, op.destinations):
            result = np.zeros(access.shape, np.int64)
            for number, vertex in enumerate(mine, self.count):
                axes = [
                    np.array(vertex.ranges[a.terms[0][0]]) + a.offset
                    if a.terms
                    else np.array([a.offset])
                    for a in access.axes
                ]
                result[np.ix_(*axes)] = number
            self.held[name] = result.reshape(self.shapes[name])
        self.vertices.append((op, mine))
        self.count += len(mine)

    def read(self, access: AccessMap, name: str, vertex: Vertex) -> Counter[int]:
        """The owners of all elements that a vertex touches, and the number of elements of each."""
        owners = self.held[name].reshape(access.shape)
        points = np.meshgrid(*vertex.ranges, indexing="ij")
        shape = tuple(map(len, vertex.ranges))
        indices = [
            axis.resolve(
                np.broadcast_to(axis.offset + sum(a * points[d] for d, a in axis.terms), shape)
            ).ravel()
            for axis in access.axes
        ]
        if not indices:
            return Counter(owners.ravel().tolist())
        together = np.unique(np.stack(indices, axis=1), axis=0)
        inside = together[(together >= 0).all(axis=1)]
        return Counter(owners[tuple(inside.T)].tolist())
