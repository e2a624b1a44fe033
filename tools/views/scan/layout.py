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
from .pieces import Pieces
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
        chips: of the machine.
        chip_of: (n,), the chip of each vertex.
        lobe_of: (n,), the lobe of each vertex: its layer on its chip (see Lobes).
        lobes: the name of the layer of each lobe; "" if it has the vertices of a whole chip.
    """

    x: Floats
    y: Floats
    layers: tuple[str, ...]
    layer_of_set: Ids
    set_of: Ids
    chips: int
    chip_of: Ids
    lobe_of: Ids
    lobes: tuple[str, ...]

    @property
    def layer_of(self) -> Ids:
        """The layer of each vertex: (n,)."""
        return self.layer_of_set[self.set_of]


MOST_CELLS = 40_000_000
"""The most cells in the grids of all layers together."""


def lay_out(graph: Drawable, sample: Sample, seed: int, on_step: OnStep) -> Layout:
    """Places for all vertices, the same for the same seed."""
    random = np.random.default_rng([seed, 2])
    names = [_layer_name(each) for each in graph.sets]
    layers = tuple(dict.fromkeys(names))
    number = {name: k for k, name in enumerate(layers)}
    layer = np.array([number[name] for name in names], np.int32)
    pieces = Pieces.in_graph(graph)
    sample = _within_chips(sample, pieces.chip_of[pieces.of]) if graph.chips > 1 else sample
    groups = grouped(graph, pieces, on_step)
    lobes = Lobes.of(graph, pieces, layer)
    x, y = _pieces(graph, pieces, lobes, random, within(on_step, "lay out vertex sets"))
    x, y = _scattered(x[groups.piece_of], y[groups.piece_of], 0.03, random)
    strengths = _place_groups(groups, sample, lobes, x, y, seed, within(on_step, "lay out groups"))
    x, y = _discs(x, y, groups, FILLED * float(np.ptp(x)) / len(pieces.of) ** 0.5)
    del groups
    bodies = Bodies(
        x,
        y,
        np.ones(len(pieces.of), np.float32),
        lobes.of_piece[pieces.of],
        sample.producer,
        sample.consumer,
        np.reciprocal(sample.share),
        lobes.homes,
    )
    _place_vertices(bodies, strengths, sample, seed, within(on_step, "lay out vertices"))
    on_step("separate layers")
    separate_layers(x, y, bodies.layer)
    shown = tuple("" if k < 0 else layers[k] for k in map(int, lobes.layer_of))
    set_of, chip_of = pieces.set_of[pieces.of], pieces.chip_of[pieces.of]
    return Layout(x, y, layers, layer, set_of, graph.chips, chip_of, bodies.layer, shown)


def _within_chips(sample: Sample, chip: Ids) -> Sample:
    """The edges that attract: those within chips. Others would pull the chips into one another.

    Args:
        chip: of each vertex.
    """
    kept = chip[sample.producer] == chip[sample.consumer]
    return Sample(sample.producer[kept], sample.consumer[kept], sample.share[kept])


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


CHIP_GRAVITY = 3.0
"""The gravity that keeps chips apart. Chosen by looking at pictures."""

CHIP_FILLED = 0.8
"""The width of a chip, in distances from a chip to the next."""

CHIP_PUSHED = 1.12
"""The distance of neighbouring chips, in distances of their homes: they repel each other. Measured
on a step of training AlexNet on four chips."""

MOST_LOBES = 512
"""The most lobes. With more layers on chips, all layers of a chip are one lobe."""


@dataclass(frozen=True, eq=False)
class Lobes:
    """The lobes of a picture: the vertices of a layer on a chip, which stay together.

    Attributes:
        of_piece: (pieces,), the lobe of each piece.
        layer_of: (lobes,), the layer of each lobe; -1 if it has all layers of a chip.
        starts: the first places, (2, lobes).
        homes: the places to which gravity pulls (see Bodies), (2, lobes).
    """

    of_piece: Ids
    layer_of: Ids
    starts: Floats
    homes: Floats
    gravity: float

    @classmethod
    def of(cls, graph: Drawable, pieces: Pieces, layer: Ids) -> Lobes:
        """The lobes of a graph.

        On one chip, they start on an open circle, in program order. A step of training has two
        hemispheres: forward on the left, from the first layer above to the last one below, backward
        on the right as in a mirror, and the updates in a row below both. Several chips stand in
        rows, and each looks like that.

        Args:
            layer: of each set.
        """
        starts, homes, gravity = _places_of_layers(graph.sets, layer)
        if graph.chips == 1:
            lobes = np.arange(len(starts[0]), dtype=np.int32)
            return cls(layer, lobes, starts, homes, gravity)
        of_layer, of_chip = layer[pieces.set_of].astype(np.int64), pieces.chip_of
        keys, of_piece = np.unique(of_layer * graph.chips + of_chip, return_inverse=True)
        layer_of, chip_of = np.divmod(keys, graph.chips)
        centre, width = places_of_chips(graph.chips)
        starts = centre[:, chip_of] * 2 + starts[:, layer_of] * (width * 0.7)
        homes = centre[:, chip_of] + homes[:, layer_of] * width
        if len(keys) > MOST_LOBES:
            _, first, of_piece = np.unique(of_chip, return_index=True, return_inverse=True)
            chip_of = of_chip[first]
            layer_of = np.full(len(first), -1)
            starts = homes = centre[:, chip_of]
        return cls(
            of_piece.astype(np.int32),
            layer_of.astype(np.int32),
            starts.astype(np.float32),
            homes.astype(np.float32, order="C"),
            CHIP_GRAVITY,
        )


def places_of_chips(chips: int) -> tuple[NDArray[np.float64], float]:
    """The centres of chips, in rows of equal length, and the width of each: shares of the picture's
    side, from its centre; (2, chips)."""
    across = int(np.ceil(chips**0.5))
    step = 1 / (across - 1 + CHIP_FILLED)
    row, column = np.divmod(np.arange(chips), across)
    rows = -(-chips // across)
    places = np.stack([column - (across - 1) / 2, row - (rows - 1) / 2])
    return places * (step / CHIP_PUSHED), CHIP_FILLED * step


def _places_of_layers(sets: Sequence[VertexSet], layer: Ids) -> tuple[Floats, Floats, float]:
    """The first places of layers, their homes, and their gravity, on one chip.

    Args:
        layer: of each set.
    """
    count = int(layer.max()) + 1
    if not several(each.phase for each in sets):
        angle = np.arange(count) / max(count, 1) * 5.5
        starts = np.stack([np.cos(angle), np.sin(angle)]).astype(np.float32)
        return starts, np.zeros((2, count), np.float32), Strengths.gravity
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
    return starts, homes, GRAVITY


def _layer_name(each: VertexSet) -> str:
    """The name of the layer of a vertex set, with its phase unless that is forward."""
    name = each.layer or each.name
    return name if each.phase == FORWARD else f"{name} {each.phase}"


FILLED = 0.4
"""The side of a square that holds all vertices, as a share of the picture's side."""


def _place_groups(
    groups: Groups,
    sample: Sample,
    lobes: Lobes,
    x: Floats,
    y: Floats,
    seed: int,
    on_step: OnStep,
) -> Strengths:
    """Move groups in place until edges are short. Returns the strengths that achieve this."""
    ends = Sample(groups.group_of[sample.producer], groups.group_of[sample.consumer], sample.share)
    mine = lobes.of_piece[groups.piece_of]
    bodies = Bodies(
        x, y, groups.size.astype(np.float32), mine, *_quotient(ends, len(x)), lobes.homes
    )
    grid = _grid(len(x), 512)
    strengths = Strengths(gravity=lobes.gravity)
    own = _layer_grid(grid, lobes.homes.shape[1])
    relax(bodies, 100, grid, (0.05, 0.01), strengths, on_step, own)
    strengths = Strengths(
        separation=SEPARATION, bind=BIND, falloff=0.03, half_fall=3, gravity=lobes.gravity
    )
    relax(bodies, 120, grid, (0.02, 0.002), strengths, on_step, own)
    return _shorten(bodies, 30, grid, (0.005, 0.002), strengths, ends, seed, on_step)


def _place_vertices(
    bodies: Bodies, strengths: Strengths, sample: Sample, seed: int, on_step: OnStep
) -> None:
    """Move vertices in place, starting from the places of their groups."""
    n = len(bodies.x)
    grid = _grid(n, 1024)
    steps = int(np.clip(20_000_000 / max(n, 1), 4, 25))
    own = _layer_grid(grid, bodies.homes.shape[1])
    relax(bodies, steps, grid, (0.005, 0.001), strengths, on_step, own)
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
        relax(
            bodies,
            steps,
            grid,
            caps,
            strengths,
            on_step,
            _layer_grid(grid, bodies.homes.shape[1]),
        )
    return strengths


def _grid(count: int, most: int) -> int:
    """Points per side of a grid for `count` bodies, with about the spacing of the bodies."""
    return int(np.clip(2 ** round(float(np.log2(2 * max(count, 1) ** 0.5))), 32, most))


def _layer_grid(grid: int, lobes: int) -> int:
    """Points per side of a grid that separates layers."""
    return int(min(grid, 192, (MOST_CELLS / lobes) ** 0.5))


def _pieces(
    graph: Drawable,
    pieces: Pieces,
    lobes: Lobes,
    random: np.random.Generator,
    on_step: OnStep,
) -> tuple[Floats, Floats]:
    """Places of the pieces of vertex sets. Only edges within a chip attract here."""
    own = lobes.of_piece
    x, y = _scattered(lobes.starts[0, own], lobes.starts[1, own], 0.05, random)
    links = [link for link in graph.links if not link.loop and link.producer != link.consumer]
    ends = [[link.producer for link in links], [link.consumer for link in links]]
    table = np.full((len(graph.sets), graph.chips), -1, np.int32)
    table[pieces.set_of, pieces.chip_of] = np.arange(pieces.count)
    producer, consumer = (table[np.array(each, np.int64)] for each in ends)
    here = (producer >= 0) & (consumer >= 0)
    edges = np.array([link.count for link in links], np.float32)[:, None]
    share = edges / np.maximum(here.sum(axis=1, keepdims=True), 1)
    bodies = Bodies(
        x,
        y,
        (pieces.size**0.8).astype(np.float32),
        own,
        producer[here],
        consumer[here],
        np.sqrt(np.broadcast_to(share, here.shape)[here]).astype(np.float32),
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
