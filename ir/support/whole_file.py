"""Files that are complete or absent: each is written under another name and then renamed.

A process that is killed, or a disk that is full, leaves the previous file. What was written so far
is removed, at the latest by the next process that writes to the same folder.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from stat import S_IMODE
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from .errors import InputError
from .temporary_entries import file_beside


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO]:
    """A stream whose contents become the file when the block succeeds. They are lost if it fails.

    If the path is a link, its target is replaced, not the link. A new file takes the permissions of
    the file that it replaces. A device or a pipe is written to directly, because renaming a file
    onto it would remove it from the system.
    """
    if path.exists() and not path.is_file():
        with TemporaryFile() as whole:
            yield cast(BinaryIO, whole)
            whole.seek(0)
            with open(path, "wb") as stream:
                copyfileobj(whole, stream)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_beside(path) as (beside, descriptor):
        with open(descriptor, "wb") as stream:
            yield stream
            if path.exists():
                os.fchmod(descriptor, S_IMODE(path.stat().st_mode))
        os.replace(beside, path)


def check_file(path: Path) -> None:
    """Raise InputError unless a file can be written at this path. Creates nothing.

    Call it before long work. Writing the file later may still raise OSError.
    """
    if path.is_dir():
        raise InputError(f"{path}: cannot be written: it is a folder; need the path of a file")
    if path.exists() and not path.is_file():
        if not os.access(path, os.W_OK):
            raise InputError(f"{path}: cannot be written: no permission; choose another path")
    else:
        check_parents(path, Path(os.path.realpath(path)).parent)


def check_folder(path: Path) -> None:
    """Raise InputError unless files can be written into a folder, which need not exist yet."""
    check_parents(path, Path(os.path.realpath(path)))


def check_parents(path: Path, folder: Path) -> None:
    """Raise InputError unless files can be written into a folder, once its parents exist.

    Args:
        path: what the message names.
    """
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise InputError(
            f"{path}: cannot be written: {folder} is not a folder; choose another path, or move it"
        )
    # Try to write instead of reading permissions, which do not cover read-only systems and /proc.
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {folder}: {error.strerror}; choose another path"
        ) from None
