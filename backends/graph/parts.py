"""The parts of an iteration space that the vertices of a set work on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from ...dialects.abele import Plan
from ...dialects.steps import Vertices
from ...ir.geometry.grid import Cut
from ...ir.geometry.layout import Bounds
from ...ir.geometry.space import Space
from ...ir.support.arrays import Integers


@dataclass(frozen=True, eq=False)
class DimParts:
    """The non-empty parts of one dimension that vertices work on: (parts,) each.

    Attributes:
        first, last: the elements [first, last).
        cell: the number of the cell.
        thread: the number of the part in its cell.
        threads: the number of parts in that cell.
    """

    first: Integers
    last: Integers
    cell: Integers
    thread: Integers
    threads: Integers

    def __len__(self) -> int:
        return len(self.first)


def dim_parts(space: Space, plan: Plan) -> tuple[DimParts, ...]:
    """The parts of each dimension. Each combination of one part per dimension is a vertex.

    A cell's n elements make min(n, workers) parts, and the first n % workers of them have one
    element more. Vertices are numbered row-major over the parts.
    """
    workers = plan.workers or (1,) * len(space.dims)
    return tuple(_parts(*each) for each in zip(space.sizes, plan.split, workers, strict=True))


def vertex_parts(space: Space, plan: Plan) -> Bounds:
    """The first element of each part along each dimension, and one past its last."""
    return tuple((part.first, part.last) for part in dim_parts(space, plan))


def vertex_count(space: Space, plan: Plan) -> int:
    """The number of vertices of a set."""
    return prod(len(part) for part in dim_parts(space, plan))


def fields_of(op: Vertices) -> int:
    """The number of operands and results of each vertex of a set: its connections."""
    space = op.space.data
    return len(space.operands) + len(space.results)


@lru_cache(maxsize=4096)
def _parts(size: int, parts: int, workers: int) -> DimParts:
    edges = Cut(size, parts).edges()
    count = np.diff(edges)
    threads = np.minimum(count, workers)
    cell = np.repeat(np.arange(parts), threads)
    thread = np.arange(len(cell)) - np.repeat(np.cumsum(threads) - threads, threads)
    each, more = np.divmod(count, workers)
    first = edges[cell] + thread * each[cell] + np.minimum(thread, more[cell])
    last = first + each[cell] + (thread < more[cell])
    return DimParts(first, last, cell, thread, threads[cell])
