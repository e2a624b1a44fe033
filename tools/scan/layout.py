"""Where every vertex lies: vertex sets first, then groups of vertices, then each vertex."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .drawable import Drawable
from .forces import Bodies, Floats, Ids, Strengths, relax
from .measures import purity
from .progress import Tell, within
from .sample import Sample

BETWEEN_LAYERS = 3.0
"""How much more an edge pulls that joins two layers."""

FULL = 0.75
"""Of a link's edges that were left out: 1 lets the rest pull for all of them, 0 for themselves."""

GROUP, MOST_GROUPS = 16, 30_000
"""Vertices of a group, and groups at most."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of all vertices, x and y (n,) float32, and to which layer each set belongs.

    layers: their names, in the order of the program. layer_of_set: (sets,) indices of layers.
    set_of: (n,), the set of each vertex.
    """

    x: Floats
    y: Floats
    layers: tuple[str, ...]
    layer_of_set: Ids
    set_of: Ids

    @property
    def layer_of(self) -> Ids:
        """The layer of each vertex: (n,)."""
        return self.layer_of_set[self.set_of]


APART, MOST_APART = 8.0, 64.0
"""How strongly vertices of other layers drive one off; doubled until layers keep to themselves."""

FEW_STEPS = 16
"""Below so many steps of all vertices, a graph is large: each of them takes seconds."""

MOST_CELLS = 40_000_000
"""Of the grids of all layers together."""

PURE = 0.955
"""The share of cells that belong to one layer, at which they do."""


def lay_out(graph: Drawable, sample: Sample, seed: int, tell: Tell) -> Layout:
    """Places for all vertices, the same for the same seed."""
    random = np.random.default_rng([seed, 2])
    counts = np.array([each.count for each in graph.sets], np.int64)
    names = [each.layer or each.name for each in graph.sets]
    layers = tuple(dict.fromkeys(names))
    number = {name: k for k, name in enumerate(layers)}
    layer = np.array([number[name] for name in names], np.int32)
    set_of = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    x, y = _sets(graph, counts, layer, random, within(tell, "lay out vertex sets"))
    group_of, first, group_set = _groups(counts)
    x, y = _near(x[group_set], y[group_set], 0.03, random)
    bodies = Bodies(
        x,
        y,
        np.bincount(group_of, minlength=len(first)).astype(np.float32),
        layer[group_set],
        *_quotient(sample, group_of, len(first), layer[group_set]),
    )
    grid = _grid(len(first), 512)
    relax(bodies, 150, grid, (0.05, 0.004), Strengths(), within(tell, "lay out groups"), _own(grid))
    n = len(set_of)
    steps = int(np.clip(20_000_000 / max(n, 1), 6, 60))
    fine = int(min(384, (MOST_CELLS / len(layers)) ** 0.5))
    if steps < FEW_STEPS:
        # Vertices will hardly move any more: their groups must be told apart already.
        tell_groups = within(tell, "tell groups of layers apart")
        relax(bodies, 40, grid, (0.004, 0.001), Strengths(apart=MOST_APART), tell_groups, fine)
    x, y = _discs(x, y, group_of, first, 0.3 * float(np.ptp(x)) / n**0.5)
    edge_layers = layer[set_of[sample.producer]], layer[set_of[sample.consumer]]
    bodies = Bodies(
        x,
        y,
        np.ones(n, np.float32),
        layer[set_of],
        sample.producer,
        sample.consumer,
        _pulls(edge_layers[0] == edge_layers[1], sample.share),
    )
    grid = _grid(n, 1024)
    tell = within(tell, "lay out vertices")
    apart = APART if steps >= FEW_STEPS else MOST_APART / 2
    relax(bodies, steps, grid, (0.01, 0.002), Strengths(apart=apart), tell, _own(grid))
    while purity(x, y, bodies.layer) < PURE and apart < MOST_APART:
        apart *= 2
        strengths = Strengths(apart=apart)
        relax(bodies, min(12, steps // 2), grid, (0.004, 0.001), strengths, tell, min(fine, grid))
    return Layout(x, y, layers, layer, set_of)


def _grid(count: int, most: int) -> int:
    """Points a side of a grid for so many bodies: as fine as they lie, to about a half."""
    return int(np.clip(2 ** round(float(np.log2(2 * max(count, 1) ** 0.5))), 32, most))


def _own(grid: int) -> int:
    """Points a side of a grid to tell layers apart by."""
    return min(grid, 192)


def _sets(
    graph: Drawable, counts: NDArray[np.int64], layer: Ids, random: np.random.Generator, tell: Tell
) -> tuple[Floats, Floats]:
    """Places of vertex sets: layers begin on an open circle, in the order of the program."""
    angle = layer / max(int(layer.max()) + 1, 1) * 5.5
    x, y = _near(np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32), 0.05, random)
    links = [link for link in graph.links if not link.loop and link.producer != link.consumer]
    bodies = Bodies(
        x,
        y,
        (counts**0.8).astype(np.float32),
        layer,
        np.array([link.producer for link in links], np.int32),
        np.array([link.consumer for link in links], np.int32),
        np.sqrt(np.array([link.count for link in links], np.float32)),
    )
    strengths = replace(Strengths(), cohesion=0.0, apart=0.0, near=0.1)
    relax(bodies, 400, _grid(len(x) * 16, 128), (0.03, 0.004), strengths, tell, own=4)
    return x, y


def _near(
    x: Floats, y: Floats, spread: float, random: np.random.Generator
) -> tuple[Floats, Floats]:
    shift = random.normal(0, spread, (2, len(x))).astype(np.float32)
    return x + shift[0], y + shift[1]


def _groups(counts: NDArray[np.int64]) -> tuple[Ids, NDArray[np.int64], Ids]:
    """Blocks of vertices that follow each other: each vertex's, their first, and their sets."""
    size = max(GROUP, int(counts.sum()) // MOST_GROUPS)
    groups = np.maximum(1, counts // size)
    sets = np.arange(len(counts), dtype=np.int32)
    group_set, set_of = np.repeat(sets, groups), np.repeat(sets, counts)
    bases, starts = np.cumsum(groups) - groups, np.cumsum(counts) - counts
    inside = np.arange(len(set_of)) - starts[set_of]
    group_of = bases[set_of] + inside * groups[set_of] // counts[set_of]
    place = np.arange(len(group_set)) - bases[group_set]
    first = starts[group_set] - -place * counts[group_set] // groups[group_set]
    return group_of.astype(np.int32), first, group_set


def _pulls(within: NDArray[np.bool_], share: Floats) -> Floats:
    """How strongly edges of the sample pull. within: whether both ends are of one layer."""
    return (np.where(within, 1, BETWEEN_LAYERS) * share ** np.float32(-FULL)).astype(np.float32)


def _quotient(sample: Sample, group_of: Ids, count: int, layer: Ids) -> tuple[Ids, Ids, Floats]:
    """Edges between groups, and what they weigh: of many edges less than their number."""
    keys = group_of[sample.producer].astype(np.int64) * count + group_of[sample.consumer]
    keys, which = np.unique(keys, return_inverse=True)
    producer, consumer = (keys // count).astype(np.int32), (keys % count).astype(np.int32)
    weight = np.bincount(which, sample.share ** np.float32(-FULL)).astype(np.float32) ** np.float32(
        0.6
    )
    weight[layer[producer] != layer[consumer]] *= BETWEEN_LAYERS
    return producer, consumer, weight


def _discs(
    x: Floats, y: Floats, group_of: Ids, first: NDArray[np.int64], spacing: float
) -> tuple[Floats, Floats]:
    """Vertices of a group around its place, as seeds in a sunflower."""
    inside = np.arange(len(group_of)) - first[group_of]
    radius = (spacing * np.sqrt(inside + 0.5)).astype(np.float32)
    turn = (inside * (np.pi * (3 - np.sqrt(5)))).astype(np.float32)
    return x[group_of] + radius * np.cos(turn), y[group_of] + radius * np.sin(turn)
