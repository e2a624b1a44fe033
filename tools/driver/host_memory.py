"""What a run takes of this host's memory, and whether that is there."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

from ...backends.memory import MemoryReport
from ...backends.target import Target
from ...ir.errors import InputError

BESIDE_BYTES = 1 << 30
"""What a run takes beside its tiles: operands that stay packed, an arena, messages on their way,
kernels that are compiled, results. Measured: 0.78 GB touched, 0.97 GB mapped, for VGG-19 on mk2."""

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")

LIMITS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
"""Files of a control group, old and new: what its processes may take, and what they do."""


def refuse_too_little_memory(memory: MemoryReport, is_compiled: bool = False) -> None:
    """Raise InputError where this host has too little memory for the tiles of a program.

    Of a tile's memory at most what variables reach is touched, and less where replicas of weights
    need not be written, but all of it is mapped: where the mapped bytes of a process are limited,
    that is what counts. is_compiled: the program came from a file, whose tiles are settled.
    """
    touched = memory.max_tile_bytes * memory.target.tiles + BESIDE_BYTES
    _refuse(memory.target, touched, _free_bytes(), is_compiled)
    refuse_too_little_to_map(memory.target, is_compiled)


def refuse_too_little_to_map(target: Target, is_compiled: bool = False) -> None:
    """Raise InputError where this process may not map all tiles, whatever the program is.

    That is known before a program is compiled, which takes minutes for many tiles. is_compiled: as
    for refuse_too_little_memory.
    """
    mapped = target.bytes_per_tile * target.tiles + BESIDE_BYTES
    _refuse(target, mapped, _free_mapped_bytes(), is_compiled)


def _refuse(target: Target, needed: int, free: int | None, is_compiled: bool) -> None:
    if free is None or free >= needed:
        return
    fewer = f"fewer tiles (--target {target.base}:N)"
    if is_compiled:
        fewer = f"its model compiled for {fewer}"
    raise InputError(
        f"{target.spelling()}: a run needs {needed >> 20:,} MiB of this host's memory for "
        f"{target.tiles:,} tiles; {free >> 20:,} MiB are free: need {fewer}, other programs ended, "
        "or another host"
    )


def _free_bytes() -> int | None:
    """Bytes that may still be touched; None where nothing says so."""
    return min(_limits(), default=None)


def _limits() -> Iterator[int]:
    free = _field(PROC / "meminfo", "MemAvailable")
    if free is not None:
        yield free
    for most, used in LIMITS:
        limit, taken = _number(CGROUPS / most), _number(CGROUPS / used)
        if limit is not None and taken is not None:
            yield max(limit - taken, 0)


def _free_mapped_bytes() -> int | None:
    """Bytes that may still be mapped; None without a limit (`ulimit -v`)."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    mapped = _field(PROC / "self" / "status", "VmSize")
    if limit == resource.RLIM_INFINITY or mapped is None:
        return None
    return max(limit - mapped, 0)


def _field(path: Path, name: str) -> int | None:
    """Bytes that a line of kibibytes tells."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = (line.split() for line in lines if line.startswith(f"{name}:"))
    return next((int(words[1]) * 1024 for words in found), None)


def _number(path: Path) -> int | None:
    """What a file of one number says; None for "max" and where there is no such file."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
