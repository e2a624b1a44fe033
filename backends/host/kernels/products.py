# pyright: basic
"""The kernel of sums of products. Needs numba.

Rows of one operand and columns of the other are packed into panels. A tile of results is computed
in registers, from a panel of rows and a panel of columns.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from ..kernel_cache import compiled
from .hardware import COLUMNS, OPTIONS, ROWS, VECTORS
from .rows import (
    gathered_widened,
    gathered_words,
    scattered_floats,
    scattered_halves,
    spread_floats,
    spread_halves,
    widened_rows,
    word_rows,
)
from .tables import (
    COLUMN_RUN_FIELDS,
    COLUMNS_KEPT,
    COLUMNS_PACKED,
    CONTIGUOUS,
    LANES,
    ROWS_KEPT,
    ROWS_PACKED,
    RUN_COLUMNS,
    RUN_ENTRY,
    RUN_IS_CONTIGUOUS,
    RUN_LANE,
    RUN_OFFSET,
)
from .vectors import (
    F32,
    I64,
    call_at,
    code_address,
    intrinsic,
    load,
    prefetch,
    put,
    read_float,
    read_half,
    read_long,
    splat,
    write_float,
)

ROWS_AHEAD = 256
"""Terms between the prefetch of packed rows and their use. Weights of a large network come from
memory, and without a prefetch more slowly than they are multiplied."""

THIRD = ROWS // 3
"""Rows of a third of a panel. Of the last panel, only the thirds that have rows are multiplied."""

TILE_BYTES = ROWS * COLUMNS * 4
COLUMN_RUN_BYTES = COLUMN_RUN_FIELDS * 8


def _micro_kernel(vectors, height):
    """The intrinsic that multiplies the first rows of a panel by the first vectors of a panel of
    columns.

    rows: [depth][ROWS]. columns: [depth][COLUMNS]. out: [ROWS][COLUMNS]. Each result is a chain of
    fused multiplications and additions, from zero, in the order of depth. If adds is not 0, it is
    added to what out holds.
    """
    vector = ir.VectorType(F32, LANES)

    @intrinsic
    def multiply(context, rows, columns, depth, out, adds):
        del context

        def generate(context, builder, sig, arguments):
            del sig
            rows, columns, depth, out, adds = arguments
            zero = ir.Constant(vector, [0.0] * LANES)
            totals = [
                [cgutils.alloca_once_value(builder, zero) for _ in range(vectors)]
                for _ in range(height)
            ]
            for row in totals:
                for total in row:
                    builder.store(zero, total)
            fma = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(vector, [vector] * 3),
                f"llvm.fma.v{LANES}f32",
            )

            def after(base, offset):
                return builder.add(base, ir.Constant(I64, offset))

            with cgutils.for_range(builder, depth) as counter:
                begin = builder.add(
                    columns, builder.mul(counter.index, ir.Constant(I64, 4 * COLUMNS))
                )
                right = [load(builder, vector, after(begin, 4 * LANES * v)) for v in range(vectors)]
                begin = builder.add(rows, builder.mul(counter.index, ir.Constant(I64, 4 * ROWS)))
                prefetch(builder, after(begin, 4 * ROWS * ROWS_AHEAD), to_write=False)
                for r in range(height):
                    left = splat(builder, load(builder, F32, after(begin, 4 * r)))
                    for v in range(vectors):
                        total = builder.load(totals[r][v])
                        builder.store(builder.call(fma, [left, right[v], total]), totals[r][v])
            into = [
                (after(out, 4 * (r * COLUMNS + v * LANES)), totals[r][v])
                for r in range(height)
                for v in range(vectors)
            ]
            with builder.if_then(builder.icmp_signed("!=", adds, ir.Constant(I64, 0))):
                for where, total in into:
                    found = builder.fadd(load(builder, vector, where), builder.load(total))
                    builder.store(found, total)
            for where, total in into:
                put(builder, builder.load(total), where)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 5), generate

    return multiply


multiply_panels, multiply_vector = (_micro_kernel(vectors, ROWS) for vectors in (VECTORS, 1))
multiply_two_thirds, multiply_vector_two_thirds = (
    _micro_kernel(vectors, 2 * THIRD) for vectors in (VECTORS, 1)
)
multiply_third, multiply_vector_third = (_micro_kernel(vectors, THIRD) for vectors in (VECTORS, 1))


@intrinsic
def add_vector(context, out, other):
    """Add a vector of floats to another."""
    del context

    def generate(context, builder, sig, arguments):
        del sig
        out, other = arguments
        vector = ir.VectorType(F32, LANES)
        put(builder, builder.fadd(load(builder, vector, out), load(builder, vector, other)), out)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@compiled("void(int64, int64, int64, int64, int64, int64, int64, int64, int64)", **OPTIONS)
def multiply(left, right, depth, height, is_narrow, tile, spare, adds, terms_of_chain):
    """Multiply the first rows of a panel by a panel of columns, as chains that are added up.

    If adds is not 0, the sum is added to what the tile holds. Rows from the height on are
    undefined. spare: room for a tile.
    """
    into = spare if adds and depth > terms_of_chain else tile
    for k in range(0, depth, terms_of_chain):
        rows, columns = left + k * ROWS * 4, right + k * COLUMNS * 4
        terms = min(terms_of_chain, depth - k)
        is_added = k if depth > terms_of_chain else adds
        if height > 2 * THIRD:
            if is_narrow:
                multiply_vector(rows, columns, terms, into, is_added)
            else:
                multiply_panels(rows, columns, terms, into, is_added)
        elif height > THIRD:
            if is_narrow:
                multiply_vector_two_thirds(rows, columns, terms, into, is_added)
            else:
                multiply_two_thirds(rows, columns, terms, into, is_added)
        elif is_narrow:
            multiply_vector_third(rows, columns, terms, into, is_added)
        else:
            multiply_third(rows, columns, terms, into, is_added)
    if into != tile:
        for i in range(0, TILE_BYTES, LANES * 4):
            add_vector(tile + i, spare + i)


MULTIPLY = code_address(multiply)


@compiled("void(int64, int64, int64, int64, int64, int64, int64)", **OPTIONS)
def pack_rows(base, size, rows, row_count, depth, terms, packed):
    """Pack the rows of the first operand into panels, [panel][depth][ROWS]; missing rows are 0.

    rows, depth: addresses of the offsets of rows and of terms.
    """
    out = packed
    for first in range(0, row_count, ROWS):
        count = min(ROWS, row_count - first)
        for k in range(terms):
            begin = base + read_long(depth + k * 8)
            for r in range(count):
                where = begin + read_long(rows + (first + r) * 8)
                if size == 4:
                    write_float(out + r * 4, read_float(where))
                else:
                    write_float(out + r * 4, read_half(where))
            for r in range(count, ROWS):
                write_float(out + r * 4, np.float32(0))
            out += ROWS * 4


PACK_ROWS = code_address(pack_rows)


@compiled("void(int64, int64, int64, int64, int64, int64, int64, int64)", **OPTIONS)
def pack_columns(base, size, runs, end, columns, depth, terms, panel):
    """Pack a panel of columns of the second operand, [depth][COLUMNS]; missing ones are left.

    runs, end: addresses of the panel's runs of columns. columns, depth: addresses of the offsets of
    columns and of terms.
    """
    step = COLUMNS * 4
    while runs < end:
        out, n = panel + read_long(runs + RUN_LANE * 8) * 4, read_long(runs + RUN_COLUMNS * 8)
        begin = base + read_long(runs + RUN_OFFSET * 8)
        listed = columns + read_long(runs + RUN_ENTRY * 8) * 8
        if read_long(runs + RUN_IS_CONTIGUOUS * 8) == CONTIGUOUS:
            if size == 4:
                word_rows(out, begin, step, depth, terms, listed, n)
            else:
                widened_rows(out, begin, step, depth, terms, listed, n)
        elif size == 4:
            gathered_words(out, begin, step, depth, terms, listed, n)
        else:
            gathered_widened(out, begin, step, depth, terms, listed, n)
        runs += COLUMN_RUN_BYTES


PACK_COLUMNS = code_address(pack_columns)


@compiled("void(int64, int64, int64, int64, int64, int64, int64, int64)", **OPTIONS)
def store_tile(tile, base, size, rows, count, runs, end, columns):
    """Store some rows of a tile of results.

    rows: the address of the offsets of the rows. runs, end, columns: as for pack_columns.
    """
    step = COLUMNS * 4
    while runs < end:
        found, n = tile + read_long(runs + RUN_LANE * 8) * 4, read_long(runs + RUN_COLUMNS * 8)
        begin = base + read_long(runs + RUN_OFFSET * 8)
        listed = columns + read_long(runs + RUN_ENTRY * 8) * 8
        if read_long(runs + RUN_IS_CONTIGUOUS * 8) == CONTIGUOUS:
            if size == 4:
                spread_floats(begin, found, step, rows, count, listed, n)
            else:
                spread_halves(begin, found, step, rows, count, listed, n)
        elif size == 4:
            scattered_floats(begin, found, step, rows, count, listed, n)
        else:
            scattered_halves(begin, found, step, rows, count, listed, n)
        runs += COLUMN_RUN_BYTES


STORE_TILE = code_address(store_tile)

CODES = (MULTIPLY, PACK_ROWS, PACK_COLUMNS, STORE_TILE)
"""The addresses of the code of the kernels that `products` calls."""


@compiled(
    "void(int64[::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1], int64[:,::1],"
    "int64[::1], int64[::1], int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1], int64)",
    **OPTIONS,
)
def products(
    head,
    batch,
    groups,
    rows,
    row_results,
    runs,
    spans,
    columns,
    result_runs,
    result_spans,
    column_results,
    depth,
    depths,
    known,
):
    """Multiply rows of one operand by columns of another, for each product of a batch.

    head: as `tables` says; there is a tile of results for each panel of rows, and a spare one.
    batch: of each product, the offsets of both operands and the result. groups: the first product
    and the end of each group, whose products are added up in one result. rows, row_results,
    columns, column_results: offsets of rows and columns in the operand and in the result. runs,
    spans: the runs of columns of the second operand, and the first run of each panel with the end;
    result_runs, result_spans: the same of the result. depth, depths: offsets of terms in the
    operands. known: flags for operands that stay packed or are packed already.
    """
    a, b, out, sizes = head[0], head[1], head[2], (head[3], head[4], head[5])
    count, packed, kept, tiles, terms = head[6], head[7], head[8], head[9], head[10]
    multiply, pack_rows, pack_columns, store_tile = head[11], head[12], head[13], head[14]
    height, deep = len(rows), len(depth)
    panels, across = (height + ROWS - 1) // ROWS, len(spans) - 1
    length, size = deep * ROWS * 4, deep * COLUMNS * 4
    spare = tiles + panels * TILE_BYTES
    for g in range(len(groups)):
        begin, end = groups[g, 0], groups[g, 1]
        mine = packed + begin * panels * length if known & ROWS_KEPT else packed
        if not known & ROWS_PACKED:
            for i in range(begin, end):
                base, into = a + batch[i, 0], mine + (i - begin) * panels * length
                where, along = rows.ctypes.data, depth.ctypes.data
                call_at(pack_rows, (base, sizes[0], where, height, along, deep, into))
        for q in range(across):
            is_narrow = 1 if count - q * COLUMNS <= LANES else 0
            for i in range(begin, end):
                panel = kept + (i * across + q) * size if known & COLUMNS_KEPT else kept
                if not known & COLUMNS_PACKED:
                    first = runs.ctypes.data + spans[q] * COLUMN_RUN_BYTES
                    last = runs.ctypes.data + spans[q + 1] * COLUMN_RUN_BYTES
                    base, where, along = b + batch[i, 1], columns.ctypes.data, depths.ctypes.data
                    call_at(pack_columns, (base, sizes[1], first, last, where, along, deep, panel))
                left = mine + (i - begin) * panels * length
                for p in range(panels):
                    tile, row = tiles + p * TILE_BYTES, left + p * length
                    rest, adds = height - p * ROWS, i - begin
                    call_at(multiply, (row, panel, deep, rest, is_narrow, tile, spare, adds, terms))
            first = result_runs.ctypes.data + result_spans[q] * COLUMN_RUN_BYTES
            last = result_runs.ctypes.data + result_spans[q + 1] * COLUMN_RUN_BYTES
            for p in range(panels):
                tile, base = tiles + p * TILE_BYTES, out + batch[begin, 2]
                where, rest = row_results.ctypes.data + p * ROWS * 8, min(ROWS, height - p * ROWS)
                along = column_results.ctypes.data
                call_at(store_tile, (tile, base, sizes[2], where, rest, first, last, along))
