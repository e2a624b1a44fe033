"""Draws a picture of a whole graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np
from PIL import Image

from ....ir.phases import several
from ....ir.support.errors import InputError
from ....ir.support.on_step import OnStep, ignore_step
from ....ir.support.whole_file import whole_file
from .blur import blur
from .colours import coloured
from .drawable import Drawable
from .forces import Floats
from .formats import FORMATS
from .layout import Layout, lay_out
from .lettering import labels_of, lettered
from .measures import Measures, measured
from .memory import check_memory
from .raster import Sheet, Window, draw
from .sample import sample_edges
from .sampled import Sampled
from .tone import Picture, Tone, brightest, finished

TONE = Tone()

POINT = 0.012
"""The light of a vertex, as a share of full brightness."""

PNG_LEVEL = 4
"""The level of PNG compression. Level 6 takes twice the time, for files 3 % smaller."""

MOST_IN_TRAINING = 48
"""The most names on a picture of a step of training, whose layers have up to three lobes each."""

CHIP_MARGIN = 0.11
"""The margin of a picture of several chips, as a share of its side: they fill its corners, where
the legend is."""

CROWD = 0.1
"""The most light of all vertices in a pixel, in the median over pixels with vertices."""


@dataclass(frozen=True)
class Subject:
    """The subject of a picture.

    Attributes:
        network: its name.
        batch: its batch size, in words.
        sources: what lines of the model's source say, by file and line, such as net.py:12.
    """

    network: str
    batch: str
    sources: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, eq=False)
class Laid:
    """A graph whose vertices have places, ready for drawing in any colours.

    Attributes:
        whole: the graph that this graph is a sample of, if it is a sample.
    """

    graph: Drawable
    whole: Drawable
    subject: Subject
    layout: Layout
    measures: Measures


@dataclass(frozen=True, eq=False)
class Scan:
    """A picture and its contents.

    Attributes:
        labels: the number of layer names drawn, and of layers.
    """

    image: Image.Image
    laid: Laid
    edges: int
    vertices: int
    labels: int
    seconds: float


def laid_out(
    graph: Drawable,
    subject: Subject,
    size: int,
    seed: int = 0,
    share: int = 1,
    on_step: OnStep = ignore_step,
) -> Laid:
    """Find places for all vertices, or for every share-th.

    Raises InputError for a graph without vertices, and for one too large for this host's memory.

    Args:
        size: of the planned picture.
    """
    if not graph.vertex_count:
        raise InputError(f"{subject.network}: computes nothing on the device: no vertex to draw")
    part = Sampled(graph, share) if share > 1 else graph
    check_memory(part, size)
    sample = sample_edges(part, seed, on_step)
    layout = lay_out(part, sample, seed, on_step)
    on_step("measure")
    found = measured(layout.x, layout.y, layout.lobe_of, sample, seed)
    return Laid(part, graph, subject, layout, found)


def scan(laid: Laid, colour: str, size: int, on_step: OnStep = ignore_step) -> Scan:
    """Draw a graph with places, in a square of size x size pixels.

    Asserts that as many vertices and edges were drawn as the graph counts.
    """
    start = perf_counter()
    graph, layout = laid.graph, laid.layout
    colouring = coloured(colour, graph, layout)
    margin = {} if layout.chips == 1 else {"margin": CHIP_MARGIN}
    window = Window.around(layout.x, layout.y, size, **margin)
    sheet = draw(graph, *window.pixels(layout.x, layout.y), colouring, size, on_step)
    check_drawn(graph, sheet)
    on_step("develop")
    picture = developed(sheet)
    names = labels_of(layout, window)
    if several(each.phase for each in graph.sets):
        names = names[:MOST_IN_TRAINING]
    image, labels = lettered(picture, names, laid.subject.network, legend(laid, sheet), colouring)
    return Scan(image, laid, sheet.edges, sheet.vertices, labels, perf_counter() - start)


def check_drawn(graph: Drawable, sheet: Sheet) -> None:
    """Assert that every counted vertex and edge was drawn once."""
    assert sheet.vertices == graph.vertex_count, (sheet.vertices, graph.vertex_count)
    assert sheet.edges == graph.edge_count, (sheet.edges, graph.edge_count)
    assert sheet.between == graph.crossing_count, (sheet.between, graph.crossing_count)


def developed(sheet: Sheet) -> Picture:
    """The picture of a sheet. Adds the light of points to the light of fibres, in place."""
    full = brightest(sheet.fibres, TONE)
    size = len(sheet.points)
    # A point is about a pixel of a picture 2048 wide, or smaller if points would cover everything.
    sigma = min(size / 2048, (0.5 / (2 * np.pi * max(sheet.vertices, 1))) ** 0.5 * size)
    area = 1.0
    if sigma > 0.5:
        area = 2 * np.pi * sigma**2
        blur(sheet.points, sigma)
    strength = min(POINT * area, CROWD / _median(sheet.points[..., 3]))
    np.multiply(sheet.points, np.float32(strength * full), out=sheet.points)
    np.add(sheet.fibres, sheet.points, out=sheet.fibres)
    return finished(sheet.fibres, TONE, full)


def _median(weight: Floats) -> float:
    """The median over lit pixels, from at most a million of them."""
    lit = weight[weight > 0]
    return float(np.median(lit[:: max(1, len(lit) // 1_000_000)])) if len(lit) else 1.0


def legend(laid: Laid, sheet: Sheet) -> list[str]:
    """The legend of a picture: the machine, the counted and the drawn numbers, and the measures."""
    graph, measures = laid.graph, laid.measures
    lines = [
        f"{graph.target}, {graph.tiles:,} tiles, {laid.subject.batch}",
        f"vertices: {sheet.vertices:,} drawn = {graph.vertex_count:,} counted",
        f"edges: {sheet.edges:,} drawn = {graph.edge_count:,} counted",
        f"layer purity {measures.purity:.1%}, median edge {measures.edge:.1%} of a random pair",
    ]
    if graph.chips > 1:
        lines[0] = f"{graph.target}, {graph.chips:,} chips, {graph.tiles:,} tiles, " + (
            laid.subject.batch
        )
        share = sheet.between / max(sheet.edges, 1)
        lines.insert(3, f"edges between chips: {sheet.between:,} ({share:.2%})")
    if laid.whole is not graph:
        lines.insert(
            1,
            f"A SAMPLE of {laid.whole.vertex_count:,} vertices and {laid.whole.edge_count:,} edges",
        )
    return lines


def write_picture(image: Image.Image, path: Path, quality: int = 90) -> None:
    """Write a picture completely or not at all. Raises InputError.

    Args:
        quality: for lossy formats.
    """
    try:
        with whole_file(path) as stream:
            image.save(
                stream,
                format=FORMATS[path.suffix.lower()],
                quality=quality,
                compress_level=PNG_LEVEL,
            )
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
