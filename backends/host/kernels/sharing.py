# pyright: basic
"""The kernels that share a call's units of work among threads. Needs numba.

One thread opens a job and works on it; waiting threads join it. Each thread first takes the units
of its own stretch, and then units that other threads have left. A job is closed when no unit is
left, and ends when every thread that joined has left it: only then may its tables change. A thread
that comes too late finds the job closed and leaves.
"""

from __future__ import annotations

from .atomics import atomic_add, atomic_read, atomic_swap, atomic_write, call_system, pause
from .hardware import OPTIONS, compiled
from .tables import (
    CALL_CODE,
    CALL_END,
    CALL_FIRST,
    CALL_TABLE,
    JOB_ACTIVE,
    JOB_CODE,
    JOB_CUTS,
    JOB_IS_OPEN,
    JOB_NUMBER,
    JOB_PARKED,
    JOB_STOPS,
    JOB_TABLE,
    JOB_THREADS,
    JOB_YIELD,
    LINE,
    THREAD_END,
    THREAD_IS_PARKED,
    THREAD_LINES,
    THREAD_NEXT,
    THREAD_ROOM,
)
from .vectors import call_at, code_address, read_long, write_long

ITERATIONS_BEFORE_YIELD = 100
"""Iterations that a thread waits before it yields its core, which it may share with other
threads."""

THREAD_BYTES = THREAD_LINES * LINE * 8
PARK, STOP = 0, 1


@compiled("void(int64, int64)", **OPTIONS)
def _take_units(job, own):
    """Run the units of a thread's own stretch, then units that other threads have left."""
    code, table = read_long(job + JOB_CODE * 8), read_long(job + JOB_TABLE * 8)
    cuts, threads = read_long(job + JOB_CUTS * 8), read_long(job + JOB_THREADS * 8)
    first = job + LINE * 8 * THREAD_LINES
    room = read_long(first + own * THREAD_BYTES + THREAD_ROOM * 8)
    for i in range(threads):
        other = own + i if own + i < threads else own + i - threads
        line = first + other * THREAD_BYTES
        end = read_long(line + THREAD_END * 8)
        while atomic_read(line + THREAD_NEXT * 8) < end:
            unit = atomic_add(line + THREAD_NEXT * 8, 1)
            if unit < end:
                begin, stop = read_long(cuts + unit * 8), read_long(cuts + unit * 8 + 8)
                call_at(code, (table, begin, stop, room))


TAKE_UNITS = code_address(_take_units)


@compiled("int64(int64, int64, int64, int64)", **OPTIONS)
def work(job, own, iterations, take_units):
    """Join jobs until none has come for this many iterations; returns PARK or STOP."""
    seen, waited = 0, 0
    parked = job + LINE * 8 * THREAD_LINES + own * THREAD_BYTES + THREAD_IS_PARKED * 8
    while True:
        if atomic_read(job + JOB_STOPS * 8):
            return STOP
        number = atomic_read(job + JOB_NUMBER * 8)
        if number != seen:
            seen, waited = number, 0
            atomic_add(job + JOB_ACTIVE * 8, 1)
            if atomic_read(job + JOB_IS_OPEN * 8) and own < read_long(job + JOB_THREADS * 8):
                call_at(take_units, (job, own))
            atomic_add(job + JOB_ACTIVE * 8, -1)
            continue
        pause()
        waited += 1
        give_way = read_long(job + JOB_YIELD * 8)
        if waited % ITERATIONS_BEFORE_YIELD == 0 and give_way:
            call_system(give_way)
        if waited >= iterations:
            atomic_write(parked, 1)
            atomic_add(job + JOB_PARKED * 8, 1)
            if atomic_read(job + JOB_NUMBER * 8) == seen:
                return PARK
            if not atomic_swap(parked, 0):
                # This thread has been woken already, and must handle that first.
                return PARK
            atomic_add(job + JOB_PARKED * 8, -1)
            waited = 0


@compiled("int64(int64, int64)", **OPTIONS)
def unpark(job, own):
    """Mark a thread as woken; returns whether it was parked."""
    parked = job + LINE * 8 * THREAD_LINES + own * THREAD_BYTES + THREAD_IS_PARKED * 8
    was = atomic_swap(parked, 0)
    if was:
        atomic_add(job + JOB_PARKED * 8, -1)
    return was


@compiled("void(int64, int64, int64, int64, int64, int64, int64)", **OPTIONS)
def share(job, code, table, cuts, units, threads, take_units):
    """Run the units of a call, together with the other threads that wait for jobs.

    Returns when all units are done.

    Args:
        code: the address of a kernel's code, which does the work between two cuts.
        cuts: the address of the beginnings of all units, and the end.
    """
    first = job + LINE * 8 * THREAD_LINES
    write_long(job + JOB_CODE * 8, code)
    write_long(job + JOB_TABLE * 8, table)
    write_long(job + JOB_CUTS * 8, cuts)
    write_long(job + JOB_THREADS * 8, threads)
    for i in range(threads):
        line = first + i * THREAD_BYTES
        write_long(line + THREAD_NEXT * 8, units * i // threads)
        write_long(line + THREAD_END * 8, units * (i + 1) // threads)
    atomic_write(job + JOB_IS_OPEN * 8, 1)
    atomic_add(job + JOB_NUMBER * 8, 1)
    call_at(take_units, (job, 0))
    atomic_write(job + JOB_IS_OPEN * 8, 0)
    give_way, iterations = read_long(job + JOB_YIELD * 8), 0
    while atomic_read(job + JOB_ACTIVE * 8):
        pause()
        iterations += 1
        if iterations >= ITERATIONS_BEFORE_YIELD and give_way:
            call_system(give_way)


@compiled("void(int64, int64)", **OPTIONS)
def do_all(call, room):
    """Run all units of a call in this thread. It has few arguments, because passing each takes
    time.
    """
    first, end = read_long(call + CALL_FIRST * 8), read_long(call + CALL_END * 8)
    code, table = read_long(call + CALL_CODE * 8), read_long(call + CALL_TABLE * 8)
    call_at(code, (table, first, end, room))


@compiled("void(int64)", **OPTIONS)
def spin(iterations):
    """Wait for this many iterations, as `work` does."""
    for _ in range(iterations):
        pause()
