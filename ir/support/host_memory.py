"""How much memory this host has left."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")

LIMITS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
"""Files of a control group: its limit and its usage, for version 2 and for version 1."""


def available_bytes() -> int | None:
    """Bytes that this process can still allocate; None if the system does not report them.

    This is the smaller of free_bytes and free_mapped_bytes.
    """
    found = [each for each in (free_bytes(), free_mapped_bytes()) if each is not None]
    return min(found, default=None)


def free_bytes() -> int | None:
    """Bytes of memory that are free both on this host and in its container; None if unknown."""
    return min(_free(), default=None)


def free_mapped_bytes() -> int | None:
    """Bytes of address space that this process may still map; None without a `ulimit -v`."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    mapped = _field(PROC / "self" / "status", "VmSize")
    return limit if mapped is None else max(limit - mapped, 0)


def _free() -> Iterator[int]:
    free = _field(PROC / "meminfo", "MemAvailable")
    if free is None:
        free = _free_pages()
    if free is not None:
        yield free
    for most, used in LIMITS:
        limit, taken = _number(CGROUPS / most), _number(CGROUPS / used)
        if limit is not None and taken is not None:
            yield max(limit - taken, 0)


def _free_pages() -> int | None:
    """Free memory on a system without /proc. Does not count caches that could be dropped."""
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:
        return None
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _field(path: Path, name: str) -> int | None:
    """The value, in bytes, of a field in kibibytes; None if the file or the field is missing."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = (line.split() for line in lines if line.startswith(f"{name}:"))
    return next((int(words[1]) * 1024 for words in found), None)


def _number(path: Path) -> int | None:
    """The number in a file; None if the file is missing or says "max"."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
