# pyright: basic
"""The kernels that copy the rows of tables that indices name, and that replace such rows. Needs
numba.
"""

from __future__ import annotations

import numpy as np

from .hardware import OPTIONS, compiled
from .tables import (
    AXIS_SIZE,
    INDEX_BYTES,
    INDICES,
    INTO,
    LISTED_PIECE_COUNT,
    LISTED_PIECES,
    LISTED_POINT_COUNT,
    LISTED_POINTS,
    LOOKUP_COLUMNS,
    PIECE_BYTES,
    POINT_FIRST_ROW,
    POINT_INDEX,
    POINT_RESULT,
    POINT_ROW,
    ROW_0,
    ROW_STEP,
    ROWS_OF_CELL,
    ZEROS,
)
from .vectors import (
    code_address,
    copy_bytes,
    prefetch_to_read,
    read1,
    read2,
    read4,
    read8,
    read_long,
    write2,
    write4,
    write_long,
)

NONE = -(1 << 62)
"""The address of a row that a cell does not hold."""

AHEAD = 12
"""The number of lookups by which rows are prefetched ahead."""


@compiled("int64(int64, int64)", **OPTIONS)
def _row(head, point):
    """The row that a lookup's index names, counted from the first row in its cell; -1 if it is not
    there.

    Args:
        point: the address of the lookup's line.
    """
    unit = read_long(head + INDEX_BYTES * 8)
    address = read_long(head + INDICES * 8) + read_long(point + POINT_INDEX * 8)
    if unit == -8 or unit == 8:
        index = np.int64(read8(address))
    elif unit == 4:
        index = np.int64(read4(address))
    elif unit == -4:
        index = (np.int64(read4(address)) ^ 0x80000000) - 0x80000000
    elif unit == 2:
        index = np.int64(read2(address))
    elif unit == -2:
        index = (np.int64(read2(address)) ^ 0x8000) - 0x8000
    elif unit == 1:
        index = np.int64(read1(address))
    else:
        index = (np.int64(read1(address)) ^ 0x80) - 0x80
    if index < 0:
        index += read_long(head + AXIS_SIZE * 8)
    row = index - read_long(point + POINT_FIRST_ROW * 8)
    return row if 0 <= row < read_long(head + ROWS_OF_CELL * 8) else -1


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def look_up(head, begin, end, room):
    """For some of the lookups, copy pieces of the row that an index names.

    Copies zeros if the cell does not hold the row.

    Args:
        head: the address of a table as described in `tables`.
    """
    result, table = read_long(head + INTO * 8), read_long(head + ROW_0 * 8)
    step, length = read_long(head + ROW_STEP * 8), read_long(head + PIECE_BYTES * 8)
    listed, zeros = read_long(head + LISTED_POINTS * 8), read_long(head + ZEROS * 8)
    pieces, count = read_long(head + LISTED_PIECES * 8), end - begin
    listed += begin * (LOOKUP_COLUMNS * 8)
    for k in range(count):
        point = listed + k * (LOOKUP_COLUMNS * 8)
        row = _row(head, point)
        offset = NONE if row < 0 else read_long(point + POINT_ROW * 8) + row * step
        write_long(room + k * 8, offset)
    for piece in range(read_long(head + LISTED_PIECE_COUNT * 8)):
        out = result + read_long(pieces + piece * 16)
        within = table + read_long(pieces + piece * 16 + 8)
        for k in range(count):
            if k + AHEAD < count:
                # Rows are far apart, so prefetch them. Prefetching an invalid address is harmless.
                prefetch_to_read(within + read_long(room + (k + AHEAD) * 8))
            offset = read_long(room + k * 8)
            source = zeros if offset == NONE else within + offset
            target = out + read_long(listed + k * (LOOKUP_COLUMNS * 8) + POINT_RESULT * 8)
            if length == 4:
                write4(target, read4(source))
            elif length == 2:
                write2(target, read2(source))
            else:
                copy_bytes(target, source, length)


LOOK_UP = code_address(look_up)


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def replace_rows(head, begin, end, room):
    """For each update in turn, copy some of its pieces over the row that an index names.

    Does nothing if the cell does not hold the row.

    Args:
        head: as for look_up, with the updates in the place of the table.
    """
    result, updates = read_long(head + INTO * 8), read_long(head + ROW_0 * 8)
    step, length = read_long(head + ROW_STEP * 8), read_long(head + PIECE_BYTES * 8)
    listed, pieces = read_long(head + LISTED_POINTS * 8), read_long(head + LISTED_PIECES * 8)
    for k in range(read_long(head + LISTED_POINT_COUNT * 8)):
        point = listed + k * (LOOKUP_COLUMNS * 8)
        row = _row(head, point)
        if row < 0:
            continue
        out = result + read_long(point + POINT_RESULT * 8) + row * step
        source = updates + read_long(point + POINT_ROW * 8)
        for piece in range(begin, end):
            at = pieces + piece * 16
            copy_bytes(out + read_long(at), source + read_long(at + 8), length)


REPLACE_ROWS = code_address(replace_rows)
