"""Groups of vertices: vertices of a set that have the same neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....ir.support.on_step import OnStep
from .drawable import Drawable
from .forces import Floats, Ids
from .kernels import add_others

VERTICES, MOST_GROUPS = 16, 60_000
"""The smallest average number of vertices per group, and the most groups."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of vertices that are drawn together.

    Attributes:
        group_of, inside: (n,), the group of each vertex, and its index in the group.
        set_of, size: (groups,), the vertex set of each group, and its number of vertices.
    """

    group_of: Ids
    inside: Ids
    set_of: Ids
    size: Ids


def grouped(graph: Drawable, on_step: OnStep) -> Groups:
    """Groups of the vertices of each set, by their neighbours.

    Half of the groups are shared out by the number of vertices, and half by the number of edges.
    Otherwise a few vertices with many edges each would all be in one place. Example: products whose
    results are added up by thousands of vertices.
    """
    counts = np.array([each.count for each in graph.sets], np.int64)
    groups = _shares(graph, counts)
    bases, starts = np.cumsum(groups) - groups, np.cumsum(counts) - counts
    others = mean_others(graph, on_step)
    group_of, inside = np.empty((2, len(others)), np.int32)
    for k in range(len(counts)):
        first, count = int(starts[k]), int(counts[k])
        order = first + np.argsort(others[first : first + count], kind="stable")
        rank = np.arange(count, dtype=np.int64)
        mine = rank * int(groups[k]) // count
        group_of[order] = bases[k] + mine
        inside[order] = rank - -(-mine * count // int(groups[k]))
    size = np.bincount(group_of, minlength=int(groups.sum())).astype(np.int32)
    set_of = np.repeat(np.arange(len(counts), dtype=np.int32), groups)
    return Groups(group_of, inside, set_of, size)


def _shares(graph: Drawable, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of groups of each set: at least one, and at most one per vertex."""
    ends = np.zeros(len(counts), np.int64)
    for link in graph.links:
        if not link.loop:
            ends[[link.producer, link.consumer]] += link.count
    all_groups = min(MOST_GROUPS, int(counts.sum()) // VERTICES)
    share = (counts / max(int(counts.sum()), 1) + ends / max(int(ends.sum()), 1)) / 2
    return np.clip(np.ceil(share * all_groups).astype(np.int64), 1, np.maximum(counts, 1))


def mean_others(graph: Drawable, on_step: OnStep) -> Floats:
    """The mean index of the neighbours of a vertex, in the largest link of its set: (n,).

    Indices count from the first vertex of a set. In a dense block, all vertices of one side have
    the same neighbours, and the same mean to the bit.
    """
    largest: dict[int, int] = {}
    for index, link in sorted(enumerate(graph.links), key=lambda each: -each[1].count):
        if not link.loop and link.producer != link.consumer:
            largest.setdefault(link.producer, index)
            largest.setdefault(link.consumer, index)
    sums = np.zeros(graph.vertex_count, np.int64)
    counts = np.zeros(graph.vertex_count, np.int32)
    seen = 0
    for block in graph.edges():
        seen += len(block.producer)
        on_step(f"group vertices: edge {seen:,} of {graph.edge_count:,}")
        ends = graph.links[block.link]
        sides = (
            (ends.producer, block.producer, ends.consumer, block.consumer),
            (ends.consumer, block.consumer, ends.producer, block.producer),
        )
        for mine, ids, other, others in sides:
            if largest.get(mine) == block.link:
                add_others(ids, others, graph.sets[other].first, sums, counts)
    return (sums / np.maximum(counts, 1)).astype(np.float32)
