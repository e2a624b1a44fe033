"""Check and write the files of a command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ...ir.support.errors import InputError
from ...ir.support.whole_file import check_file, whole_file

PROGRAM_FILE = ".abele"
"""How the name of a program file ends."""


def check_files(read: Mapping[str, Path | None], written: Mapping[str, Path | None]) -> None:
    """Raise InputError unless every output can be written, and all paths lead to different files.

    The folder of an output must exist: creating it would hide a mistyped path.
    A device may be named twice, because writing to it overwrites nothing.
    """
    names: dict[str | tuple[int, int], str] = {}
    for name, path in [*read.items(), *written.items()]:
        if path is None:
            continue
        if name in written:
            check_file(path)
            folder = Path(os.path.realpath(path)).parent
            if not folder.exists():
                raise InputError(
                    f"{path}: cannot be written: the folder {folder} does not exist; create it "
                    "first, or choose another path"
                )
        if path.exists() and not path.is_file():
            continue
        key = (path.stat().st_dev, path.stat().st_ino) if path.exists() else os.path.realpath(path)
        if key in names:
            raise InputError(f"{path}: both {names[key]} and {name}; need a file for each")
        names[key] = name


def write_text(path: Path, text: str) -> None:
    """Write a whole file, or none. Raises InputError if the system refuses."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file, or none. Raises InputError if the system refuses."""
    try:
        with whole_file(path) as stream:
            stream.write(data)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
