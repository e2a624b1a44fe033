"""Runs work in slices, on one thread per core.

The slices are the same on every machine, and so are the sums over them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

SLICES = 2

FEW = 20_000
"""For fewer vertices or edges, starting a thread takes longer than the work."""


def in_slices(
    work: Callable[[int, int, int], object], count: int, slices: int = SLICES, few: int = 0
) -> None:
    """Call work(slice, first, last) for slices of range(count), in threads.

    Work that releases the interpreter's lock runs in parallel. Raises what work raises.

    Args:
        few: smaller counts run in this thread.
    """
    bounds = [count * k // slices for k in range(slices + 1)]
    if count < few:
        for k in range(slices):
            work(k, bounds[k], bounds[k + 1])
        return
    with ThreadPoolExecutor(min(slices, os.cpu_count() or 1)) as pool:
        for each in [pool.submit(work, k, bounds[k], bounds[k + 1]) for k in range(slices)]:
            each.result()
