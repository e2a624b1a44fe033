"""A sample of edges: enough to place the vertices and to measure lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....ir.support.on_step import OnStep
from .drawable import Drawable

EDGES_A_VERTEX, LEAST, MOST = 8, 2_000_000, 24_000_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Edges chosen at random, link by link: (n,) each.

    Attributes:
        share: for each edge, the share of its link's edges that were kept; 1 if all were.
    """

    producer: NDArray[np.int32]
    consumer: NDArray[np.int32]
    share: NDArray[np.float32]


def sample_edges(graph: Drawable, seed: int, on_step: OnStep, most: int | None = None) -> Sample:
    """At most about `most` edges: the same number from every link, or all edges of a shorter link.

    A link of a thousand edges is therefore not lost next to a link of a million.
    """
    budget = most or min(max(EDGES_A_VERTEX * graph.vertex_count, LEAST), MOST)
    counts = np.array([0 if link.loop else link.count for link in graph.links], np.int64)
    kept = np.minimum(counts, even_share(counts, budget))
    shares = kept / np.maximum(counts, 1)
    random = np.random.default_rng([seed, 1])
    # The order within a link need not be random: every edge is kept with the same probability.
    parts: list[tuple[NDArray[np.int32], NDArray[np.int32], float]] = []
    seen = 0
    for block in graph.edges():
        share = float(shares[block.link])
        seen += len(block.producer)
        on_step(f"look at edges: {seen:,} of {graph.edge_count:,}")
        if share >= 1:
            parts.append((block.producer, block.consumer, share))
        else:
            chosen = np.flatnonzero(random.random(len(block.producer), np.float32) < share)
            parts.append((block.producer[chosen], block.consumer[chosen], share))
    if not parts:
        none = np.empty(0, np.int32)
        return Sample(none, none, np.empty(0, np.float32))
    return Sample(
        producer=np.concatenate([each[0] for each in parts]),
        consumer=np.concatenate([each[1] for each in parts]),
        share=np.concatenate([np.full(len(each[0]), each[2], np.float32) for each in parts]),
    )


def even_share(counts: NDArray[np.int64], budget: int) -> int:
    """The largest number that can be taken from each count, or the whole count, within the
    budget."""
    total, rest = budget, np.sort(counts)
    for index, count in enumerate(rest):
        fair = total // (len(rest) - index)
        if count > fair:
            return int(fair)
        total -= int(count)
    return int(rest[-1]) if len(rest) else 0
