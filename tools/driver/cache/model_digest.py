"""The digest of a model's file, which a command begins to compute before it is imported.

Importing what a warm start needs takes as long as the digest of 100 MB, and neither waits for the
other: a digest needs Python's lock only between two pieces of the file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import TypeAlias

from ...importers.front_ends import FRONT_ENDS, front_end_at, suffixes

PIECE = 1 << 23
"""Bytes of a model that are read at once: few pieces, because each waits for Python's lock."""

DIGITS = 32
"""Hexadecimal digits of a digest in a part: 128 bits."""

LIMIT = "ABELE_CACHE_BYTES"
"""The environment variable that sets how many bytes the programs may have; 0 for no cache."""

KINDS = suffixes(FRONT_ENDS)
"""How the names of models end that a command can name before extensions are loaded."""

COMMANDS = ("compile", "graph", "memory", "run", "scan", "train")
"""The commands that look for a program in the cache."""

UNCACHED = ("--no-cache", "--dump-ir", "--list-ops", "--help")
"""Options of commands that do not."""

FoundDigest: TypeAlias = "tuple[str, bool]"
"""A digest, and whether the file may name others, such as those of weights."""

_begun: dict[tuple[object, ...], Future[FoundDigest]] = {}


def begin_for(words: Sequence[str]) -> None:
    """Begin to compute the digest of the model that a command line names, if it will be needed."""
    if len(words) < 3 or words[1] not in COMMANDS:
        return
    if (
        any(word.startswith(UNCACHED) for word in words)
        or os.environ.get("ABELE_CACHE_BYTES") == "0"
    ):
        return
    for word in words[2:]:
        if word.endswith(KINDS) and os.path.isfile(word):
            begin(Path(word))
            return


def begin(path: Path) -> None:
    """Begin to compute the digest of a file in another thread."""
    done: Future[FoundDigest] = Future()

    def work() -> None:
        try:
            done.set_result(_digest(path))
        except BaseException as error:
            done.set_exception(error)

    try:
        kept = file_state(path)
        Thread(target=work, name="model", daemon=True).start()
    except (OSError, RuntimeError):
        # Whoever needs the digest says what is wrong with the file.
        return
    _begun[kept] = done


def model_digest(path: Path) -> FoundDigest:
    """The digest of a file, and whether it may name others. Raises OSError.

    A digest that has been begun counts once, and only if the file has not changed since.
    """
    done = _begun.pop(file_state(path), None)
    return _digest(path) if done is None else done.result()


def file_state(path: Path) -> tuple[object, ...]:
    """What differs if a file is another one, or has been written to."""
    found = os.stat(path)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _digest(path: Path) -> FoundDigest:
    front_end = front_end_at(str(path))
    marker = b"" if front_end is None else front_end.marker
    may_name = front_end is not None and front_end.files is not None
    found, names_files = sha256(), may_name and not marker
    piece, kept = bytearray(min(PIECE, max(1, os.stat(path).st_size))), b""
    with open(path, "rb", buffering=0) as stream:
        while size := stream.readinto(piece):
            some = memoryview(piece)[:size]
            found.update(some)
            if may_name and not names_files:
                # The word may begin in one piece and end in the next.
                names_files = piece.find(marker, 0, size) >= 0
                names_files = names_files or marker in kept + bytes(some[: len(marker)])
                kept = bytes(some[-len(marker) :])
    return found.hexdigest()[:DIGITS], names_files
