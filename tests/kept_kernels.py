"""Kernels that are compiled once for a whole run."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


CODE = Path("kernels") / "code"


def copy_kernels(cache: Path) -> None:
    """Give a cache the kernels of the cache that is in use, as far as they are compiled."""
    _copy(Path(os.environ["ABELE_CACHE"]), cache)


@contextmanager
def kernels_of_earlier_runs(cache: Path) -> Iterator[None]:
    """Begin with the kernels in the folder that ABELE_TEST_KERNELS names, and add new ones to it.

    Compiling takes most of a run of few tests. A kernel's file is named by a digest of its source,
    so that one of an older source is not used. Without the variable, nothing is kept.
    """
    kept = os.environ.get("ABELE_TEST_KERNELS")
    if kept is None:
        yield
        return
    _copy(Path(kept), cache)
    yield
    _copy(cache, Path(kept))


def _copy(source: Path, target: Path) -> None:
    (target / CODE).mkdir(parents=True, mode=0o700, exist_ok=True)
    for path in (source / CODE).glob("*-*.*"):
        if path.suffix not in (".code", ".proof") or (target / CODE / path.name).exists():
            continue
        # Another run may be writing or reading there: the new file appears whole.
        part = target / CODE / f"{path.name}.{os.getpid()}.part"
        with suppress(FileNotFoundError):
            shutil.copy2(path, part)
            part.replace(target / CODE / path.name)
