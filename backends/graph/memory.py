"""Refuse work that needs more memory than this host has free."""

from __future__ import annotations

from ...ir.support.errors import InputError
from ...ir.support.host_memory import available_bytes


def check_memory(needed: int, what: str) -> None:
    """Raise InputError unless this process can allocate the needed bytes.

    Args:
        what: the work's name.
    """
    free = available_bytes()
    if free is not None and needed > free:
        raise InputError(
            f"{what}: {needed / 1e6:,.0f} MB of memory are needed, and {free / 1e6:,.0f} MB are "
            f"free; need a smaller graph, or a host with more memory"
        )
