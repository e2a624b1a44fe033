"""Groups of vertices: vertices of a set on one chip that have the same neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....ir.support.on_step import OnStep
from .drawable import Drawable
from .forces import Floats, Ids
from .kernels import add_others
from .pieces import Pieces

VERTICES, MOST_GROUPS = 16, 60_000
"""The smallest average number of vertices per group, and the most groups."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of vertices that are drawn together.

    Attributes:
        group_of, inside: (n,), the group of each vertex, and its index in the group.
        piece_of, size: (groups,), the piece of a vertex set that each group belongs to, and its
            number of vertices.
    """

    group_of: Ids
    inside: Ids
    piece_of: Ids
    size: Ids


def grouped(graph: Drawable, pieces: Pieces, on_step: OnStep) -> Groups:
    """Groups of the vertices of each piece, by their neighbours.

    Half of the groups are shared out by the number of vertices, and half by the number of edges.
    Otherwise a few vertices with many edges each would all be in one place. Example: products whose
    results are added up by thousands of vertices.
    """
    groups = _shares(graph, pieces)
    bases = np.cumsum(groups) - groups
    others = mean_others(graph, on_step)
    group_of, inside = np.empty((2, len(others)), np.int32)
    for k, ids in enumerate(pieces.members()):
        count = len(ids)
        order = ids[np.argsort(others[ids], kind="stable")]
        rank = np.arange(count, dtype=np.int64)
        mine = rank * int(groups[k]) // count
        group_of[order] = bases[k] + mine
        inside[order] = rank - -(-mine * count // int(groups[k]))
    size = np.bincount(group_of, minlength=int(groups.sum())).astype(np.int32)
    piece_of = np.repeat(np.arange(pieces.count, dtype=np.int32), groups)
    return Groups(group_of, inside, piece_of, size)


def _shares(graph: Drawable, pieces: Pieces) -> NDArray[np.int64]:
    """The number of groups of each piece: at least one, and at most one per vertex.

    A piece has its share of the edges of its set.
    """
    counts = np.array([each.count for each in graph.sets], np.int64)
    ends = np.zeros(len(counts), np.int64)
    for link in graph.links:
        if not link.loop:
            ends[[link.producer, link.consumer]] += link.count
    of_piece = ends[pieces.set_of] * (pieces.size / np.maximum(counts[pieces.set_of], 1))
    all_groups = min(MOST_GROUPS, int(counts.sum()) // VERTICES)
    share = (pieces.size / max(int(counts.sum()), 1) + of_piece / max(int(ends.sum()), 1)) / 2
    least = np.ceil(share * all_groups).astype(np.int64)
    return np.clip(least, 1, np.maximum(pieces.size, 1))


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
