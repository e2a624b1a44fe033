"""Calls of compiled kernels, whose work several threads may share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..codelets.calls import Call, address
from ..codelets.stamps import Stamp, Table
from .kernels.tables import CALL_CODE, CALL_TABLE
from .threads import THREADS

SMALL_NANOSECONDS = 12_000.0
"""Calls that take less are not shared. Sharing takes one or two microseconds, and cache lines that
two threads write travel back and forth.
"""

MOST_UNITS = 64
"""The most units that a call is cut into."""

LEAST_NANOSECONDS = 3_000.0
"""The least nanoseconds of a unit, if the call is long enough."""


class KernelCall:
    """A call of a kernel on units of work, which may be done in any order and at the same time.

    No two parts write the same byte, and no part reads a byte that another part writes.

    Attributes:
        code: the address of the kernel's code, which takes the address of a table, the first of
            some parts of the work, their end, and the address of room.
        cuts: the first part of each unit, and the end of the last one.
        kept: objects that must live as long as the call, such as the arrays that its table holds
            the addresses of.
        room: bytes that each thread needs.
        pointers: views of exactly those elements of the tables that are addresses, of memory or of
            code, or 0. Code that writes an address into a table must add it here, because a kept
            run replaces it (write_bound_program.py).
    """

    __slots__ = ("_arguments", "_kept", "_pointers")

    def __init__(
        self,
        code: int,
        table: Table,
        cuts: Table,
        kept: object,
        room: int = 0,
        pointers: Sequence[Table] = (),
    ) -> None:
        at = table_address(table)
        # In the order of tables.CALL_CODE and the others.
        whole = np.array([code, at, cuts[0], cuts[-1]], np.int64)
        self._kept = table, cuts, whole, kept
        self._pointers = (*pointers, whole[CALL_CODE : CALL_TABLE + 1])
        self._arguments = code, at, address(cuts), len(cuts) - 1, address(whole), room

    @classmethod
    def kept(cls, arguments: tuple[int, int, int, int, int, int], kept: object) -> KernelCall:
        """A call from the arguments of an earlier one, whose addresses are valid in this
        process."""
        call = cls.__new__(cls)
        call._arguments, call._kept, call._pointers = arguments, kept, ()
        return call

    @property
    def arguments(self) -> tuple[int, int, int, int, int, int]:
        """The arguments of Threads.run: code, table, cuts, units, whole and room."""
        return self._arguments

    @property
    def memory(self) -> object:
        """The memory that the call's addresses point into: arrays, in tuples, lists and objects."""
        return self._kept

    @property
    def pointers(self) -> Sequence[Table]:
        """Views of all elements of the call's tables that are addresses."""
        return self._pointers

    def __call__(self) -> None:
        """Run the kernel."""
        THREADS.run(*self._arguments)


class WhileEqual:
    """One of two calls: `once` while the replicas of some variables are known to be equal, else
    `each`.
    """

    __slots__ = ("each", "once", "stamps")

    def __init__(self, stamps: Sequence[Stamp], once: Call, each: Call) -> None:
        self.stamps, self.once, self.each = stamps, once, each

    def __call__(self) -> None:
        """Make the call."""
        function, arguments = self.once
        for stamp in self.stamps:
            if stamp.whole is None:
                function, arguments = self.each
                break
        function(*arguments)


def unit_cuts(nanoseconds: NDArray[np.float64], ends: Table | None = None) -> Table:
    """Where to cut the parts of a call into units that take about equally long.

    Args:
        nanoseconds: the time of each part. A single unit if all parts together take little time.
        ends: the numbers of parts after which a cut is allowed; None allows any.
    """
    total = np.r_[0.0, np.cumsum(nanoseconds)]
    if ends is None:
        ends = np.arange(1, len(total))
    whole = np.array([0, len(nanoseconds)], np.int64)
    if total[-1] < SMALL_NANOSECONDS or not len(ends):
        return whole
    each = max(total[-1] / MOST_UNITS, LEAST_NANOSECONDS)
    unit = (total[ends] / each).astype(np.int64)
    return np.unique(np.r_[whole, ends[np.r_[unit[1:] > unit[:-1], True]]]).astype(np.int64)


def even_cuts(parts: int, nanoseconds: float, step: int = 1) -> Table:
    """Like unit_cuts, for parts that take equally long, with a total time. Cuts are multiples of
    `step`.
    """
    units = max(1, int(min(MOST_UNITS, nanoseconds // LEAST_NANOSECONDS)))
    if nanoseconds < SMALL_NANOSECONDS:
        units = 1
    steps = -(-parts // step)
    cuts = np.arange(units + 1, dtype=np.int64) * steps // units * step
    cuts[-1] = parts
    return np.unique(cuts) if parts else cuts[:2]


def elements(table: Table, *which: int) -> list[Table]:
    """A view of each of some elements of a table, for instance of addresses."""
    return [table[i : i + 1] for i in which]


def table_address(table: Table) -> int:
    """The address of a table, for a kernel that reads the table there."""
    assert table.dtype == np.int64
    assert table.flags.c_contiguous
    return address(table)
