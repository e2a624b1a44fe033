"""Kernels that are compiled once for a whole run."""

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path


def compile_once(lock: Path) -> None:
    """Compile the kernels that most tests need, and load them.

    lock: a file. While one worker compiles, with two processes, the others wait: they would compile
    the same.
    """
    # Settings have to hold before NumPy is imported.
    from abele.backends.host.load import SHARES, has_kernels
    from abele.backends.host.switch import is_wanted

    if not is_wanted():
        return
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for task in (task for share in SHARES[:2] for task in share):
            has_kernels(task)


def copy_kernels(cache: Path) -> None:
    """Give a cache the kernels of the cache that is in use, as far as they are compiled."""
    code = Path("kernels") / "code"
    (cache / code).mkdir(parents=True, mode=0o700)
    for path in (Path(os.environ["ABELE_CACHE"]) / code).glob("*-*.*"):
        # A worker may be writing it.
        with suppress(FileNotFoundError):
            shutil.copy2(path, cache / code)
