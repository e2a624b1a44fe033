"""The folder of a dump: whether it can take one."""

from __future__ import annotations

from pathlib import Path

from ....ir.errors import InputError
from ....ir.instruments.dump_ir import check_dump_folder

PAGE = "index.html"

MARK = "<!-- abele: what every pass did -->"
"""The first bytes of every page."""


def check_dump(folder: Path, source: str) -> None:
    """Raise InputError if a folder cannot take a dump, or holds a page that is not a dump's.

    source: the path that the program is read from.
    """
    check_dump_folder(folder, source)
    file = folder / PAGE
    if file.exists() and not _is_ours(file):
        raise InputError(f"{file}: not a page of abele's, so it is kept; need another folder")


def _is_ours(file: Path) -> bool:
    try:
        with open(file, "rb") as stream:
            return MARK.encode() in stream.read(256)
    except OSError:
        return False
