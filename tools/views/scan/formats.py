"""What a picture can be written as."""

from __future__ import annotations

from pathlib import Path

from ....ir.errors import InputError

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
"""Formats by the ending of the file."""


def check_format(path: Path) -> None:
    """Raise InputError for a file whose ending is no picture's."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: what kind of picture? need {', '.join(FORMATS)}")
