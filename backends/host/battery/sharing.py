"""Cases of shared units of work: each unit is done once, whatever the number of threads."""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from itertools import product

import numpy as np

from ..calls import KernelCall
from ..threads import Threads
from .comparing import Battery, Differs

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 4)
"""The signature of a kernel as numba calls it: the addresses of its result and of its exception,
then a table, the first part, the end, and room.
"""

ROOM = 192
"""Bytes of room of each call."""


class _Noted:
    """A kernel in Python that records the parts that it does, and the room it gets."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, int]] = []
        self.rooms: set[int] = set()
        self.function = CALLBACK(self._note)
        self.code = ctypes.cast(self.function, ctypes.c_void_p).value or 0

    def _note(self, result: int, raised: int, table: int, begin: int, end: int, room: int) -> int:
        del result, raised, table
        ctypes.memset(room, 1, ROOM)
        self.rooms.add(room)
        self.parts.append((begin, end))
        return 0


@contextmanager
def _threads(count: int) -> Generator[Threads]:
    """Separate threads for the battery, which end with the block."""
    threads = Threads(count)
    try:
        yield threads
    finally:
        threads.end()


def _check(case: str, threads: Threads, units: int) -> None:
    """Share a call of some units that have different numbers of parts."""
    noted = _Noted()
    table = np.zeros(1, np.int64)
    cuts = np.cumsum([3, *(1 + i % 4 for i in range(units))], dtype=np.int64)
    call = KernelCall(noted.code, table, cuts, noted, ROOM)
    threads.run(*call.arguments)
    wanted = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    if units == 1 or threads.count == 1:
        wanted = [(int(cuts[0]), int(cuts[-1]))]
    if sorted(noted.parts) != wanted:
        raise Differs(f"{case}: {len(noted.parts)} units are done, not each of {len(wanted)} once")
    if len(noted.rooms) > threads.count:
        raise Differs(f"{case}: {len(noted.rooms)} rooms of {threads.count} threads")


def numbers_of_threads() -> int:
    """One to seven threads, and numbers of units around the number of threads, many times."""
    count = 0
    for number in (1, 2, 3, 7):
        with _threads(number) as threads:
            for units, _ in product((1, 2, 3, 6, 7, 8, 64), range(3)):
                _check(f"{units} units by {number} threads", threads, units)
                count += 1
    return count


BATTERY: Battery = {"numbers of threads": numbers_of_threads}
