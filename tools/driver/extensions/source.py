"""Read the file of an extension."""

from __future__ import annotations

from pathlib import Path

from ....ir.support.errors import InputError


def read_source(path: Path) -> bytes:
    """The bytes of a file. Raises InputError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
