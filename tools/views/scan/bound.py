"""A lower bound of the median edge for layouts that fill their circle evenly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .drawable import Drawable

RANDOM_PAIR = 0.8913
"""The median distance of two random points in a circle, in radii; measured on 20 million pairs."""

Degrees = tuple[NDArray[np.int64], NDArray[np.int64]]
"""A histogram of degrees: the degrees, and the number of vertices of each."""


def least_edge(graph: Drawable) -> float:
    """The lower bound of the median edge in an even layout, in median distances of two vertices.

    If n vertices fill a circle of radius R evenly, k of them lie within R (k / n) ** 0.5 of a
    place. At most min(degree, k) of a vertex's edges are that short, summed over the producers or
    over the consumers of a link, whichever is less. The bound is at the k for which half of all
    edges can be that short. Only a layout that leaves most of its circle dark gets below it.
    """
    ends = _degrees(graph)
    if not ends:
        return 0.0
    most = max(int(degrees.max()) for link in ends for degrees, _ in link)
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        short = sum(min(_within(side, middle) for side in link) for link in ends)
        low, high = (low, middle) if 2 * short >= graph.edge_count else (middle + 1, high)
    return float(np.sqrt(low / graph.vertex_count)) / RANDOM_PAIR


def _within(degrees: Degrees, most: int) -> int:
    """The number of a link's edges, seen from one side, if each vertex keeps at most `most`."""
    edges, vertices = degrees
    return int((np.minimum(edges, most) * vertices).sum())


def _degrees(graph: Drawable) -> list[tuple[Degrees, Degrees]]:
    """For each link, the degrees of its producers and those of its consumers."""
    found: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    for block in graph.edges():
        link = graph.links[block.link]
        ends = [graph.sets[index] for index in (link.producer, link.consumer)]
        if block.link not in found:
            one, other = (np.zeros(each.count, np.int64) for each in ends)
            found[block.link] = one, other
        for counts, ids, each in zip(found[block.link], (block.producer, block.consumer), ends):
            counts += np.bincount(ids - each.first, minlength=each.count)
    return [(_counted(one), _counted(other)) for one, other in found.values()]


def _counted(degrees: NDArray[np.int64]) -> Degrees:
    edges, vertices = np.unique(degrees, return_counts=True)
    return edges, vertices
