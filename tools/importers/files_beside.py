"""Reads the files of a model, and finds those that it names beside its own."""

from __future__ import annotations

from pathlib import Path

from ...ir.support.errors import InputError


def file_inside(folder: Path, where: str, what: str, kind: str = "external data") -> Path:
    """A file that a model names. It must lie below the folder, with all links followed.

    Raises InputError, also if there is no such file.

    Args:
        where: the path as the model names it.
        what: begins messages.
        kind: what the file holds, in messages.
    """
    if not where or "\0" in where or Path(where).is_absolute() or ".." in Path(where).parts:
        raise InputError(f"{what}: {kind} in {where!r}; need a path below the model's folder")
    try:
        path = (folder / where).resolve()
        inside = path.is_relative_to(folder.resolve())
        there = inside and path.is_file()
    except (OSError, RuntimeError) as error:
        raise InputError(f"{what}: cannot read {where!r}: {error}") from None
    if not inside:
        raise InputError(f"{what}: {where!r} links to a place outside the model's folder")
    if not there:
        raise InputError(f"{what}: there is no file {where!r} of {kind}")
    return path


def read_regular(path: Path, place: str) -> bytes:
    """The bytes of a file. Raises InputError for one that cannot be read, such as a device.

    Args:
        place: the file in messages.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{place}: no regular file")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror or error}") from None
