"""Work in slices: as many as there are, on as many threads as the machine has cores.

The slices are the same on every machine, and so are the sums that they add up to.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

SLICES = 2

FEW = 20_000
"""Vertices or edges that are not worth the start of a thread."""


def in_slices(
    work: Callable[[int, int, int], object], count: int, slices: int = SLICES, few: int = 0
) -> None:
    """Call work(slice, first, last) for slices of range(count), at the same time.

    What releases the interpreter's lock runs at the same time. few: counts below are not worth
    the start of a thread. Raises what work raises.
    """
    bounds = [count * k // slices for k in range(slices + 1)]
    if count < few:
        for k in range(slices):
            work(k, bounds[k], bounds[k + 1])
        return
    with ThreadPoolExecutor(min(slices, os.cpu_count() or 1)) as pool:
        for each in [pool.submit(work, k, bounds[k], bounds[k + 1]) for k in range(slices)]:
            each.result()
