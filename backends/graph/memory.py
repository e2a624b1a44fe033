"""Whether there is the memory for something, asked before it is begun."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from ...ir.errors import InputError

MEMINFO = Path("/proc/meminfo")


def check_memory(needed: int, what: str) -> None:
    """Raise InputError unless this host has so many bytes to spare. what: for the message."""
    free = available_bytes()
    if free is not None and needed > free:
        raise InputError(
            f"{what}: {needed / 1e6:,.0f} MB of memory are needed, and {free / 1e6:,.0f} MB are "
            f"left; take a smaller graph, or a host with more"
        )


def available_bytes() -> int | None:
    """Bytes that this process may still take; None where the system does not say."""
    found = [n for n in (_left_on_host(), _left_of_limit()) if n is not None]
    return min(found) if found else None


def _left_on_host() -> int | None:
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return _free_pages()
    sizes = dict(line.split(":", 1) for line in lines if ":" in line)
    kilobytes = sizes.get("MemAvailable", "").split()
    return int(kilobytes[0]) * 1024 if kilobytes else _free_pages()


def _free_pages() -> int | None:
    """Free memory where there is no /proc: what could be freed is not counted."""
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:
        return None
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _left_of_limit() -> int | None:
    """What is left of this process's limit on its addresses, if it has one."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return limit
    return max(limit - pages * os.sysconf("SC_PAGE_SIZE"), 0)
