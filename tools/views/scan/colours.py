"""False colours for vertices and for directions of edges."""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ....ir.phases import BACKWARD, FORWARD, PHASES, UPDATE
from .drawable import Drawable
from .layout import Layout

Colours = NDArray[np.float32]
"""(n, 3), red, green and blue, linear in light, 0..1."""

SPECTRUM = (
    *("#1fd6ff", "#1f7bff", "#5b4bff", "#a53cff", "#ff35d0"),
    *("#ff3355", "#ff7a1a", "#ffd21f", "#8dff3a", "#1fffa8"),
)
HEAT = ("#1b1464", "#5b1a9a", "#b81f8f", "#f0404f", "#ff8a1f", "#ffd84a", "#fffbe0")
TIME = ("#2b4bff", "#16c8ff", "#24ffb0", "#c8ff3a", "#ffb01f", "#ff3a3a", "#ff3ac8")

FAMILIES: Mapping[str, tuple[str, ...]] = {
    FORWARD: ("#2a3bff", "#1f8fff", "#1fe0ff"),
    BACKWARD: ("#ff2a6a", "#ff5a2a", "#ffa51f"),
    UPDATE: ("#1fd07a", "#7dff3a", "#d8ff7a"),
}
"""The colours of each phase of training: cold, hot, and green."""

SHADES = 64
"""The number of colours of each phase."""

GREY = 0.55


NONE = np.empty((0, 3), np.float32)


@dataclass(frozen=True, eq=False)
class Colouring:
    """The colours of edges and vertices.

    Attributes:
        ink: (vertices,), rows of the palette.
        palette: (inks, 3).
        directions: (angles, 3), colours by the angle at which an edge leaves its producer, starting
            at -pi; empty if the palette is used.
        key: the colours of the legend from left to right.
        title, low, high: the texts of the legend.
        chip: the chip of each vertex, (vertices,), on a machine of several; else (0,).
        between: the colour of edges from chip to chip, (1, 3); (0, 3) if it is that of others.
    """

    ink: NDArray[np.uint16]
    palette: Colours
    directions: Colours
    key: Colours
    title: str
    low: str
    high: str
    chip: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    between: Colours = field(default_factory=lambda: NONE)


def ramp(stops: tuple[str, ...], count: int) -> Colours:
    """`count` colours between stops, interpolated in linear light, ends included."""
    points = np.array([[int(s[i : i + 2], 16) / 255 for i in (1, 3, 5)] for s in stops])
    at = np.linspace(0, len(stops) - 1, max(count, 1))
    mixed = [np.interp(at, np.arange(len(stops)), points[:, c]) for c in range(3)]
    return light(np.stack(mixed, axis=1))


def light(values: NDArray[np.float64]) -> Colours:
    """Linear light of screen values 0..1."""
    return (values**2.2).astype(np.float32)


def screen(colours: Colours) -> Colours:
    """Screen values 0..1 of linear light."""
    return np.clip(colours, 0, 1) ** np.float32(1 / 2.2)


def by_layer(graph: Drawable, layout: Layout) -> Colouring:
    """A hue for each layer, in program order. Neighbouring layers differ."""
    count = len(layout.layers)
    palette = ramp(SPECTRUM, count)
    palette = np.stack([_aside(rgb, k % 3 - 1) for k, rgb in enumerate(palette)])
    return Colouring(
        layout.layer_of_set.astype(np.uint16)[layout.set_of],
        palette,
        NONE,
        ramp(SPECTRUM, 256),
        "layer",
        layout.layers[0] if count else "",
        layout.layers[-1] if count else "",
    )


def _aside(rgb: Colours, way: int) -> Colours:
    """A slightly shifted hue, so that consecutive layers differ."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*(float(v) for v in screen(rgb)))
    shifted = colorsys.hls_to_rgb((hue + 0.018 * way) % 1, lightness + 0.03 * way, saturation)
    return light(np.array(shifted))


def by_direction(graph: Drawable, layout: Layout) -> Colouring:
    """A hue for each direction of communication, as in pictures of the brain's fibres."""
    angle = np.linspace(0, 1, 256, endpoint=False)
    wheel = np.array([colorsys.hls_to_rgb(a, 0.55, 1.0) for a in angle])
    # Blue and violet look darker than their values, so they are brightened.
    wheel = light(np.clip(wheel, 0.06, 1))
    return Colouring(
        np.zeros(graph.vertex_count, np.uint16),
        np.full((1, 3), GREY, np.float32),
        wheel,
        wheel,
        "direction of communication",
        "to the left",
        "and round",
    )


def by_time(graph: Drawable, layout: Layout) -> Colouring:
    """A colour for the time at which a vertex runs: its compute set, from the first to the last."""
    steps = np.array([each.compute_set for each in graph.sets], np.int64)
    count = int(steps.max()) + 1 if len(steps) else 1
    return Colouring(
        steps.astype(np.uint16)[layout.set_of],
        ramp(TIME, count),
        NONE,
        ramp(TIME, 256),
        "when it runs",
        "first compute set",
        f"last of {count:,}",
    )


def by_phase(graph: Drawable, layout: Layout) -> Colouring:
    """A family of colours for each phase of training, with a colour for each layer, in order."""
    shades = {phase: ramp(stops, SHADES) for phase, stops in FAMILIES.items()}
    palette = np.concatenate([shades[phase] for phase in PHASES])
    rows = np.zeros(len(graph.sets), np.uint16)
    for k, phase in enumerate(PHASES):
        mine = [i for i, each in enumerate(graph.sets) if each.phase == phase]
        layers = dict.fromkeys(int(layout.layer_of_set[i]) for i in mine)
        rank = {layer: r for r, layer in enumerate(layers)}
        last = max(len(rank) - 1, 1)
        for i in mine:
            rows[i] = k * SHADES + rank[int(layout.layer_of_set[i])] * (SHADES - 1) // last
    return Colouring(
        rows[layout.set_of],
        palette,
        NONE,
        palette,
        "forward, backward and update",
        "first layer",
        "last update",
    )


def by_cycles(graph: Drawable, layout: Layout) -> Colouring:
    """A colour for the cycles that a vertex takes, on a logarithmic scale."""
    cycles = np.maximum(graph.vertices()["cycles"].astype(np.float32), 1)
    logs = np.log(cycles)
    low, high = (float(logs.min()), float(logs.max())) if len(logs) else (0.0, 0.0)
    ink = ((logs - low) / max(high - low, 1e-6) * 255).astype(np.uint16)
    return Colouring(
        ink,
        ramp(HEAT, 256),
        NONE,
        ramp(HEAT, 256),
        "cycles of a vertex",
        f"{round(np.exp(low)):,}",
        f"{round(np.exp(high)):,}",
    )


CHIPS = ("#1fe0ff", "#1f7bff", "#6a3bff", "#c83cff")
BETWEEN = "#ffc400"


def by_chip(graph: Drawable, layout: Layout) -> Colouring:
    """A cold colour for each chip, and gold for the edges from chip to chip."""
    return Colouring(
        layout.chip_of.astype(np.uint16),
        ramp(CHIPS, layout.chips),
        NONE,
        np.concatenate([ramp(CHIPS, 224), ramp((BETWEEN,), 32)]),
        "chip; gold: between chips",
        "first",
        f"last of {layout.chips:,}",
        between=ramp((BETWEEN,), 1),
    )


COLOURINGS: Mapping[str, Callable[[Drawable, Layout], Colouring]] = {
    "layer": by_layer,
    "direction": by_direction,
    "time": by_time,
    "cycles": by_cycles,
    "phase": by_phase,
    "chip": by_chip,
}


def coloured(name: str, graph: Drawable, layout: Layout) -> Colouring:
    """A colouring by its name, which knows the chip of each vertex if there are several."""
    found = COLOURINGS[name](graph, layout)
    return replace(found, chip=layout.chip_of) if layout.chips > 1 else found
