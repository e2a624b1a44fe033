"""Another order for the units of calls, which shows whether one needs what another one writes."""

import ctypes
from collections.abc import Callable
from random import Random

import numpy as np

from abele.backends.host.threads import Threads


def in_another_order(seed: int) -> Callable[..., None]:
    """As Threads.run, but does all units in a random order in one thread."""

    def run(
        self: Threads,
        code: int,
        table: int,
        cuts: int,
        units: int,
        whole: int,
        room: int,
    ) -> None:
        del whole
        order, edge = list(range(units)), np.dtype(np.int64).itemsize
        Random(seed).shuffle(order)
        for unit in order[:: 1 if seed else -1]:
            call = np.array([code, table, *edges(cuts, unit)], np.int64)
            own_run(self, code, table, cuts + unit * edge, 1, call.ctypes.data, room)

    def edges(cuts: int, unit: int) -> tuple[int, int]:
        both = (ctypes.c_int64 * 2).from_address(cuts + unit * 8)
        return both[0], both[1]

    own_run = Threads.run
    return run
