"""The folder of a sweep: rows as they come, one sweep at a time.

Each row is a line of a log with a checksum, so nothing but the line that is being written can be
lost, whenever the process ends. A damaged line counts as missing, and its point is computed again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, cast

from ...ir.support.errors import InputError
from ...ir.support.whole_file import check_folder
from ..executors.task import Json

LOG, LOCK = "rows.log", ".lock"

ROWS, SECONDS, SUMMARY, PAGE, PICTURE = (
    "rows.parquet",
    "seconds.parquet",
    "sweep.md",
    "pareto.html",
    "pareto.png",
)
"""The files that a sweep writes at its end."""

OWN = (LOG, LOCK, ROWS, SECONDS, SUMMARY, PAGE, PICTURE)

CHECK_DIGITS = 16
"""Hexadecimal digits of the checksum of a line."""

HEAD = b"abele sweep 1\n"
"""The first line of a log."""


@dataclass(frozen=True)
class Record:
    """What is known of a point.

    Attributes:
        digest: of what decides the row.
        row: its figures by column.
        final: whether computing it again would give the same; a lost worker's row is not.
        seconds: what differs from run to run: seconds by what they were spent on, and the worker.
    """

    digest: str
    row: dict[str, Json]
    final: bool
    seconds: dict[str, Json] = field(default_factory=dict[str, Json])

    def line(self) -> bytes:
        """A line of the log."""
        text = json.dumps(
            {"digest": self.digest, "row": self.row, "final": self.final, "seconds": self.seconds}
        ).encode()
        return b"%s %s\n" % (_check(text), text)


def _check(text: bytes) -> bytes:
    return sha256(text).hexdigest()[:CHECK_DIGITS].encode()


def _record(line: bytes) -> Record | None:
    """The record of a line; None if the line is damaged."""
    check, _, text = line.partition(b" ")
    if check != _check(text):
        return None
    return Record(**cast("dict[str, Any]", json.loads(text)))


class Folder:
    """A locked folder with the records of points.

    Attributes:
        records: by digest.
        damaged: how many lines of the log are damaged.
    """

    def __init__(self, path: Path, log: BinaryIO) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        self.damaged = 0
        self._log = log
        self._end = len(HEAD)
        self._read()

    def _read(self) -> None:
        self._log.seek(0)
        head = self._log.readline()
        if head and not head.startswith(HEAD):
            if HEAD.startswith(head):
                # The process ended while it began the log.
                head = b""
            else:
                raise InputError(
                    f"{self.path / LOG}: not the log of a sweep that this abele reads; choose "
                    "another folder, or remove it"
                )
        if not head:
            self._log.truncate(0)
            self._write(HEAD, 0)
            return
        for line in self._log:
            if not line.endswith(b"\n"):
                # It was being written when its process ended.
                break
            self._end += len(line)
            record = _record(line[:-1])
            if record is None:
                self.damaged += 1
            else:
                self.records[record.digest] = record

    def add(self, record: Record) -> None:
        """Keep a record. Raises InputError if the system refuses; the log stays whole."""
        self._end = self._write(record.line(), self._end)
        self.records[record.digest] = record

    def _write(self, data: bytes, at: int) -> int:
        try:
            self._log.seek(at)
            self._log.truncate()
            self._log.write(data)
            self._log.flush()
            os.fsync(self._log.fileno())
        except OSError as error:
            raise InputError(
                f"{self.path / LOG}: cannot be written: {error.strerror or error}; what was "
                "computed before is kept: make room, and run the sweep again"
            ) from None
        return at + len(data)


@contextmanager
def locked_folder(path: Path) -> Generator[Folder]:
    """The folder of a sweep, which nobody else writes to in the block.

    Raises InputError if another sweep uses it, if it holds something else, or if it cannot be
    written.
    """
    check_folder(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        found = sorted(each.name for each in path.iterdir())
        strange = [name for name in found if name not in OWN and not name.startswith(".abele-")]
        if strange and LOG not in found:
            raise InputError(f"{path}: it holds {strange[0]}, and no sweep; choose another folder")
        lock = open(path / LOCK, "ab")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{path}: another sweep writes into it; wait for it, or choose another folder"
            ) from None
        except OSError:
            # A file system without locks: nobody can find out.
            pass
        try:
            descriptor = os.open(
                path / LOG, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666
            )
        except OSError as error:
            problem = error.strerror or error
            raise InputError(f"{path / LOG}: cannot be written: {problem}") from None
        # Without a buffer: closing must not write what the disk had no room for.
        with open(descriptor, "r+b", buffering=0) as log:
            yield Folder(path, cast(BinaryIO, log))
