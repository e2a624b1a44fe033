"""A lock on a path, which the system drops when its holder ends, however it ends.

So no lock is stale, and its age does not matter. A file that is left at the path locks nothing.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

PATIENCE = 600.0
"""Seconds to wait for another process. After that, it may hang, and this one does the work too."""

PAUSE = 0.02
"""Seconds between two attempts to get a lock that another process holds."""


@contextmanager
def locked(
    path: Path, waiting: Callable[[], None], patience: float = PATIENCE
) -> Generator[OSError | None]:
    """Hold the lock of a path in the block; no lock if another process holds it for too long.

    Yields the error if the lock's file cannot be created, else None. On a file system without
    locks, no process waits.

    Args:
        waiting: called once if another process holds the lock.
        patience: the most seconds to wait.
    """
    lock, problem = None, None
    try:
        lock = _acquired(path, waiting, patience)
    except OSError as error:
        problem = error
    try:
        yield problem
    finally:
        if lock is not None:
            # A process that waits for this file finds that it is gone, and creates another one.
            with suppress(OSError):
                path.unlink()
            os.close(lock)


def _acquired(path: Path, waiting: Callable[[], object], patience: float) -> int | None:
    end, told = monotonic() + patience, False
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(lock, path):
                return lock
        except BlockingIOError:
            if not told:
                waiting()
                told = True
            if monotonic() > end:
                os.close(lock)
                return None
            sleep(PAUSE)
        except OSError:
            return lock
        os.close(lock)


def _is_at(lock: int, path: Path) -> bool:
    """Whether a descriptor's file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
