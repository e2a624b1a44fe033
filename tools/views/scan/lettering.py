"""The text on a picture: names of layers, and the legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ...driver.shown_text import shown
from .colours import Colouring, screen
from .layout import Layout
from .raster import Window
from .tone import Picture

MOST_LETTERS = 40
ABOVE = 1 / 60
"""The distance of a chip's name from its highest vertices, as a share of the picture's height."""

SMALLEST = 1 / 105
"""The smallest letters, as a share of the picture's height: readable at 1000 pixels."""


@dataclass(frozen=True)
class Label:
    """The name of a layer or chip, its place on the sheet (x and y in 0..1), and its vertices."""

    name: str
    x: float
    y: float
    vertices: int


def labels_of(layout: Layout, window: Window) -> list[Label]:
    """A label for each lobe, at the vertex nearest to its centre, and above each chip of several.
    The largest are first."""
    x, y = window.pixels(layout.x, layout.y)
    found: list[Label] = []
    for name, ids in zip(layout.lobes, _members(layout.lobe_of, len(layout.lobes)), strict=True):
        if not len(ids) or not name:
            continue
        thin = ids[:: max(1, len(ids) // 20_000)]
        middle_x, middle_y = float(np.median(x[thin])), float(np.median(y[thin]))
        nearest = thin[int(np.argmin(np.hypot(x[thin] - middle_x, y[thin] - middle_y)))]
        found.append(
            Label(name, float(x[nearest]) / window.size, float(y[nearest]) / window.size, len(ids))
        )
    if layout.chips > 1:
        for k, ids in enumerate(_members(layout.chip_of, layout.chips)):
            if len(ids):
                top = float(np.percentile(y[ids], 0.2)) / window.size - ABOVE
                found.append(
                    Label(f"chip {k}", float(np.median(x[ids])) / window.size, top, len(ids))
                )
    return sorted(found, key=lambda each: -each.vertices)


def _members(of: NDArray[np.int32], count: int) -> list[NDArray[np.int64]]:
    """The vertices of each lobe or chip.

    Args:
        of: the number of each vertex's.
    """
    order = np.argsort(of, kind="stable")
    return np.split(order, np.cumsum(np.bincount(of, minlength=count))[:-1])


def shortened(name: str, most: int = MOST_LETTERS) -> str:
    """A name that fits. It keeps its end, because layers often differ there."""
    name = shown(" ".join(name.split()))
    return name if len(name) <= most else "…" + name[-most + 1 :]


def lettered(
    picture: Picture,
    labels: Sequence[Label],
    title: str,
    lines: Sequence[str],
    colouring: Colouring,
) -> tuple[Image.Image, int]:
    """The picture with the labels that do not cover each other, and the number of these labels.

    The key of the colours is at the lower right.

    Args:
        title, lines: the legend, at the lower left.
    """
    image = Image.fromarray(picture)
    size = image.width
    draw = ImageDraw.Draw(image, "RGBA")
    taken: list[tuple[float, float, float, float]] = []
    total = max(sum(each.vertices for each in labels), 1)
    _legend(draw, size, title, lines, taken)
    _key(draw, size, colouring, taken)
    written = 0
    for label in labels:
        height = size * min(max(SMALLEST, 0.055 * (label.vertices / total) ** 0.5), 0.032)
        font = ImageFont.load_default(height)
        name = shortened(label.name)
        box = draw.textbbox((0, 0), name, font=font)
        wide, high = box[2] - box[0], box[3] - box[1]
        for shift in (0, -1.1, 1.1, -2.2, 2.2):
            x = min(max(label.x * size - wide / 2, 2), size - wide - 2)
            y = min(max(label.y * size - high / 2 + shift * height, 2), size - high - 2)
            place = (x - 2, y - 2, x + wide + 2, y + high + 2)
            if not any(_meet(place, other) for other in taken):
                taken.append(place)
                _write(draw, (x - box[0], y - box[1]), name, font, (255, 255, 255, 240))
                written += 1
                break
    return image, written


def _meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _write(
    draw: ImageDraw.ImageDraw,
    at: tuple[float, float],
    text: str,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    fill: tuple[int, int, int, int],
) -> None:
    halo = max(1, round(getattr(font, "size", 10) / 9))
    draw.text(at, text, font=font, fill=fill, stroke_width=halo, stroke_fill=(4, 5, 12, 170))


def _legend(
    draw: ImageDraw.ImageDraw,
    size: int,
    title: str,
    lines: Sequence[str],
    taken: list[tuple[float, float, float, float]],
) -> None:
    large, small = ImageFont.load_default(size / 42), ImageFont.load_default(size / 72)
    left = size * 0.022
    y = size * (1 - 0.022) - len(lines) * size / 54 - size / 30
    top, right = y, left
    for text, font, gap, fill in [
        (shortened(title, 60), large, size / 30, (238, 244, 255, 255)),
        *((line, small, size / 54, (186, 200, 226, 255)) for line in lines),
    ]:
        _write(draw, (left, y), text, font, fill)
        right = max(right, left + draw.textlength(text, font=font))
        y += gap
    taken.append((0, top - 4, right + 4, size))


def _key(
    draw: ImageDraw.ImageDraw,
    size: int,
    colouring: Colouring,
    taken: list[tuple[float, float, float, float]],
) -> None:
    font = ImageFont.load_default(size / 80)
    wide, high = size * 0.2, max(2.0, size / 240)
    left, top = size * (1 - 0.022) - wide, size * (1 - 0.03) - size / 50
    tint = (np.asarray(screen(colouring.key)) * 255).astype(int)
    for k in range(round(wide)):
        colour = tint[k * len(tint) // round(wide)]
        draw.rectangle((left + k, top, left + k + 1, top + high), fill=tuple(map(int, colour)))
    fill = (186, 200, 226, 255)
    _write(draw, (left, top - size / 50), colouring.title, font, fill)
    low, high_text = shortened(colouring.low, 14), shortened(colouring.high, 14)
    _write(draw, (left, top + high + size / 300), low, font, fill)
    end = left + wide - draw.textlength(high_text, font=font)
    _write(draw, (end, top + high + size / 300), high_text, font, fill)
    taken.append((left - 4, top - size / 40, size, size))
