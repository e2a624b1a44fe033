# pyright: basic
"""The kernel that fills the blocks of a variable from those of another, run by run. Needs numba.

A run is a row of int64, whose columns `tables` names. The rows of a run are evenly spaced in the
target, and their sources are listed. Runs of the same kind are consecutive, in a segment: a row of
int64 with the kind, the first run, and the end.
"""

from __future__ import annotations

from .hardware import OPTIONS, compiled
from .rows import (
    gathered_bytes,
    gathered_halves,
    gathered_longs,
    gathered_quads,
    gathered_words,
    transposed_longs,
    transposed_words,
    word_rows,
)
from .tables import (
    BY_BYTES,
    BY_WORDS,
    FILLED,
    GATHERED,
    REPLICA,
    ROUTE_CODE,
    ROUTE_FILL,
    ROUTE_PIECES,
    ROUTE_ROWS,
    ROUTE_SOURCE,
    ROUTE_STEP,
    ROUTE_TARGET,
    ROUTE_UNIT,
    RUN_FIELDS,
    RUN_LENGTH,
    RUN_PIECES,
    RUN_ROW_TABLE,
    RUN_ROWS,
    RUN_SOURCE,
    RUN_TARGET,
    RUNS_OF_ROUTE,
    SEGMENT_COUNT,
    SEGMENTS,
    TRANSPOSED,
)
from .vectors import (
    call_at,
    code_address,
    copy_bytes,
    prefetch_to_write,
    read_long,
    write1,
    write2,
    write4,
    write8,
)

AHEAD = 8
"""Runs between the prefetch of a run's first line and the run itself."""

RUN_BYTES = RUN_FIELDS * 8
SEGMENT_BYTES = 3 * 8


@compiled("void(int64, int64, int64, int64, int64, int64)", **OPTIONS)
def _fill(out, step, count, n, unit, value):
    """Fill a run of each of some rows."""
    for i in range(count):
        end = out + i * step
        for j in range(n):
            if unit == 4:
                write4(end + j * 4, value)
            elif unit == 2:
                write2(end + j * 2, value)
            elif unit == 8:
                write8(end + j * 8, value)
            else:
                write1(end + j, value)


@compiled("void(int64, int64, int64, int64, int64, int64)", **OPTIONS)
def _copy(out, step, source, rows, count, n):
    """Copy n bytes of each of some rows, whose sources are listed."""
    for i in range(count):
        copy_bytes(out + i * step, source + read_long(rows + i * 8), n)


@compiled("void(int64, int64, int64, int64, int64, int64, int64, int64)", **OPTIONS)
def copy_in_pieces(kind, out, step, source, rows, count, pieces, n):
    """Copy rows as words, or in pieces of one width."""
    if kind == BY_WORDS:
        word_rows(out, source, step, rows, count, pieces, n)
    elif kind == GATHERED + 2:
        gathered_words(out, source, step, rows, count, pieces, n)
    elif kind == GATHERED + 3:
        gathered_longs(out, source, step, rows, count, pieces, n)
    elif kind == TRANSPOSED:
        transposed_words(out, source, rows, count, pieces, n)
    elif kind == TRANSPOSED + 1:
        transposed_longs(out, source, rows, count, pieces, n)
    elif kind == GATHERED + 4:
        gathered_quads(out, source, step, rows, count, pieces, n)
    elif kind == GATHERED + 1:
        gathered_halves(out, source, step, rows, count, pieces, n)
    else:
        gathered_bytes(out, source, step, rows, count, pieces, n)


COPY_IN_PIECES = code_address(copy_in_pieces)


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def route(head, begin, stop, room):
    """Make some runs.

    Args:
        head: the address of a table as described in `tables`.
    """
    source, target = read_long(head + ROUTE_SOURCE * 8), read_long(head + ROUTE_TARGET * 8)
    unit, fill = read_long(head + ROUTE_UNIT * 8), read_long(head + ROUTE_FILL * 8)
    step, code = read_long(head + ROUTE_STEP * 8), read_long(head + ROUTE_CODE * 8)
    segments, runs = read_long(head + SEGMENTS * 8), read_long(head + RUNS_OF_ROUTE * 8)
    row_table, piece_table = read_long(head + ROUTE_ROWS * 8), read_long(head + ROUTE_PIECES * 8)
    # Find the segment of the first run.
    low, high = 0, read_long(head + SEGMENT_COUNT * 8) - 1
    while low < high:
        middle = (low + high) // 2
        if read_long(segments + middle * SEGMENT_BYTES + 16) <= begin:
            low = middle + 1
        else:
            high = middle
    segments += low * SEGMENT_BYTES
    t = begin
    while t < stop:
        kind, end = read_long(segments), min(stop, read_long(segments + 16))
        while t < end:
            run = runs + t * RUN_BYTES
            if t + AHEAD < end:
                prefetch_to_write(target + read_long(run + AHEAD * RUN_BYTES + RUN_TARGET * 8))
            out = target + read_long(run + RUN_TARGET * 8)
            found, n = read_long(run + RUN_SOURCE * 8), read_long(run + RUN_LENGTH * 8)
            count = read_long(run + RUN_ROWS * 8)
            listed = row_table + read_long(run + RUN_ROW_TABLE * 8) * 8
            if kind == FILLED:
                _fill(out, step, count, n, unit, fill)
            elif kind == BY_BYTES:
                _copy(out, step, source + found, listed, count, n)
            elif kind == REPLICA:
                for i in range(count):
                    copy_bytes(out + i * step, target + found + i * step, n)
            else:
                offsets = piece_table + read_long(run + RUN_PIECES * 8) * 8
                call_at(code, (kind, out, step, source + found, listed, count, offsets, n))
            t += 1
        segments += SEGMENT_BYTES


ROUTE = code_address(route)
