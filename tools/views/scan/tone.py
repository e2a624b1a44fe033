"""Tone mapping: shows faint and bright light together, keeps hues, and adds a glow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .blur import blur
from .forces import Floats
from .kernels import develop
from .threads import in_slices

Picture = NDArray[np.uint8]
"""(size, size, 3), as on a screen."""


@dataclass(frozen=True)
class Tone:
    """The parameters of the conversion of light to brightness.

    Attributes:
        knee: the part of the scale for faint light.
        power: contrast.
        white: the share of lit pixels, in percent, that are below full brightness.
        saturation: of hues.
        glow: pairs of a radius, in pixels of a picture 4096 wide, and a strength.
        ground: linear light of the empty sheet.
    """

    knee: float = 180.0
    power: float = 1.9
    white: float = 99.9
    saturation: float = 1.35
    glow: tuple[tuple[float, float], ...] = ((10.0, 0.28), (36.0, 0.18), (180.0, 0.10))
    ground: tuple[float, float, float] = (0.0012, 0.0015, 0.0040)


def brightest(light: Floats, tone: Tone) -> float:
    """The weight that is drawn at full brightness: (size, size, 4) of light."""
    lit = light[..., 3][light[..., 3] > 0]
    return (
        float(np.percentile(lit[:: max(1, len(lit) // 2_000_000)], tone.white)) if len(lit) else 1.0
    )


def finished(light: Floats, tone: Tone, full: float) -> Picture:
    """The picture.

    Args:
        light: (size, size, 4), three colours times weight, and weight.
    """
    size = len(light)
    shrink = 4 if size % 4 == 0 and size >= 512 else 1
    small = np.empty((size // shrink, size // shrink, 3), np.float32)
    picture = np.empty((size, size, 3), np.float32)
    knee, power, saturation = map(np.float32, (tone.knee, tone.power, tone.saturation))

    def shown(_: int, first: int, last: int) -> None:
        rows = slice(first * shrink, last * shrink)
        develop(light[rows], np.float32(full), knee, power, saturation, picture[rows])
        small[first:last] = (
            picture[rows].reshape(-1, shrink, size // shrink, shrink, 3).mean(axis=(1, 3))
        )

    in_slices(shown, size // shrink)
    glow = glow_of(small, tone, size / shrink / 4096)
    result = np.empty((size, size, 3), np.uint8)
    wide = np.empty((size, size), np.float32)
    for channel in range(3):
        layer = Image.fromarray(glow[..., channel]).resize((size, size), Image.Resampling.BICUBIC)
        np.add(picture[..., channel], np.asarray(layer), out=wide)
        result[..., channel] = exposed(wide, tone.ground[channel])
    return result


def glow_of(small: Floats, tone: Tone, scale: float) -> Floats:
    """The glow around bright light.

    Args:
        scale: pixels per pixel of a picture 4096 wide.
    """
    glow = np.zeros_like(small)
    for radius, strength in tone.glow:
        spread = small.copy()
        blur(spread, radius * scale)
        glow += np.float32(strength) * spread
    return glow


def exposed(light: Floats, ground: float) -> NDArray[np.uint8]:
    """Screen values of linear light. Highlights are compressed as on film."""
    shone = 1 - np.exp(-np.float32(1.7) * (np.maximum(light, 0) + np.float32(ground)))
    return SCREEN[(shone * np.float32(len(SCREEN) - 1)).astype(np.int32)]


SCREEN = (np.linspace(0, 1, 1 << 14) ** (1 / 2.2) * 255 + 0.5).astype(np.uint8)
"""Screen values for light from 0 to 1."""
