"""Finds a place for every vertex: first for vertex sets, then for groups, then for vertices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ....backends.graph import VertexSet
from ....ir.phases import BACKWARD, FORWARD, UPDATE, several
from ....ir.support.on_step import OnStep
from .drawable import Drawable
from .forces import Bodies, Floats, Ids, Strengths, relax
from .groups import Groups, grouped
from .measures import Pairs, purity
from .progress import within
from .sample import Sample
from .territory import separate_layers

SHORT = 0.02
"""The target for the median edge, in median distances of two vertices."""

SHORT_FIRST = 0.7 * SHORT
"""The target before layers are separated, which makes edges a little longer."""

BIND, MOST_BIND = 3.0, 150.0
"""The first and the largest attraction of edges. A stronger attraction pulls vertices with the same
neighbours closer together, and leaves more of the picture dark."""

SEPARATION, MOST_SEPARATION = 8.0, 64.0
"""The first and the largest repulsion by other layers. It is doubled until layers are separate."""

PURE_ENOUGH = 0.85
"""Layers are separate enough if this share of cells belongs to one layer. The remaining vertices
can then move to cells of their own."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of all vertices, x and y (n,) float32, and the layer of each set.

    Attributes:
        layers: names of layers, in program order.
        layer_of_set: (sets,) indices of layers.
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


MOST_CELLS = 40_000_000
"""The most cells in the grids of all layers together."""


def lay_out(graph: Drawable, sample: Sample, seed: int, on_step: OnStep) -> Layout:
    """Places for all vertices, the same for the same seed."""
    random = np.random.default_rng([seed, 2])
    counts = np.array([each.count for each in graph.sets], np.int64)
    names = [_lobe(each) for each in graph.sets]
    layers = tuple(dict.fromkeys(names))
    number = {name: k for k, name in enumerate(layers)}
    layer = np.array([number[name] for name in names], np.int32)
    set_of = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    groups = grouped(graph, on_step)
    lobes = Lobes.of(graph.sets, layer)
    x, y = _sets(graph, counts, layer, lobes, random, within(on_step, "lay out vertex sets"))
    x, y = _scattered(x[groups.set_of], y[groups.set_of], 0.03, random)
    strengths = _place_groups(
        groups, sample, layer, lobes, x, y, seed, within(on_step, "lay out groups")
    )
    x, y = _discs(x, y, groups, FILLED * float(np.ptp(x)) / len(set_of) ** 0.5)
    del groups
    bodies = Bodies(
        x,
        y,
        np.ones(len(set_of), np.float32),
        layer[set_of],
        sample.producer,
        sample.consumer,
        np.reciprocal(sample.share),
        lobes.homes,
    )
    _place_vertices(bodies, strengths, sample, seed, within(on_step, "lay out vertices"))
    on_step("separate layers")
    separate_layers(x, y, bodies.layer)
    return Layout(x, y, layers, layer, set_of)


HOMES: Mapping[str, tuple[float, float]] = {
    FORWARD: (-0.15, -0.05),
    BACKWARD: (0.15, -0.05),
    UPDATE: (0.0, 0.16),
}
"""The homes of the phases of training: two hemispheres, and the update below them.

In shares of the picture's side, from its centre, to the right and down.
"""


GRAVITY = 1.5
"""The gravity that keeps the phases of training together."""


@dataclass(frozen=True, eq=False)
class Lobes:
    """The places of layers: starts, their first places, and homes (see Bodies); (2, layers)
    each."""

    starts: Floats
    homes: Floats
    gravity: float

    @classmethod
    def of(cls, sets: Sequence[VertexSet], layer: Ids) -> Lobes:
        """The places of layers.

        They start on an open circle, in program order. A step of training has two hemispheres:
        forward on the left, from the first layer above to the last one below, backward on the
        right as in a mirror, and the updates in a row below both.

        Args:
            layer: of each set.
        """
        count = int(layer.max()) + 1
        phases = several(each.phase for each in sets)
        if not phases:
            angle = np.arange(count) / max(count, 1) * 5.5
            starts = np.stack([np.cos(angle), np.sin(angle)]).astype(np.float32)
            return cls(starts, np.zeros((2, count), np.float32), Strengths.gravity)
        names = {name: k for k, name in enumerate(dict.fromkeys(each.layer for each in sets))}
        starts, homes = np.zeros((2, 2, count), np.float32)
        for each, k in zip(sets, layer, strict=True):
            part = (names[each.layer] + 0.5) / len(names)
            out, down = np.sin(np.pi * part), -np.cos(np.pi * part)
            starts[:, k] = {
                FORWARD: (-out - 0.1, down),
                BACKWARD: (out + 0.1, down),
                UPDATE: (1.2 * part - 0.6, 0.9),
            }[each.phase]
            homes[:, k] = HOMES[each.phase]
        return cls(starts, homes, GRAVITY)


def _lobe(each: VertexSet) -> str:
    """The name of the lobe of a vertex set: its layer, and its phase unless that is forward."""
    name = each.layer or each.name
    return name if each.phase == FORWARD else f"{name} {each.phase}"


FILLED = 0.4
"""The side of a square that holds all vertices, as a share of the picture's side."""


def _place_groups(
    groups: Groups,
    sample: Sample,
    layer: Ids,
    lobes: Lobes,
    x: Floats,
    y: Floats,
    seed: int,
    on_step: OnStep,
) -> Strengths:
    """Move groups in place until edges are short. Returns the strengths that achieve this."""
    ends = Sample(groups.group_of[sample.producer], groups.group_of[sample.consumer], sample.share)
    mine = layer[groups.set_of]
    bodies = Bodies(
        x, y, groups.size.astype(np.float32), mine, *_quotient(ends, len(x)), lobes.homes
    )
    grid = _grid(len(x), 512)
    strengths = Strengths(gravity=lobes.gravity)
    relax(bodies, 100, grid, (0.05, 0.01), strengths, on_step, _layer_grid(grid))
    strengths = Strengths(
        separation=SEPARATION, bind=BIND, falloff=0.03, half_fall=3, gravity=lobes.gravity
    )
    relax(bodies, 120, grid, (0.02, 0.002), strengths, on_step, _layer_grid(grid))
    return _shorten(bodies, 30, grid, (0.005, 0.002), strengths, ends, seed, on_step)


def _place_vertices(
    bodies: Bodies, strengths: Strengths, sample: Sample, seed: int, on_step: OnStep
) -> None:
    """Move vertices in place, starting from the places of their groups."""
    n = len(bodies.x)
    grid = _grid(n, 1024)
    steps = int(np.clip(20_000_000 / max(n, 1), 4, 25))
    relax(bodies, steps, grid, (0.005, 0.001), strengths, on_step, _layer_grid(grid))
    strengths = _shorten(bodies, steps // 2, grid, (0.004, 0.001), strengths, sample, seed, on_step)
    fine = int(min(384, grid, (MOST_CELLS / (int(bodies.layer.max()) + 1)) ** 0.5))
    while (
        purity(bodies.x, bodies.y, bodies.layer) < PURE_ENOUGH
        and strengths.separation < MOST_SEPARATION
    ):
        strengths = replace(strengths, separation=strengths.separation * 2)
        relax(bodies, min(12, steps // 2), grid, (0.004, 0.001), strengths, on_step, fine)


def _shorten(
    bodies: Bodies,
    steps: int,
    grid: int,
    caps: tuple[float, float],
    strengths: Strengths,
    ends: Sample,
    seed: int,
    on_step: OnStep,
) -> Strengths:
    """Increase the attraction of edges until they are short. Moves bodies in place.

    Returns the strengths that achieve this.
    """
    pairs = Pairs.drawn(ends, len(bodies.x), seed)
    while pairs.edge_length(bodies.x, bodies.y) > SHORT_FIRST and strengths.bind < MOST_BIND:
        strengths = replace(strengths, bind=strengths.bind * 1.5)
        relax(bodies, steps, grid, caps, strengths, on_step, _layer_grid(grid))
    return strengths


def _grid(count: int, most: int) -> int:
    """Points per side of a grid for `count` bodies, with about the spacing of the bodies."""
    return int(np.clip(2 ** round(float(np.log2(2 * max(count, 1) ** 0.5))), 32, most))


def _layer_grid(grid: int) -> int:
    """Points per side of a grid that separates layers."""
    return min(grid, 192)


def _sets(
    graph: Drawable,
    counts: NDArray[np.int64],
    layer: Ids,
    lobes: Lobes,
    random: np.random.Generator,
    on_step: OnStep,
) -> tuple[Floats, Floats]:
    """Places of vertex sets."""
    x, y = _scattered(lobes.starts[0, layer], lobes.starts[1, layer], 0.05, random)
    links = [link for link in graph.links if not link.loop and link.producer != link.consumer]
    bodies = Bodies(
        x,
        y,
        (counts**0.8).astype(np.float32),
        layer,
        np.array([link.producer for link in links], np.int32),
        np.array([link.consumer for link in links], np.int32),
        np.sqrt(np.array([link.count for link in links], np.float32)),
        lobes.homes,
    )
    strengths = Strengths(cohesion=0.0, separation=0.0, falloff=0.1, gravity=lobes.gravity)
    relax(bodies, 400, _grid(len(x) * 16, 128), (0.03, 0.004), strengths, on_step, own=4)
    return x, y


def _scattered(
    x: Floats, y: Floats, spread: float, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Places moved by random distances with this standard deviation."""
    shift = random.normal(0, spread, (2, len(x))).astype(np.float32)
    return x + shift[0], y + shift[1]


def _quotient(ends: Sample, count: int) -> tuple[Ids, Ids, Floats]:
    """Edges between groups, each with its weight: the number of the graph's edges that it
    represents.

    Args:
        ends: edges whose ends are numbers of groups.
    """
    between = ends.producer != ends.consumer
    keys = ends.producer[between].astype(np.int64) * count + ends.consumer[between]
    keys, which = np.unique(keys, return_inverse=True)
    weight = np.bincount(which, 1 / ends.share[between], len(keys)).astype(np.float32)
    return (keys // count).astype(np.int32), (keys % count).astype(np.int32), weight


def _discs(x: Floats, y: Floats, groups: Groups, spacing: float) -> tuple[Floats, Floats]:
    """Places of vertices around the place of their group, like the seeds of a sunflower.

    They are float32 like all places, so that every kernel is compiled for one type.
    """
    radius = np.float32(spacing) * np.sqrt(groups.inside + np.float32(0.5))
    turn = groups.inside * np.float32(np.pi * (3 - np.sqrt(5)))
    return (
        (x[groups.group_of] + radius * np.cos(turn)).astype(np.float32),
        (y[groups.group_of] + radius * np.sin(turn)).astype(np.float32),
    )
