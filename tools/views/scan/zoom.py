"""Writes a zoomable page: all colourings as pyramids, names, search, and vertex details."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ....ir.phases import several
from ....ir.support.on_step import OnStep, ignore_step
from ....ir.support.whole_folder import check_whole_folder, whole_folder
from ...driver.page.assets import BESIDE, Assets
from .colours import COLOURINGS, Colouring, coloured, screen
from .progress import within
from .pyramid import OVERLAP, TILE, levels_of, write_pyramid
from .raster import Window, draw
from .scan import Laid, check_drawn, developed, legend
from .tone import Picture

MARK = "<!-- abele: a scan to zoom into -->"
"""The comment at the beginning of every page."""

KIND = "a scan of abele"

PAGE = "index.html"
ASSETS = Assets(__package__ or "", MARK, "zoom.html", "zoom.css", ("zoom.js",), BESIDE)

INSERTED = {
    "OSD": "openseadragon.min.js",
    "LICENCE": "openseadragon.LICENSE.txt",
}
"""The files that are inserted into a page. OpenSeadragon (openseadragon.github.io) shows the
picture, and its licence is included."""

GRID = 512
"""Cells per side of the grid in which hovering looks up vertices."""


def check_zoom(folder: Path) -> None:
    """Raise InputError if a page cannot be written to a folder, or would replace other files."""
    check_whole_folder(folder, KIND)


def write_zoom(laid: Laid, folder: Path, size: int, on_step: OnStep = ignore_step) -> None:
    """Write the page and its pictures, completely or not at all. Raises InputError.

    Args:
        size: pixels per side of each picture.
    """
    with whole_folder(folder, KIND) as made:
        (made / PAGE).write_bytes(_written(laid, made, size, on_step).encode())


def _written(laid: Laid, folder: Path, size: int, on_step: OnStep) -> str:
    """Write the pictures. Returns the text of the page."""
    window = Window.around(laid.layout.x, laid.layout.y, size)
    x, y = window.pixels(laid.layout.x, laid.layout.y)
    shown: list[dict[str, Any]] = []
    lines: list[str] = []
    layer_colours = np.empty((0, 3), np.float32)
    chip_colours = np.empty((0, 3), np.float32)
    for name in _colourings(laid):
        colouring = coloured(name, laid.graph, laid.layout)
        if name == "layer":
            layer_colours = colouring.palette
        if name == "chip":
            chip_colours = colouring.palette
        sheet = draw(laid.graph, x, y, colouring, size, within(on_step, f"by {name}"))
        check_drawn(laid.graph, sheet)
        lines = legend(laid, sheet)
        on_step(f"by {name}: develop")
        write_pyramid(_image(developed(sheet)), folder / name)
        shown.append(_key(name, colouring))
    levels = levels_of(size)
    data = {
        "title": laid.subject.network,
        "lines": lines,
        "size": size,
        "tile": TILE,
        "overlap": OVERLAP,
        "levels": [levels.least, levels.most],
        "colourings": shown,
        "layers": [
            *_layers(laid, x / np.float32(size), y / np.float32(size), layer_colours),
            *_chips(laid, x / np.float32(size), y / np.float32(size), chip_colours),
        ],
        "chips": laid.graph.chips,
        "chip_tiles": laid.graph.tiles // laid.graph.chips,
        "sets": [
            [each.name, int(layer), each.codelet, each.origin or "", each.compute_set, each.line]
            for each, layer in zip(laid.graph.sets, laid.layout.layer_of_set)
        ],
        "sources": _sources(laid),
        "grid": GRID,
        "cells": _packed_columns(_cells(laid, x / np.float32(size), y / np.float32(size))),
    }
    return ASSETS.page(f"{laid.subject.network}: scan", data, INSERTED)


def _image(picture: Picture) -> Image.Image:
    return Image.fromarray(picture)


def _key(name: str, colouring: Colouring) -> dict[str, Any]:
    shown = screen(colouring.key[:: max(1, len(colouring.key) // 24)])
    return {
        "name": name,
        "title": colouring.title,
        "low": colouring.low,
        "high": colouring.high,
        "key": [_css(rgb) for rgb in shown],
    }


def _css(rgb: NDArray[np.float32]) -> str:
    return "#" + "".join(f"{round(float(value) * 255):02x}" for value in rgb)


def _layers(
    laid: Laid, x: NDArray[np.float32], y: NDArray[np.float32], colours: NDArray[np.float32]
) -> list[dict[str, Any]]:
    """For each layer: its name, lines, vertices, colour, centre, and the box around most of it."""
    layout = laid.layout
    lines: list[list[str]] = [[] for _ in layout.layers]
    for each, of in zip(laid.graph.sets, layout.layer_of_set):
        if each.line and each.line not in lines[of]:
            lines[of].append(each.line)
    return _areas(layout.layers, lines, layout.layer_of, x, y, colours)


def _chips(
    laid: Laid, x: NDArray[np.float32], y: NDArray[np.float32], colours: NDArray[np.float32]
) -> list[dict[str, Any]]:
    """The same for each chip of several."""
    chips = laid.layout.chips
    if chips == 1:
        return []
    names = [f"chip {k}" for k in range(chips)]
    return _areas(names, [()] * chips, laid.layout.chip_of, x, y, colours)


def _areas(
    names: Sequence[str],
    lines: Sequence[Sequence[str]],
    of: NDArray[np.int32],
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    colours: NDArray[np.float32],
) -> list[dict[str, Any]]:
    """What the list of a page has of each area: of a layer or of a chip. Empty chips are left out.

    Args:
        of: the area of each vertex.
    """
    order = np.argsort(of, kind="stable")
    counts = np.bincount(of, minlength=len(names))
    found: list[dict[str, Any]] = []
    for k, ids in enumerate(np.split(order, np.cumsum(counts)[:-1])):
        if not len(ids):
            continue
        thin = ids[:: max(1, len(ids) // 20_000)]
        ends = np.percentile(np.stack([x[thin], y[thin]]), [1, 50, 99], axis=1)
        nearest = thin[np.argmin(np.hypot(x[thin] - ends[1, 0], y[thin] - ends[1, 1]))]
        found.append(
            {
                "name": names[k],
                "lines": list(lines[k]),
                "n": len(ids),
                "colour": _css(screen(colours[k])),
                "at": [round(float(x[nearest]), 5), round(float(y[nearest]), 5)],
                "box": [round(float(v), 5) for v in (*ends[0], *ends[2])],
            }
        )
    return found


def _colourings(laid: Laid) -> list[str]:
    """The colourings that say something about a graph."""
    known = {
        "phase": bool(several(each.phase for each in laid.graph.sets)),
        "chip": laid.graph.chips > 1,
    }
    return [name for name in COLOURINGS if known.get(name, True)]


def _sources(laid: Laid) -> dict[str, str]:
    """What the lines of the vertices say, by file and line."""
    lines = dict.fromkeys(each.line for each in laid.graph.sets)
    known = laid.subject.sources
    return {line: known[line] for line in lines if line in known}


def _cells(
    laid: Laid, x: NDArray[np.float32], y: NDArray[np.float32]
) -> dict[str, NDArray[np.int32]]:
    """For each cell: the number of its vertices, and the id and columns of one of them."""
    cell = np.minimum((y * GRID).astype(np.int32), GRID - 1) * np.int32(GRID)
    cell += np.minimum((x * GRID).astype(np.int32), GRID - 1)
    # The last write stays, which is the vertex with the highest id.
    one = np.full(GRID * GRID, -1, np.int32)
    one[cell] = np.arange(len(cell), dtype=np.int32)
    count = np.bincount(cell, minlength=GRID * GRID).astype(np.int32)
    columns = laid.graph.vertices()
    found = {"id": one, "count": count}
    for name in ("set", "tile", "worker", "cycles"):
        values = np.full(GRID * GRID, -1, np.int32)
        values[one >= 0] = columns[name][one[one >= 0]]
        found[name] = values
    return found


def _packed_columns(columns: dict[str, NDArray[np.int32]]) -> dict[str, str]:
    """Compressed columns of 32-bit integers, little-endian."""
    return {
        name: base64.b64encode(zlib.compress(values.astype("<i4").tobytes(), 6)).decode()
        for name, values in columns.items()
    }
