"""Sealed files for caches: a reader accepts only regular, undamaged files written for its key.

A cache finds its files by their names. Somebody who copies folders, or restores them from a backup,
may put one file in the place of another, or a pipe or device on which a reader would block. So each
file is sealed: it begins with a line that holds its kind, and a digest of its contents and key.
Contents of another key have another digest.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from .whole_file import whole_file

MOST_BYTES = 1 << 30
"""A file of a cache that is larger is not read at once."""

_DIGEST_BYTES = 32


class Broken(ValueError):
    """A file whose contents are damaged, or belong to another key."""


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, opened for reading. Raises OSError for anything else at the path.

    Reading a pipe would wait for a writer, and reading a device might never end.
    """
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def sealed(kind: str, key: str, contents: bytes) -> bytes:
    """The bytes of a file that holds contents for a key.

    Args:
        kind: names the kind of contents and the version of their format.
    """
    return _line(kind) + _digest(kind, key, memoryview(contents)) + contents


def unsealed(kind: str, key: str, data: bytes) -> memoryview:
    """The contents in the bytes of a file. Raises Broken unless they were sealed for this key."""
    line = _line(kind)
    begin = len(line) + _DIGEST_BYTES
    contents = memoryview(data)[begin:]
    if data[: len(line)] != line or data[len(line) : begin] != _digest(kind, key, contents):
        raise Broken(f"damaged, or no {kind} of this key")
    return contents


def read_sealed(path: Path, kind: str, key: str) -> memoryview:
    """The contents of a file. Raises OSError if it cannot be read, and Broken as unsealed does."""
    return unsealed(kind, key, read_regular(path))


def read_regular(path: Path) -> bytes:
    """The bytes of a file. Raises OSError as open_regular does, and Broken if it is too large."""
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > MOST_BYTES:
            raise Broken(f"{size} bytes; need at most {MOST_BYTES}")
        return stream.read(size)


def write_sealed(path: Path, kind: str, key: str, contents: bytes) -> None:
    """Write a file for read_sealed. The file is complete or absent. Raises OSError."""
    make_way(path)
    with whole_file(path) as stream:
        stream.write(sealed(kind, key, contents))


def make_way(path: Path) -> None:
    """Remove anything but a regular file from the path of a cache file, because writing to it could
    block.
    """
    with suppress(OSError):
        if not S_ISREG(os.lstat(path).st_mode):
            path.unlink()


def _line(kind: str) -> bytes:
    return f"abele {kind}\n".encode()


def _digest(kind: str, key: str, contents: memoryview) -> bytes:
    own = sha256(f"{kind}\n{key}".encode()).digest()
    return blake2b(contents, digest_size=_DIGEST_BYTES, key=own).digest()
