"""Refuse to run a program whose tiles need more memory than this host has free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...backends.target import Target
from ...ir.support.errors import InputError
from ...ir.support.host_memory import free_bytes, free_mapped_bytes

if TYPE_CHECKING:
    from ...backends.memory import MemoryReport

BESIDE_BYTES = 1 << 30
"""Memory that a run needs besides its tiles: packed operands, the arena, messages in flight,
compiled kernels, results. Measured for VGG-19 on mk2: 0.78 GB touched, 0.97 GB mapped."""


def refuse_too_little_memory(memory: MemoryReport, is_compiled: bool = False) -> None:
    """Raise InputError if this host has too little memory for the tiles of a program.

    A run maps the whole memory of every tile. It touches at most the bytes up to the highest
    variable, and fewer if it need not write all replicas of the weights. Free memory limits the
    touched bytes; `ulimit -v` limits the mapped bytes.

    Args:
        is_compiled: the program came from a file, so its number of tiles is fixed.
    """
    refuse_too_little_for(memory.target, memory.max_tile_bytes, is_compiled)


def refuse_too_little_for(target: Target, tile_bytes: int, is_compiled: bool = False) -> None:
    """Do as refuse_too_little_memory does, for a number of bytes of the fullest tile."""
    touched = tile_bytes * target.tiles + BESIDE_BYTES
    _refuse(target, touched, free_bytes(), is_compiled)
    refuse_too_little_to_map(target, is_compiled)


def refuse_too_little_to_map(target: Target, is_compiled: bool = False) -> None:
    """Raise InputError if this process may not map all tiles, whatever the program.

    Callers check this before they compile, because compiling takes minutes for many tiles.

    Args:
        is_compiled: as for refuse_too_little_memory.
    """
    mapped = target.bytes_per_tile * target.tiles + BESIDE_BYTES
    _refuse(target, mapped, free_mapped_bytes(), is_compiled)


def _refuse(target: Target, needed: int, free: int | None, is_compiled: bool) -> None:
    if free is None or free >= needed:
        return
    fewer = f"fewer tiles (--target {target.base}:N)"
    if is_compiled:
        fewer = f"the model compiled for {fewer}"
    raise InputError(
        f"{target.spelling()}: a run needs {needed >> 20:,} MiB of this host's memory for "
        f"{target.tiles:,} tiles; {free >> 20:,} MiB are free: need {fewer}, other programs ended, "
        "or another host"
    )
