"""Work in slices: as many as there are, on as many threads as the machine has cores.

The slices are the same on every machine, and so are the sums that they add up to.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

SLICES = 2


def in_slices(work: Callable[[int, int, int], object], count: int, slices: int = SLICES) -> None:
    """Call work(slice, first, last) for slices of range(count), at the same time.

    What releases the interpreter's lock runs at the same time. Raises what work raises.
    """
    bounds = [count * k // slices for k in range(slices + 1)]
    with ThreadPoolExecutor(min(slices, os.cpu_count() or 1)) as pool:
        for each in [pool.submit(work, k, bounds[k], bounds[k + 1]) for k in range(slices)]:
            each.result()
