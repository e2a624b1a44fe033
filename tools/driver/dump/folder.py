"""The folder of a dump, which replaces nothing but a previous dump."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from ....ir.support.errors import InputError
from ....ir.support.whole_folder import check_whole_folder, folder_until_failure

PAGE = "index.html"

KIND = "a dump of abele"

MARK = "<!-- abele: what every pass did -->"
"""The comment at the beginning of every page."""


def check_dump(folder: Path, source: str) -> None:
    """Raise InputError unless a folder can take a dump and loses nothing but a previous dump.

    Args:
        source: the path that the program is read from, which the dump must not remove.
    """
    check_whole_folder(folder, KIND)
    file = Path(source)
    if file.exists() and file.resolve().is_relative_to(folder.resolve()):
        raise InputError(
            f"{folder}: {file.name} would be lost, since a dump removes the previous one; need "
            "another folder"
        )


def dump_folder(folder: Path) -> AbstractContextManager[Path]:
    """A folder for a dump, which takes the place of the previous dump when the block ends.

    If the block fails, so does the dump up to the failure. Raises InputError.
    """
    return folder_until_failure(folder, KIND)
