# pyright: basic
"""The kernels that bring rows of tables that indices name, and replace them. Needs numba."""

from __future__ import annotations

from ..kernel_cache import compiled
from .hardware import OPTIONS
from .tables import LOOKUP_COLUMNS
from .vectors import (
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
"""Where a row begins that a cell does not hold."""

AHEAD = 12
"""How many lookups ahead the host is asked for a row."""


@compiled("int64(int64, int64)", **OPTIONS)
def _index(address, unit):
    """The index at an address. unit: its bytes, negative if it has a sign."""
    if unit == -8 or unit == 8:
        return int(read8(address))
    if unit == 4:
        return int(read4(address))
    if unit == -4:
        return (int(read4(address)) ^ 0x80000000) - 0x80000000
    if unit == 2:
        return int(read2(address))
    if unit == -2:
        return (int(read2(address)) ^ 0x8000) - 0x8000
    if unit == 1:
        return int(read1(address))
    return (int(read1(address)) ^ 0x80) - 0x80


@compiled("void(int64[::1], int64[:,::1], int64[:,::1], int64[::1])", **OPTIONS)
def look_up(head, points, pieces, found):
    """Copy, for each lookup, the pieces of the row that an index names, or zeros if the cell does
    not hold it.

    head, points, pieces: as `tables` says. found: room for a number per lookup.
    """
    result, table, indices, unit = head[0], head[1], head[2], head[3]
    size, rows, step, length, zeros = head[4], head[5], head[6], head[7], head[8]
    count, listed, room = len(points), points.ctypes.data, found.ctypes.data
    for k in range(count):
        point = listed + k * (LOOKUP_COLUMNS * 8)
        index = _index(indices + read_long(point + 16), unit)
        if index < 0:
            index += size
        row = index - read_long(point + 24)
        write_long(room + k * 8, read_long(point + 8) + row * step if 0 <= row < rows else NONE)
    for piece in range(len(pieces)):
        out = result + pieces[piece, 0]
        within = table + pieces[piece, 1]
        for k in range(count):
            if k + AHEAD < count:
                # Rows are far apart. An address that is none is harmless here.
                prefetch_to_read(within + read_long(room + (k + AHEAD) * 8))
            offset = read_long(room + k * 8)
            source = zeros if offset == NONE else within + offset
            target = out + read_long(listed + k * (LOOKUP_COLUMNS * 8))
            if length == 4:
                write4(target, read4(source))
            elif length == 2:
                write2(target, read2(source))
            else:
                copy_bytes(target, source, length)


@compiled("void(int64[::1], int64[:,::1], int64[:,::1])", **OPTIONS)
def replace_rows(head, points, pieces):
    """Copy, for each update in turn, its pieces over the row that an index names, if the cell holds
    it.

    head, points, pieces: as `tables` says, with the updates in the place of the table.
    """
    result, updates, indices, unit = head[0], head[1], head[2], head[3]
    size, rows, step, length = head[4], head[5], head[6], head[7]
    listed = points.ctypes.data
    for k in range(len(points)):
        point = listed + k * (LOOKUP_COLUMNS * 8)
        index = _index(indices + read_long(point + 16), unit)
        if index < 0:
            index += size
        row = index - read_long(point + 24)
        if not 0 <= row < rows:
            continue
        out = result + read_long(point) + row * step
        source = updates + read_long(point + 8)
        for piece in range(len(pieces)):
            copy_bytes(out + pieces[piece, 0], source + pieces[piece, 1], length)
