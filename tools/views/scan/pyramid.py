"""Writes a picture as tiles at every power of two of its size, for deep-zoom viewers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import Image

TILE = 512
OVERLAP = 1
LEAST = 256
"""The smallest level has at most this many pixels per side."""

QUALITY = 82


@dataclass(frozen=True)
class Levels:
    """Levels of a pyramid. At level l the picture is about size / 2 ** (most - l) pixels wide."""

    size: int
    least: int
    most: int


def levels_of(size: int) -> Levels:
    """The levels of a square picture, numbered as in the Deep Zoom format. Level 0 is one pixel."""
    most = (size - 1).bit_length()
    least = most
    while least and -(-size >> (most - least)) > LEAST:
        least -= 1
    return Levels(size, least, most)


def write_pyramid(image: Image.Image, folder: Path) -> int:
    """Write folder/LEVEL/COLUMN_ROW.webp for all levels. Returns the number of tiles."""
    levels = levels_of(image.width)
    written = 0
    for level in range(levels.most, levels.least - 1, -1):
        if level < levels.most:
            size = -(-levels.size // 2 ** (levels.most - level))
            image = image.resize((size, size), Image.Resampling.BOX)
        place = folder / str(level)
        place.mkdir(parents=True)
        for row in range(0, image.height, TILE):
            for column in range(0, image.width, TILE):
                box = (
                    max(column - OVERLAP, 0),
                    max(row - OVERLAP, 0),
                    min(column + TILE + OVERLAP, image.width),
                    min(row + TILE + OVERLAP, image.height),
                )
                path = place / f"{column // TILE}_{row // TILE}.webp"
                image.crop(box).save(path, format="WEBP", quality=QUALITY, method=2)
                written += 1
    return written
