"""Folders that are complete or absent, and that replace only what abele wrote.

A folder is written under another name, and then takes its place at once. A process that is killed,
or a disk that is full, leaves the previous folder. Each folder has a manifest: a list of its files
with their SHA-256 digests. A folder is replaced only if its manifest lists all that is in it, and
nothing has changed since.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from hashlib import file_digest
from itertools import chain, count
from pathlib import Path
from stat import S_IMODE
from typing import Any, cast

from .errors import InputError
from .temporary_entries import KEEPS, clean, folder_beside
from .whole_file import check_parents

MANIFEST = ".abele.json"
"""The file in a folder that lists the folder's other files with their digests."""

FORMAT, VERSION = "abele folder", 1

EXCHANGE_EVENT = "abele.exchange"
"""The audit event before two folders are exchanged, as Python has one before each renaming."""

_HERE = -100
"""AT_FDCWD: paths are relative to the working folder. Source: Linux, include/uapi/linux/fcntl.h."""
_EXCHANGE = 2
"""RENAME_EXCHANGE. Source: Linux, include/uapi/linux/fs.h."""


@contextmanager
def whole_folder(folder: Path, kind: str) -> Generator[Path]:
    """An empty folder that takes the place of another one when the block succeeds.

    Raises InputError as check_whole_folder does, and instead of any OSError of the block.

    If the block fails, the folder stays as it was.

    Args:
        folder: the final path; it may be missing.
        kind: what the folder holds, such as "a graph"; it is replaced only by the same kind.
    """
    place = Path(os.path.realpath(folder))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with folder_beside(place) as beside:
            yield beside
            _write_manifest(beside, kind)
            # The work may have taken long, and the folder may have changed meanwhile.
            check_whole_folder(folder, kind)
            _put(beside, place)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {reason(error)}") from error


@contextmanager
def folder_until_failure(folder: Path, kind: str) -> Generator[Path]:
    """Like whole_folder, but the folder is also kept if the block fails: it shows the failure.

    It is not kept if it is empty, or if the system refuses to write it. Raises InputError.
    """
    failure: BaseException | None = None
    try:
        with whole_folder(folder, kind) as made:
            try:
                yield made
            except BaseException as error:
                # Another whole_folder inside this one turns an OSError into an InputError.
                is_systems = isinstance(error, OSError) or isinstance(error.__cause__, OSError)
                if is_systems or not any(made.iterdir()):
                    raise
                failure = error
    except InputError as problem:
        if failure is None:
            raise
        # The error that ended the block matters more than any of ours.
        failure.add_note(f"not written: {problem}")
    if failure is not None:
        raise failure


def free_folder(folder: Path, kind: str) -> Path:
    """The path of a folder, with a number added if it cannot be replaced.

    Raises InputError if no folder can be created there.

    Args:
        kind: for whole_folder.
    """
    place = Path(os.path.realpath(folder))
    check_parents(folder, place.parent)
    clean(place.parent)
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(
        each
        for each in chain([folder], numbered)
        if not os.path.lexists(each) or not _problem(Path(os.path.realpath(each)), kind)
    )


def reason(error: OSError) -> str:
    """The system's own message for an error. Libraries add more to it."""
    return os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]


def check_whole_folder(folder: Path, kind: str) -> None:
    """Raise InputError unless a folder can be written and loses nothing. Creates nothing.

    Call it before long work.

    Args:
        kind: as for whole_folder.
    """
    place = Path(os.path.realpath(folder))
    check_parents(folder, place.parent)
    # A process that was killed while it replaced this folder may have left it under another name.
    clean(place.parent)
    problem = _problem(place, kind) if os.path.lexists(place) else ""
    if problem:
        raise InputError(
            f"{folder}: cannot be written: {problem}; choose another folder, or remove it"
        )


def _problem(place: Path, kind: str) -> str:
    """Why a folder cannot be replaced, or ""."""
    if not place.is_dir():
        return "it is not a folder"
    if os.path.ismount(place):
        return "it is a mount point, which cannot be replaced"
    if Path.cwd().is_relative_to(place):
        return "it is or holds the working folder, which cannot be replaced"
    own = _manifest(place)[1]
    if own and own != kind:
        return f"it holds {own}, which {kind} does not replace"
    return difference(place)


def difference(folder: Path) -> str:
    """How an existing folder differs from its manifest, or "". An empty folder needs none."""
    found, _ = _manifest(folder)
    parents = {str(each) for name in found for each in Path(name).parents}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name == MANIFEST and found:
            continue
        if path.is_symlink() or not (path.is_file() if name in found else name in parents):
            return f"it holds {name}, which abele did not write"
        if name in found and _digest(path) != found[name]:
            return f"it holds {name}, which was changed since abele wrote it"
    return ""


def _manifest(place: Path) -> tuple[dict[str, str], str]:
    """The digests of a folder's files by name, and its kind; ({}, "") without a manifest."""
    try:
        record: object = json.loads((place / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}, ""
    if not isinstance(record, dict):
        return {}, ""
    known = cast(dict[str, Any], record)
    files, kind = known.get("files"), known.get("kind")
    if known.get("format") != FORMAT or known.get("version") != VERSION:
        return {}, ""
    if not isinstance(files, dict) or not isinstance(kind, str):
        return {}, ""
    return {str(name): str(digest) for name, digest in cast(dict[str, Any], files).items()}, kind


def _write_manifest(folder: Path, kind: str) -> None:
    files = {
        str(path.relative_to(folder)): _digest(path)
        for path in sorted(folder.rglob("*"))
        if not path.is_dir()
    }
    record = {"format": FORMAT, "version": VERSION, "kind": kind, "files": files}
    (folder / MANIFEST).write_text(json.dumps(record, indent=1), encoding="utf-8")


def _digest(path: Path) -> str:
    with open(path, "rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _put(made: Path, place: Path) -> None:
    """Move a folder to a place. A folder that was there is then at the path that the moved one
    had."""
    if not place.exists():
        os.rename(made, place)
        return
    os.chmod(made, S_IMODE(place.stat().st_mode))
    if _exchanged(made, place):
        return
    with folder_beside(place, KEEPS) as was:
        os.rename(place, was / place.name)
        os.rename(made, place)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders at once. Returns False if this system cannot. Raises OSError."""
    rename = exchange_function()
    if rename is None:
        return False
    sys.audit(EXCHANGE_EVENT, str(one), str(other))
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(other))


@cache
def exchange_function() -> Any:
    """The system's function that exchanges two directory entries; None if it has none."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
