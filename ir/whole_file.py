"""Files that are complete or absent: each is written under another name and then renamed."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import BinaryIO, cast
from uuid import uuid4

from .errors import InputError


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO]:
    """A stream whose contents become the file when the block succeeds. They are lost if it fails.

    If the path is a link, its target is replaced, not the link. A device or a pipe is written to
    directly, because renaming a file onto it would remove it from the system.
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
    beside = path.with_name(f".{uuid4().hex}.{path.name}")
    try:
        with open(beside, "xb") as stream:
            yield stream
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


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
        _check_parents(path, Path(os.path.realpath(path)).parent)


def check_folder(path: Path) -> None:
    """Raise InputError unless files can be written into a folder, which need not exist yet."""
    _check_parents(path, Path(os.path.realpath(path)))


def _check_parents(path: Path, folder: Path) -> None:
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
