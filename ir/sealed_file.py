"""Files of caches: read only if they are files, whole, and of what they are read for.

A cache finds its files by their names. Whoever copies folders, or restores them from a backup, may
put one file in the place of another, or something that is no file and that a reader would wait for.
So each file is sealed: it begins with a line that says its kind, and a digest of its contents and
of the key that they belong to. Contents of another key have another digest.
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
"""A sealed file that is larger is not read."""

_DIGEST_BYTES = 32


class Broken(ValueError):
    """A file whose contents are damaged, or belong to another key."""


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A file, open for reading. Raises OSError for anything else that is there.

    A reader of a pipe would wait for a writer, and one of a device might never come to its end.
    """
    # Without O_NONBLOCK, opening a pipe waits too.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def sealed(kind: str, key: str, contents: bytes) -> bytes:
    """The bytes of a file that holds contents for a key. kind: what the contents are, with the
    version of their format."""
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
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > MOST_BYTES:
            raise Broken(f"{size} bytes; need at most {MOST_BYTES}")
        return unsealed(kind, key, stream.read(size))


def write_sealed(path: Path, kind: str, key: str, contents: bytes) -> None:
    """Write a file that read_sealed reads. It is whole or absent. Raises OSError."""
    make_way(path)
    with whole_file(path) as stream:
        stream.write(sealed(kind, key, contents))


def make_way(path: Path) -> None:
    """Remove what is in the place of a file of a cache, if it is no file: writing to it would
    wait."""
    with suppress(OSError):
        if not S_ISREG(os.lstat(path).st_mode):
            path.unlink()


def _line(kind: str) -> bytes:
    return f"abele {kind}\n".encode()


def _digest(kind: str, key: str, contents: memoryview) -> bytes:
    own = sha256(f"{kind}\n{key}".encode()).digest()
    return blake2b(contents, digest_size=_DIGEST_BYTES, key=own).digest()
