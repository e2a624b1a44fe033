"""The file formats of pictures."""

from __future__ import annotations

from pathlib import Path

from ....ir.errors import InputError

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
"""Formats by file extension."""


def check_format(path: Path) -> None:
    """Raise InputError for a file whose extension is not that of a picture."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: unknown picture format; need {', '.join(FORMATS)}")
