"""The files that a model names beside its own, such as those of its weights."""

from __future__ import annotations

from pathlib import Path

from ...ir.support.errors import InputError


def file_inside(folder: Path, where: str, what: str) -> Path:
    """The file of external data. It must lie below the folder, with all links followed.

    Raises InputError, also if there is no such file.

    Args:
        where: the path as the model names it.
        what: begins messages.
    """
    if not where or "\0" in where or Path(where).is_absolute() or ".." in Path(where).parts:
        raise InputError(
            f"{what}: external data in {where!r}; need a path below the model's folder"
        )
    try:
        path = (folder / where).resolve()
        inside = path.is_relative_to(folder.resolve())
        there = inside and path.is_file()
    except (OSError, RuntimeError) as error:
        raise InputError(f"{what}: cannot read {where!r}: {error}") from None
    if not inside:
        raise InputError(f"{what}: {where!r} links to a place outside the model's folder")
    if not there:
        raise InputError(f"{what}: there is no file {where!r} of external data")
    return path
