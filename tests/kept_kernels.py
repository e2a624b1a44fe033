"""Kernels that are compiled once for a whole run."""

import fcntl
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


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

MOST = 8
"""The most files that are kept of one task in one form. They may be of other checkouts."""


def copy_kernels(cache: Path) -> None:
    """Give a cache the kernels of the cache that is in use, as far as they are compiled."""
    _copy(Path(os.environ["ABELE_CACHE"]), cache)


def kept_folder(config: pytest.Config) -> Path | None:
    """Where kernels are kept between runs; None if pytest keeps nothing."""
    given = os.environ.get("ABELE_TEST_KERNELS")
    if given is not None:
        return Path(given)
    return config.cache.mkdir("abele") if hasattr(config, "cache") else None


@contextmanager
def kernels_of_earlier_runs(cache: Path, kept: Path | None) -> Iterator[None]:
    """Begin with the kernels of a folder, and add new ones to it.

    Compiling and proving them takes 50 s of CPU, most of a run of few tests. The name of a kernel's
    file has a digest of its sources, of versions and of the processor, and that of a proof one of
    the battery too. So what has changed has no file, and is compiled and proved again.
    """
    if kept is None:
        yield
        return
    _copy(kept, cache)
    yield
    _copy(cache, kept)
    _remove_old(kept)


def _proved(cache: Path) -> list[Path]:
    """Files of kernels that have passed their battery, and of what it has found."""
    return [
        each for ending in (".code", ".proof") for each in (cache / CODE).glob(f"*-*-*{ending}")
    ]


def _copy(source: Path, target: Path) -> None:
    (target / CODE).mkdir(parents=True, mode=0o700, exist_ok=True)
    for path in _proved(source):
        if (target / CODE / path.name).exists():
            continue
        # Another run may be writing or reading there: the new file appears whole.
        part = target / CODE / f"{path.name}.{os.getpid()}.part"
        with suppress(FileNotFoundError):
            shutil.copy2(path, part)
            part.replace(target / CODE / path.name)


def _remove_old(kept: Path) -> None:
    groups: defaultdict[tuple[str, ...], list[tuple[float, Path]]] = defaultdict(list)
    for path in _proved(kept):
        # Another run may remove it.
        with suppress(FileNotFoundError):
            task, form, _ = path.name.split("-", 2)
            groups[task, form, path.suffix].append((path.stat().st_mtime, path))
    for files in groups.values():
        for _, path in sorted(files)[:-MOST]:
            path.unlink(missing_ok=True)
