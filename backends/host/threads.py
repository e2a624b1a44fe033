"""Threads that share the units of work of compiled calls.

Waking a thread takes as long as a small call. So threads are started once, and between two calls of
a run they wait in a loop, without Python's lock. A thread without work for a while parks, and
leaves its core to others until the next run.

No bit of a result depends on the number of threads: a call is cut into the same units for any
number, and no sum spans two units.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock, Thread
from time import perf_counter
from typing import Any

import numpy as np

from ..codelets.calls import Array, address
from .cores import default_threads
from .kernels.tables import JOB_PARKED, JOB_STOPS, JOB_YIELD, LINE, THREAD_LINES, THREAD_ROOM
from .load import kernels

LINE_BYTES = 8 * LINE

WAITING_SECONDS = 3e-4
"""The time that a thread waits for the next call before it parks."""

SAMPLE_ITERATIONS = 20_000
"""Iterations of waiting that are timed."""

STOP_SECONDS = 1.0
"""The most seconds that the end of the process waits for each thread."""


@dataclass(frozen=True)
class TimedCall:
    """The duration of a call, and its number of units."""

    units: int
    seconds: float


class Threads:
    """The threads of this process, and the memory of each for a call's intermediate values.

    Calls of several Python threads take turns.
    """

    def __init__(self, wanted: int | None = None) -> None:
        self._wanted = wanted
        self._lock = Lock()
        self._started = 0
        self._gates: list[Lock] = []
        self._workers: list[Thread] = []
        self._lines = self._parked = np.zeros(JOB_STOPS + 1, np.int64)
        self._job = 0
        self._room_bytes = -1
        self._rooms: list[Array] = []
        self._room = 0
        self._sharing: Any = None
        self._timed: list[TimedCall] | None = None

    @property
    def count(self) -> int:
        """The number of threads of a call, including the caller.

        Raises InputError if the environment variable is not a number.
        """
        if self._wanted is None:
            self._wanted = default_threads()
        return self._wanted

    @count.setter
    def count(self, threads: int) -> None:
        assert threads > 0
        self._wanted = threads

    @property
    def chosen(self) -> int | None:
        """The number of threads of a call, if it is known already; else None."""
        return self._wanted

    def run(self, code: int, table: int, cuts: int, units: int, whole: int, room: int) -> None:
        """Run the units of a call; a small call is a single unit.

        Args:
            code, table, cuts: as for the kernel `share`.
            whole: the address of the call, as for `do_all`.
            room: bytes that each thread needs.
        """
        start = 0.0 if self._timed is None else perf_counter()
        self._run(code, table, cuts, units, whole, room)
        if self._timed is not None:
            self._timed.append(TimedCall(units, perf_counter() - start))

    @contextmanager
    def timed(self) -> Generator[list[TimedCall]]:
        """Within the block, record the duration of all calls."""
        self._timed = found = list[TimedCall]()
        try:
            yield found
        finally:
            self._timed = None

    def _run(self, code: int, table: int, cuts: int, units: int, whole: int, room: int) -> None:
        with self._lock:
            wanted = self.count
            if room > self._room_bytes:
                self._make_rooms(room)
            if wanted == 1 or units == 1:
                self._sharing.do_all(whole, self._room)
                return
            if wanted > self._started:
                self._begin(wanted)
            if self._parked[0]:
                self._wake(wanted)
            take = self._sharing.TAKE_UNITS
            self._sharing.share(self._job, code, table, cuts, units, wanted, take)

    def end(self) -> None:
        """End all threads. A later call starts new ones."""
        with self._lock:
            self._end()

    def _make_rooms(self, size: int) -> None:
        """Give each thread at least this many bytes of room."""
        if self._sharing is None:
            self._sharing = kernels("sharing")
        self._room_bytes = max(size, self._room_bytes)
        whole = self._room_bytes + LINE_BYTES
        self._rooms = [np.zeros(whole, np.uint8) for _ in range(max(1, self._started))]
        begins = [-(-address(each) // LINE_BYTES) * LINE_BYTES for each in self._rooms]
        self._room = begins[0]
        for i, begin in enumerate(begins[: self._started], 1):
            self._lines[LINE * THREAD_LINES * i + THREAD_ROOM] = begin

    def _begin(self, wanted: int) -> None:
        """Start the threads, and make the table of the job."""
        self._end()
        size = LINE * THREAD_LINES * (wanted + 1)
        memory = np.zeros(size + LINE, np.int64)
        start = -address(memory) % LINE_BYTES // 8
        self._lines = memory[start : start + size]
        self._job = address(self._lines)
        self._lines[JOB_YIELD] = _give_way()
        self._parked = self._lines[JOB_PARKED : JOB_PARKED + 1]
        iterations = _iterations(self._sharing)
        for own in range(1, wanted):
            gate = Lock()
            gate.acquire()
            given = self._sharing, self._lines, own, iterations, gate
            worker = Thread(target=_work, args=given, name=f"abele-{own}", daemon=True)
            try:
                worker.start()
            except RuntimeError:
                # The host has no more threads, or the interpreter is ending. The existing threads
                # do all units.
                break
            self._gates.append(gate)
            self._workers.append(worker)
        self._started = wanted
        self._make_rooms(0)

    def _wake(self, wanted: int) -> None:
        """Wake the threads that take part and are parked."""
        for own, gate in enumerate(self._gates[: wanted - 1], 1):
            if self._sharing.unpark(self._job, own):
                gate.release()

    def _end(self) -> None:
        """End all threads."""
        self._started = 0
        self._lines[JOB_STOPS] = 1
        self._wake(len(self._gates) + 1)
        for worker in self._workers:
            worker.join(STOP_SECONDS)
        self._workers, self._gates = [], []


def _work(sharing: Any, lines: Array, own: int, iterations: int, gate: Lock) -> None:
    """Join jobs, and park while there is none."""
    job = address(lines)
    while sharing.work(job, own, iterations, sharing.TAKE_UNITS) == sharing.PARK:
        gate.acquire()


def _iterations(sharing: Any) -> int:
    """The number of iterations that a thread waits before it parks."""
    start = perf_counter()
    sharing.spin(SAMPLE_ITERATIONS)
    return max(1, int(SAMPLE_ITERATIONS * WAITING_SECONDS / (perf_counter() - start)))


def _give_way() -> int:
    """The address of the system's function that yields to other threads; 0 if there is none."""
    with suppress(OSError, AttributeError, TypeError):
        function = ctypes.CDLL(None).sched_yield
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


THREADS = Threads()
"""The threads of this process."""


@contextmanager
def using(threads: int) -> Generator[None]:
    """Within the block, use this number of threads."""
    before = THREADS.count
    THREADS.count = threads
    try:
        yield
    finally:
        THREADS.count = before


def _after_fork() -> None:
    """Forget the parent's threads, and a lock that one of them may have held."""
    # Callers have imported this object, so it must be changed in place.
    THREADS.__init__(THREADS.chosen)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(THREADS.end)
