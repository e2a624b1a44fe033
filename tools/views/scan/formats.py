"""The file formats of pictures, their sizes, and what their colours show."""

from __future__ import annotations

from pathlib import Path

from ....ir.support.errors import InputError
from ....ir.support.suggestions import suggestion

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
"""Formats by file extension."""

COLOURS = ("layer", "direction", "time", "cycles", "phase", "chip")
"""The properties that colours can show; colours.py computes them."""

SMALLEST, LARGEST = 256, 16384
"""Pixels of width and height."""


def check_format(path: Path) -> None:
    """Raise InputError for a file whose extension is not that of a picture."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: unknown picture format; need {', '.join(FORMATS)}")


def check_size(size: int) -> None:
    """Raise InputError for an option --size that no picture can have."""
    if not SMALLEST <= size <= LARGEST:
        raise InputError(f"--size {size}: need {SMALLEST} to {LARGEST} pixels")


def check_color(color: str) -> None:
    """Raise InputError for an option --color that is none of COLOURS."""
    if color not in COLOURS:
        raise InputError(
            f"--color {color}: need one of {', '.join(COLOURS)}{suggestion(color, COLOURS)}"
        )
