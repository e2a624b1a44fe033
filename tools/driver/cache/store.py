"""The folder of compiled programs: one .abele file for each key, as `abele compile` writes it.

Beside each program is a file with the parts of its key, which `abele cache explain` compares, and
the digest of the program. So a program in the place of another is noticed, and compiled again.
Files are written under other names and then renamed, so a reader needs no lock: it finds a whole
file or none. Files are removed in the order in which they were last used.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import time_ns
from typing import Any, cast

from ....ir.support.cache_folder import cache_folder
from ....ir.support.errors import InputError
from ....ir.support.private_folder import intrusion
from ....ir.support.sealed_file import make_way, read_regular
from ....ir.support.temporary_entries import clean
from ....ir.support.whole_file import whole_file
from ..files import PROGRAM_FILE
from .key import Parts, key_of
from .model_digest import LIMIT

MOST_BYTES = 8 << 30
"""How many bytes the programs may have, unless LIMIT says otherwise."""

PROGRAMS = "programs"
"""The folder of the programs, in abele's cache folder."""

PARTS_FILE = ".json"
"""How the name of a file with the parts of a key ends."""

RUN_FILE = ".run"
"""How the name of a file ends that has a program ready to run."""

_KEY = re.compile(r"[0-9a-f]{64}")
_OWN = re.compile(r"[0-9a-f]{64}(\.abele|\.json|\.lock|(-[0-9a-f]+)?\.run)")


def most_bytes() -> int:
    """How many bytes the programs may have. Raises InputError."""
    text = os.environ.get(LIMIT)
    if text is None:
        return MOST_BYTES
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InputError(f"{LIMIT}={text[:40]!r}; need a number of bytes; 0 turns the cache off")
    return int(text)


@dataclass(frozen=True)
class Entry:
    """A kept program.

    Attributes:
        size: with what makes it ready to run.
        used: when it was last used, in nanoseconds of the file system's clock.
    """

    key: str
    path: Path
    size: int
    used: int

    @property
    def parts(self) -> Parts:
        """The parts of its key; none if their file is missing or damaged."""
        return _read_parts(self.path.with_suffix(PARTS_FILE))[0]


@dataclass(frozen=True)
class Store:
    """A folder of compiled programs.

    Attributes:
        most: how many bytes they may have.
    """

    folder: Path
    most: int

    def program(self, key: str) -> Path:
        """The path of a key's program, which may be missing."""
        return self.folder / f"{key}{PROGRAM_FILE}"

    def run(self, key: str, host: str) -> Path:
        """The path of what makes a key's program ready to run on a host, which may be missing."""
        return self.folder / f"{key}-{host}{RUN_FILE}"

    def digest(self, key: str) -> str | None:
        """The digest of the program that was kept for a key; None if nobody knows it."""
        parts, digest = _read_parts(self.folder / f"{key}{PARTS_FILE}")
        if not parts:
            return None
        # Those of another key may be in their place.
        return digest if key_of(parts) == key else ""

    def lock(self, key: str) -> Path:
        """The path that a process locks while it compiles the program of a key."""
        return self.folder / f"{key}.lock"

    def create(self) -> None:
        """Create the folder, which only its owner can use. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def touch(self, path: Path) -> None:
        """Make a program the one that was used last, if its time can be set.

        If the clock goes backwards, the time continues from that of the newest program, so the
        order stays right.
        """
        newest = max((each.used for each in self.entries() if each.path != path), default=0)
        now = max(time_ns(), newest + 1)
        with suppress(OSError):
            os.utime(path, ns=(now, now))

    def write_parts(self, key: str, parts: Parts, digest: str) -> None:
        """Keep the parts of a key beside its program, and the program's digest. Raises OSError."""
        path = self.folder / f"{key}{PARTS_FILE}"
        make_way(path)
        with whole_file(path) as stream:
            stream.write(json.dumps({"parts": dict(parts), "program": digest}, indent=1).encode())

    def shrink(self) -> None:
        """Remove the programs that were used longest ago, until the others keep the limit."""
        size = 0
        for each in sorted(self.entries(), key=lambda e: (-e.used, e.key)):
            size += each.size
            if size > self.most:
                self.remove(each.key)

    def remove(self, key: str) -> None:
        """Remove a program and the parts of its key. A process that reads it is not disturbed."""
        # The program comes first: without it, nobody looks for the others.
        for path in (self.program(key), *self._runs(key), self.folder / f"{key}{PARTS_FILE}"):
            with suppress(OSError):
                path.unlink()

    def keep_newest_runs(self, key: str, most: int) -> None:
        """Remove what makes a program ready to run on all hosts but those that wrote it last."""
        times: dict[Path, float] = {}
        for path in self._runs(key):
            with suppress(OSError):
                times[path] = path.stat().st_mtime
        for path in sorted(times, key=lambda each: -times[each])[most:]:
            with suppress(OSError):
                path.unlink()

    def _runs(self, key: str) -> list[Path]:
        """The paths of what makes a program ready to run, on any host."""
        return list(self.folder.glob(f"{key}*{RUN_FILE}"))

    def entries(self) -> Iterator[Entry]:
        """The programs in the folder, in any order."""
        programs: dict[str, tuple[Path, os.stat_result]] = {}
        runs = Counter[str]()
        with suppress(OSError), os.scandir(self.folder) as found:
            for each in found:
                name, end = os.path.splitext(each.name)
                key = name.partition("-")[0]
                if end in (PROGRAM_FILE, RUN_FILE) and _KEY.fullmatch(key):
                    with suppress(OSError):
                        stat = each.stat(follow_symlinks=False)
                        if end == RUN_FILE:
                            runs[key] += stat.st_size
                        elif name == key:
                            programs[key] = Path(each.path), stat
        for key, (path, stat) in programs.items():
            yield Entry(key, path, stat.st_size + runs[key], stat.st_mtime_ns)

    def clear(self) -> tuple[int, int]:
        """Remove all files that a cache writes, and no others. Returns how many programs and bytes.

        Raises OSError for a folder that cannot be changed.
        """
        entries = list(self.entries())
        clean(self.folder)
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if _OWN.fullmatch(path.name):
                path.unlink(missing_ok=True)
        return len(entries), sum(each.size for each in entries)


def store_here() -> Store:
    """The store in this user's cache folder. Raises InputError for a limit that is no number."""
    return Store(cache_folder() / PROGRAMS, most_bytes())


def usable_store() -> Store | None:
    """The store, if it is turned on and private; else None, with a warning if it is not private.

    Raises InputError.
    """
    store = store_here()
    if not store.most:
        return None
    try:
        store.create()
    except FileExistsError:
        warn(store, f"{store.folder} is not a folder")
        return None
    except OSError as error:
        # A folder that exists but cannot be written to may still hold the program.
        if not store.folder.is_dir():
            warn(store, _reason(error))
            return None
    problem = intrusion(store.folder, "*")
    if problem:
        warn(store, problem)
        return None
    return store


warned: list[str] = []
"""The reasons why this process could not keep programs."""


def warn(store: Store, problem: str | OSError) -> None:
    """Say, once per process, why programs are not cached."""
    text = _reason(problem) if isinstance(problem, OSError) else problem
    if not warned:
        print(
            f"warning: {store.folder}: compiled programs are not kept: {text}; set ABELE_CACHE to "
            f"a folder that only you can write to, or give --no-cache",
            file=sys.stderr,
            flush=True,
        )
    warned.append(text)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO)


def _read_parts(path: Path) -> tuple[Parts, str]:
    """The parts of a key, and the digest of its program; nothing if they cannot be read."""
    try:
        found: object = json.loads(read_regular(path))
        kept = cast("dict[str, Any]", found)
        parts = {str(name): str(text) for name, text in kept["parts"].items()}
        return parts, str(kept["program"])
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return {}, ""
