"""Draws light on a sheet: every edge as a curve, and every vertex as a point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ....backends.graph import EdgeBlock
from ....ir.support.on_step import OnStep
from .colours import Colouring
from .drawable import Drawable
from .forces import Floats
from .kernels import dots, fibres
from .threads import SLICES, in_slices

SAMPLES = 400_000_000
"""The approximate number of samples of all edges. An edge has at least 4 and at most 40."""

SAMPLES_A_PIXEL = 100
"""More samples per pixel than this make no visible difference."""

BEND = 0.10
SPACING = 1.5
SWELL = -0.3
"""The bend of a fibre, the pixels between samples, and the exponent of its light's growth with
length.
"""


GOLD, MOST_GOLD = 0.5, 40
"""The least light of the edges between chips, as a share of that of all others, where they have a
colour of their own; and the most that they are brightened for this. They are what such a picture is
about. Chosen by looking at pictures."""


@dataclass(frozen=True)
class Window:
    """A square of the layout, and the sheet that it is drawn on.

    Attributes:
        left, top: of the square, in units of the layout.
        scale: pixels per unit.
        size: pixels per side.
    """

    left: float
    top: float
    scale: float
    size: int

    @staticmethod
    def around(x: Floats, y: Floats, size: int, margin: float = 0.07) -> Window:
        """A window that holds all places, with a margin on each side as a share of its side."""
        x0, x1, y0, y1 = float(x.min()), float(x.max()), float(y.min()), float(y.max())
        side = max(x1 - x0, y1 - y0, 1e-6) / (1 - 2 * margin)
        return Window((x0 + x1 - side) / 2, (y0 + y1 - side) / 2, size / side, size)

    def pixels(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Places on the sheet."""
        scale = np.float32(self.scale)
        return (x - np.float32(self.left)) * scale, (y - np.float32(self.top)) * scale


@dataclass(frozen=True, eq=False)
class Sheet:
    """The drawing: three colours times weight, and weight, (size, size, 4) each.

    Attributes:
        edges, vertices: the numbers of drawn edges and vertices.
        between: the number of drawn edges that lead from chip to chip.
    """

    fibres: Floats
    points: Floats
    edges: int
    vertices: int
    between: int = 0


def draw(
    graph: Drawable, x: Floats, y: Floats, colouring: Colouring, size: int, on_step: OnStep
) -> Sheet:
    """Draw all edges and vertices.

    Args:
        x, y: places in pixels.
    """
    traces, edges, between = draw_edges(graph, x, y, colouring, size, on_step)
    on_step("draw vertices")
    points, vertices = draw_vertices(x, y, colouring, size)
    return Sheet(traces, points, edges, vertices, between)


def draw_edges(
    graph: Drawable, x: Floats, y: Floats, colouring: Colouring, size: int, on_step: OnStep
) -> tuple[Floats, int, int]:
    """The light of all edges, their number, and the number of those between chips."""
    pictures = np.zeros((SLICES, size, size, 4), np.float32)
    budget = min(SAMPLES, SAMPLES_A_PIXEL * size * size)
    samples = int(np.clip(budget // max(graph.edge_count, 1), 4, 40))
    golden = replace(
        colouring, ink=np.zeros(len(colouring.ink), np.uint16), palette=colouring.between
    )
    apart = len(colouring.chip) > 0 and len(colouring.between) > 0
    gold = np.zeros(pictures.shape if apart else (0,), np.float32)
    seen = drawn = between = 0
    for block in graph.edges():
        away = _between(block, colouring)
        if away is not None and away.any():
            between += int(away.sum())
        if away is None or not apart or not away.any():
            drawn += _draw_block(block, x, y, colouring, samples, seen, pictures)
        else:
            drawn += _draw_block(_some(block, ~away), x, y, colouring, samples, seen, pictures)
            drawn += _draw_block(_some(block, away), x, y, golden, samples, seen, gold)
        seen += len(block.producer)
        on_step(f"draw edges: {seen:,} of {graph.edge_count:,}")
    for other in pictures[1:]:
        pictures[0] += other
    if between and apart:
        _add_gold(pictures[0], gold.sum(axis=0))
    return pictures[0], drawn, between


def _add_gold(picture: Floats, gold: Floats) -> None:
    """Add the light of edges between chips, in place; more of it where they are few."""
    light, own = float(picture[..., 3].sum()), float(gold[..., 3].sum())
    picture += gold * np.float32(np.clip(GOLD * light / max(own, 1e-9), 1, MOST_GOLD))


def _between(block: EdgeBlock, colouring: Colouring) -> NDArray[np.bool_] | None:
    """Which edges lead from chip to chip; None on one chip."""
    if not len(colouring.chip):
        return None
    return colouring.chip[block.producer] != colouring.chip[block.consumer]


def _some(block: EdgeBlock, kept: NDArray[np.bool_]) -> EdgeBlock:
    """Some edges of a block."""
    return EdgeBlock(block.link, block.producer[kept], block.consumer[kept], block.bytes[kept])


def _draw_block(
    block: EdgeBlock,
    x: Floats,
    y: Floats,
    colouring: Colouring,
    samples: int,
    seed: int,
    pictures: Floats,
) -> int:
    """Draw some edges, each slice on its own picture: (slices, size, size, 4)."""
    drawn = [0] * SLICES

    def traced(part: int, first: int, last: int) -> None:
        drawn[part] = fibres(
            block.producer,
            block.consumer,
            first,
            last,
            x,
            y,
            colouring.ink,
            colouring.palette,
            colouring.directions,
            samples,
            np.float32(SPACING),
            np.float32(BEND),
            np.float32(SWELL),
            seed + part,
            pictures[part],
        )

    in_slices(traced, len(block.producer))
    return sum(drawn)


def draw_vertices(x: Floats, y: Floats, colouring: Colouring, size: int) -> tuple[Floats, int]:
    """The light of all vertices, one point each, and their number."""
    picture = np.zeros((size, size, 4), np.float32)
    return picture, dots(x, y, colouring.ink, colouring.palette, picture)
