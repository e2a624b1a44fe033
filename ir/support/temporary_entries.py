"""Hidden entries beside an output: what is being written, before it takes the output's place.

An entry is called `.abele-` and 32 hexadecimal digits. Its writer holds a lock on it, which the
system drops when the process ends, however it ends. So a process that writes to the same folder
later knows which entries dead processes have left, and removes them.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

KEEPS = ".was"
"""The end of the name of an entry that holds a previous output while a new one takes its place."""

_NAME = re.compile(rf"\.abele-[0-9a-f]{{32}}({re.escape(KEEPS)})?")

_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A link is not followed, and a pipe is not waited for.
_FOUND = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

cleaned: set[Path] = set()
"""Folders from which this process has removed leftovers. Listing them again would take time."""


@contextmanager
def file_beside(path: Path) -> Generator[tuple[Path, int]]:
    """A new file beside a path: its own path, and a descriptor that the caller closes.

    Unless the caller has renamed the file, it is removed at the end. Raises OSError.
    """
    clean(path.parent)
    beside, lock = _created(path.parent, "", lambda new: os.open(new, _FILE, 0o666))
    try:
        yield beside, os.dup(lock)
    finally:
        with suppress(OSError):
            beside.unlink()
        os.close(lock)


@contextmanager
def folder_beside(path: Path, end: str = "") -> Generator[Path]:
    """A new folder beside a path. Whatever has this name at the end is removed. Raises OSError.

    Args:
        end: KEEPS for a folder that holds a previous output. Such an output is put back at the end
            if nothing else has taken its place.
    """

    def create(new: Path) -> int:
        new.mkdir()
        return os.open(new, _FOLDER)

    clean(path.parent)
    beside, lock = _created(path.parent, end, create)
    try:
        yield beside
    finally:
        _remove(beside)
        os.close(lock)


def clean(folder: Path) -> None:
    """Remove the entries of dead processes from a folder, once per process."""
    if folder in cleaned:
        return
    cleaned.add(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        found = [Path(each.path) for each in entries if _NAME.fullmatch(each.name)]
        for each in found:
            with suppress(OSError):
                _remove_if_left(each)


def _remove_if_left(entry: Path) -> None:
    """Remove an entry unless a process holds its lock. Raises OSError."""
    lock = os.open(entry, _FOUND)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(entry)
    finally:
        os.close(lock)


def _created(folder: Path, end: str, create: Callable[[Path], int]) -> tuple[Path, int]:
    """A new entry and the descriptor that holds its lock.

    Args:
        create: makes it and opens it.
    """
    while True:
        beside = folder / f".abele-{uuid4().hex}{end}"
        lock = create(beside)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Another process is removing it: it found the entry before it was locked.
            os.close(lock)
            continue
        except OSError:
            # This file system has no locks, so nobody can find out that the entry is left over.
            return beside, lock
        with suppress(OSError):
            if os.path.samestat(os.fstat(lock), os.stat(beside)):
                return beside, lock
        os.close(lock)


def _remove(entry: Path) -> None:
    """Remove an entry; put the previous outputs that it holds back where nothing is now."""
    if entry.is_dir() and not entry.is_symlink():
        if entry.name.endswith(KEEPS):
            with suppress(OSError):
                for each in sorted(entry.iterdir()):
                    place = entry.parent / each.name
                    if not os.path.lexists(place):
                        os.rename(each, place)
        rmtree(entry, ignore_errors=True)
    else:
        with suppress(OSError):
            entry.unlink()
