"""Measures of a layout: whether layers are separate, and whether edges are short."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .forces import Floats, Ids
from .kernels import claim
from .sample import Sample

CELLS = 512
"""Cells per side of the square around all vertices."""

PAIRS = 1_000_000
"""The most pairs of vertices that are measured."""

TIMES = 256
"""How often each vertex and edge of a small graph is drawn, on average. More pairs would only take
time: a layout is measured dozens of times."""


@dataclass(frozen=True)
class Measures:
    """Figures of a layout.

    Attributes:
        purity: among cells with vertices, the share of cells with vertices of one layer only.
        edge: the median length of an edge, divided by the median distance of two random vertices.
    """

    purity: float
    edge: float


def measured(x: Floats, y: Floats, layer: Ids, sample: Sample, seed: int) -> Measures:
    """The measures of a layout. Edges are drawn from the sample so that each edge of the graph is
    equally likely."""
    return Measures(purity(x, y, layer), edge_length(x, y, sample, seed))


def purity(x: Floats, y: Floats, layer: Ids) -> float:
    """The share of cells that hold vertices of one layer only, among cells with vertices."""
    if not len(x):
        return 1.0
    cells = Cells.around(x, y)
    owner = np.full((CELLS, CELLS), -1, np.int32)
    claim(x, y, layer, cells.left, cells.top, cells.inv, owner)
    return float((owner >= 0).sum() / (owner != -1).sum())


@dataclass(frozen=True)
class Cells:
    """The square around all vertices, cut into CELLS x CELLS.

    Attributes:
        inv: cells per unit of length.
    """

    left: np.float32
    top: np.float32
    inv: np.float32

    @staticmethod
    def around(x: Floats, y: Floats) -> Cells:
        """The cells of a layout."""
        side = max(float(np.ptp(x)), float(np.ptp(y)), 1e-9)
        return Cells(np.float32(x.min()), np.float32(y.min()), np.float32(CELLS / side * 0.99999))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of vertices whose distances are measured: ends of edges, and any two vertices.

    Attributes:
        edges, others: (2, pairs) vertices, at most PAIRS. edges has no columns if there is no edge.
    """

    edges: NDArray[np.int32]
    others: NDArray[np.int64]

    @staticmethod
    def drawn(sample: Sample, vertices: int, seed: int) -> Pairs:
        """Pairs drawn at random, such that each edge of the graph is equally likely."""
        random = np.random.default_rng([seed, 3])
        if not len(sample.producer):
            return Pairs(np.empty((2, 0), np.int32), np.empty((2, 0), np.int64))
        count = min(PAIRS, TIMES * max(vertices, len(sample.producer)))
        likely = np.cumsum(1 / sample.share.astype(np.float64))
        places: NDArray[np.float64] = random.random(count) * float(likely[-1])
        # The order of the pairs does not matter, and sorted places are found several times faster.
        places.sort()
        edge: NDArray[np.int64] = np.minimum(np.searchsorted(likely, places), len(likely) - 1)
        return Pairs(
            np.stack([sample.producer[edge], sample.consumer[edge]]),
            random.integers(0, vertices, (2, count)),
        )

    def edge_length(self, x: Floats, y: Floats) -> float:
        """The median edge, in median distances of two vertices; 0 if there is no edge."""
        if not self.edges.shape[1]:
            return 0.0
        edge, other = (
            float(np.median(np.hypot(x[a] - x[b], y[a] - y[b])))
            for a, b in (self.edges, self.others)
        )
        return edge / max(other, 1e-12)


def edge_length(x: Floats, y: Floats, sample: Sample, seed: int) -> float:
    """The median edge, in median distances of two vertices; 0 if there is no edge."""
    return Pairs.drawn(sample, len(x), seed).edge_length(x, y)
