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

from .hardware import COLUMNS, FORM, OPTIONS, ROWS, VECTORS, compiled
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
    BATCH,
    BLOCK_COUNT,
    BLOCK_PANELS,
    CHAIN_TERMS,
    COLUMN_COUNT,
    COLUMN_OFFSETS,
    COLUMN_RUN_FIELDS,
    COLUMNS_KEPT,
    CONTIGUOUS,
    GROUPS,
    KNOWN,
    LANES,
    LEFT,
    LEFT_BYTES,
    LEFT_TERMS,
    MULTIPLY_CODE,
    PACK_COLUMNS_CODE,
    PACK_ROWS_CODE,
    PACKED_COLUMNS,
    PACKED_ROWS,
    PANEL_COUNT,
    RESULT,
    RESULT_BYTES,
    RESULT_COLUMNS,
    RESULT_ROWS,
    RESULT_RUNS,
    RESULT_SPANS,
    RIGHT,
    RIGHT_BYTES,
    RIGHT_TERMS,
    ROUNDING,
    ROUNDINGS,
    ROW_COUNT,
    ROW_OFFSETS,
    ROWS_KEPT,
    RUN_COLUMNS,
    RUN_ENTRY,
    RUN_IS_CONTIGUOUS,
    RUN_LANE,
    RUN_OFFSET,
    RUNS_OF_COLUMNS,
    SPANS,
    STORE_TILE_CODE,
    TERM_COUNT,
)
from .vectors import (
    F16,
    F32,
    I32,
    I64,
    call_at,
    code_address,
    intrinsic,
    load,
    load_first,
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
memory, which without a prefetch is slower than multiplying them.
"""

THIRD = ROWS // 3
"""Rows of a third of a panel. In the last panel, only the thirds that have rows are multiplied."""

TAILS = 1, 4, 9
"""The numbers of columns after the last whole vector up to which they are multiplied as vectors of
rows. A row of more columns is cheaper as one more vector. A square number, such as the number of
pixels of a square image, is one of these or 0 modulo LANES.
"""

ROW_LANES = FORM.row_lanes
"""Elements of a vector that holds the rows of a panel."""

TAIL_BEGIN = ROWS * COLUMNS * 4
"""The offset, in bytes, in a tile of results: the rows come first, then the columns that are
multiplied as vectors of rows.
"""

TILE_VECTORS = -(-(ROWS * COLUMNS + TAILS[-1] * ROW_LANES) // LANES)
"""Vectors in a tile of results. Tiles are added up by whole vectors, so the next tile begins after
the last vector.
"""

TILE_BYTES = TILE_VECTORS * LANES * 4

COLUMN_RUN_BYTES = COLUMN_RUN_FIELDS * 8
BATCH_BYTES = 3 * 8


def _micro_kernel(vectors, height, tail=0):
    """The intrinsic that multiplies the first rows of a panel by the first vectors of a panel of
    columns, and all rows by the columns after these.

    rows: [depth][ROWS]. columns: [depth][COLUMNS]. out: [ROWS][COLUMNS], and [tail][ROW_LANES] from
    TAIL_BEGIN on, whose last lanes are 0 before they are added. Each result is a chain of fused
    multiplications and additions, from zero, in the order of depth. If adds is not 0, it is added
    to the value in out.
    """
    vector, row_vector = ir.VectorType(F32, LANES), ir.VectorType(F32, ROW_LANES)

    @intrinsic
    def multiply(context, rows, columns, depth, out, adds):
        del context

        def generate(context, builder, sig, arguments):
            del sig
            rows, columns, depth, out, adds = arguments

            def cleared(type_):
                return cgutils.alloca_once_value(builder, ir.Constant(type_, [0.0] * type_.count))

            def after(base, offset):
                return builder.add(base, ir.Constant(I64, offset))

            def add_product(left, right, total):
                kind = left.type
                fma = cgutils.get_or_insert_function(
                    builder.module,
                    ir.FunctionType(kind, [kind] * 3),
                    f"llvm.fma.v{kind.count}f32",
                )
                builder.store(builder.call(fma, [left, right, builder.load(total)]), total)

            totals = [[cleared(vector) for _ in range(vectors)] for _ in range(height)]
            tails = [cleared(row_vector) for _ in range(tail)]
            with cgutils.for_range(builder, depth) as counter:
                begin = builder.add(
                    columns, builder.mul(counter.index, ir.Constant(I64, 4 * COLUMNS))
                )
                right = [load(builder, vector, after(begin, 4 * LANES * v)) for v in range(vectors)]
                single = [
                    splat(builder, load(builder, F32, after(begin, at)), ROW_LANES)
                    for at in range(4 * LANES * vectors, 4 * (LANES * vectors + tail), 4)
                ]
                begin = builder.add(rows, builder.mul(counter.index, ir.Constant(I64, 4 * ROWS)))
                prefetch(builder, after(begin, 4 * ROWS * ROWS_AHEAD), to_write=False)
                for row in range(height if vectors else 0):
                    left = splat(builder, load(builder, F32, after(begin, 4 * row)))
                    for factor, total in zip(right, totals[row], strict=True):
                        add_product(left, factor, total)
                if tail:
                    left = load_first(builder, F32, begin, ROWS, ROW_LANES)
                    for factor, total in zip(single, tails, strict=True):
                        add_product(left, factor, total)
            into = [
                (after(out, 4 * (r * COLUMNS + v * LANES)), totals[r][v])
                for r in range(height)
                for v in range(vectors)
            ]
            into += [
                (after(out, TAIL_BEGIN + 4 * j * ROW_LANES), total) for j, total in enumerate(tails)
            ]
            with builder.if_then(builder.icmp_signed("!=", adds, ir.Constant(I64, 0))):
                for where, total in into:
                    found = builder.load(total)
                    found = builder.fadd(load(builder, found.type, where), found)
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
multiply_1, multiply_4, multiply_9 = (_micro_kernel(0, ROWS, tail) for tail in TAILS)
multiply_vector_and_1, multiply_vector_and_4 = (
    _micro_kernel(VECTORS - 1, ROWS, tail) for tail in TAILS[:2]
)


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


SIGN, INFINITE = 0x80000000, 0x7F800000
"""The bits of a float that are its sign, and those of infinity."""

REPLACED = {ROUNDINGS["CLIP"]: 0x477FE000, ROUNDINGS["NAN"]: 0x7FC00000}
"""The bits of 65,504 and NaN, which replace infinity."""


@intrinsic
def round_vector(context, out, rounding):
    """Round a vector of floats to nearest halves.

    Args:
        rounding: one of ROUNDINGS.
    """
    del context

    def generate(context, builder, sig, arguments):
        del sig
        out, rounding = arguments
        vector, words = ir.VectorType(F32, LANES), ir.VectorType(I32, LANES)
        value = load(builder, vector, out)
        value = builder.fpext(builder.fptrunc(value, ir.VectorType(F16, LANES)), vector)

        def every(number):
            return ir.Constant(words, [number] * LANES)

        bits = builder.bitcast(value, words)
        sign = builder.and_(bits, every(SIGN))
        is_infinite = builder.icmp_unsigned("==", builder.xor(bits, sign), every(INFINITE))
        found = bits
        for rule, replaced in REPLACED.items():
            is_asked = builder.icmp_signed("==", rounding, ir.Constant(I64, rule))
            other = builder.select(is_infinite, builder.or_(sign, every(replaced)), bits)
            found = builder.select(is_asked, other, found)
        put(builder, builder.bitcast(found, vector), out)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@compiled("int64(int64, int64)", **OPTIONS)
def _tail(height, width):
    """The number of columns that are multiplied as vectors of rows.

    These are the columns after the last whole vector, if they are few, and rows fill two thirds of
    a panel.
    """
    rest, most = width % LANES, TAILS[1] if width > LANES else TAILS[2]
    return rest if height > 2 * THIRD and rest <= most else 0


@compiled("void(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)", **OPTIONS)
def multiply(left, right, depth, height, width, tile, spare, adds, terms_of_chain, rounding):
    """Multiply the first rows of a panel by the first columns of a panel, as chains that are added
    up.

    If adds is not 0, the sum is added to the value in the tile. Rows from the height on are
    undefined.

    Args:
        spare: memory for a tile.
        rounding: how the sum is rounded after each chain; with it, nothing is added to the tile.
    """
    into = spare if adds and depth > terms_of_chain else tile
    is_narrow, tail = width <= LANES, _tail(height, width)
    for k in range(0, depth, terms_of_chain):
        rows, columns = left + k * ROWS * 4, right + k * COLUMNS * 4
        terms = min(terms_of_chain, depth - k)
        is_added = k if depth > terms_of_chain else adds
        if tail:
            if width < LANES:
                if tail == 1:
                    multiply_1(rows, columns, terms, into, is_added)
                elif tail <= 4:
                    multiply_4(rows, columns, terms, into, is_added)
                else:
                    multiply_9(rows, columns, terms, into, is_added)
            elif tail == 1:
                multiply_vector_and_1(rows, columns, terms, into, is_added)
            else:
                multiply_vector_and_4(rows, columns, terms, into, is_added)
        elif height > 2 * THIRD:
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
        if rounding:
            for i in range(0, TILE_BYTES, LANES * 4):
                round_vector(into + i, rounding)
    if into != tile:
        for i in range(0, TILE_BYTES, LANES * 4):
            add_vector(tile + i, spare + i)


MULTIPLY = code_address(multiply)


@compiled("void(int64, int64, int64, int64, int64, int64, int64)", **OPTIONS)
def pack_rows(base, size, rows, row_count, depth, terms, packed):
    """Pack the rows of the first operand into panels, [panel][depth][ROWS]; missing rows are 0.

    Args:
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
    """Pack a panel of columns of the second operand, [depth][COLUMNS]; missing columns are not
    written.

    Args:
        runs, end: addresses of the panel's runs of columns.
        columns, depth: addresses of the offsets of columns and of terms.
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

    Args:
        rows: the address of the offsets of the rows.
        runs, end, columns: as for pack_columns.
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


@intrinsic
def clear_vector(context, out):
    """Store a vector of zeros."""
    del context

    def generate(context, builder, sig, arguments):
        del sig
        put(builder, ir.Constant(ir.VectorType(F32, LANES), None), arguments[0])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def pack_all_rows(head, begin, end, room):
    """Pack some panels of rows of the first operand. The panels of all products are numbered in
    turn.

    Args:
        head: the address of a table as described in `tables`.
    """
    base, size, packed = (
        read_long(head + LEFT * 8),
        read_long(head + LEFT_BYTES * 8),
        read_long(head + PACKED_ROWS * 8),
    )
    batch, rows = read_long(head + BATCH * 8), read_long(head + ROW_OFFSETS * 8)
    height, deep = read_long(head + ROW_COUNT * 8), read_long(head + TERM_COUNT * 8)
    along, code = read_long(head + LEFT_TERMS * 8), read_long(head + PACK_ROWS_CODE * 8)
    panels = (height + ROWS - 1) // ROWS
    for unit in range(begin, end):
        i, p = unit // panels, unit % panels
        of = base + read_long(batch + i * BATCH_BYTES)
        count, into = min(ROWS, height - p * ROWS), packed + unit * deep * ROWS * 4
        call_at(code, (of, size, rows + p * ROWS * 8, count, along, deep, into))


PACK_ALL_ROWS = code_address(pack_all_rows)


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def pack_all_columns(head, begin, end, room):
    """Pack some panels of columns of the second operand. The panels of all products are numbered in
    turn.
    """
    base, size, packed = (
        read_long(head + RIGHT * 8),
        read_long(head + RIGHT_BYTES * 8),
        read_long(head + PACKED_COLUMNS * 8),
    )
    batch, columns = read_long(head + BATCH * 8), read_long(head + COLUMN_OFFSETS * 8)
    runs, spans = read_long(head + RUNS_OF_COLUMNS * 8), read_long(head + SPANS * 8)
    along, deep = read_long(head + RIGHT_TERMS * 8), read_long(head + TERM_COUNT * 8)
    across, code = read_long(head + PANEL_COUNT * 8), read_long(head + PACK_COLUMNS_CODE * 8)
    for unit in range(begin, end):
        i, q = unit // across, unit % across
        first = runs + read_long(spans + q * 8) * COLUMN_RUN_BYTES
        last = runs + read_long(spans + q * 8 + 8) * COLUMN_RUN_BYTES
        of, into = base + read_long(batch + i * BATCH_BYTES + 8), packed + unit * deep * COLUMNS * 4
        call_at(code, (of, size, first, last, columns, along, deep, into))


PACK_ALL_COLUMNS = code_address(pack_all_columns)


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def products(head, begin, end, room):
    """Multiply rows of one operand by columns of another: some units of a batch of products.

    Args:
        head: the address of a table as described in `tables`. A unit is a panel of columns of a
            block of rows of a group of products; the units of a block come one after another.
        room: for a packed panel of columns, a tile of results for each panel of rows and a spare
            one, and packed rows of a block.
    """
    a, b, out = (
        read_long(head + LEFT * 8),
        read_long(head + RIGHT * 8),
        read_long(head + RESULT * 8),
    )
    left_bytes, right_bytes, bytes_ = (
        read_long(head + LEFT_BYTES * 8),
        read_long(head + RIGHT_BYTES * 8),
        read_long(head + RESULT_BYTES * 8),
    )
    count, terms, known, rounding = (
        read_long(head + COLUMN_COUNT * 8),
        read_long(head + CHAIN_TERMS * 8),
        read_long(head + KNOWN * 8),
        read_long(head + ROUNDING * 8),
    )
    batch, groups = read_long(head + BATCH * 8), read_long(head + GROUPS * 8)
    height, deep = read_long(head + ROW_COUNT * 8), read_long(head + TERM_COUNT * 8)
    across, blocks = read_long(head + PANEL_COUNT * 8), read_long(head + BLOCK_COUNT * 8)
    per_block = read_long(head + BLOCK_PANELS * 8)
    spans, result_spans = read_long(head + SPANS * 8), read_long(head + RESULT_SPANS * 8)
    panels = (height + ROWS - 1) // ROWS
    length, size = deep * ROWS * 4, deep * COLUMNS * 4
    # Operands that stay packed are stored product by product.
    are_kept = known & ROWS_KEPT
    kept, tiles = room, room + size
    spare = tiles + per_block * TILE_BYTES
    packed = read_long(head + PACKED_ROWS * 8) if are_kept else spare + TILE_BYTES
    if known & COLUMNS_KEPT:
        kept = read_long(head + PACKED_COLUMNS * 8)
    elif begin < end and count - begin % across * COLUMNS < COLUMNS:
        # Missing columns are multiplied too. Clear them: bits left by other calls may be slow
        # subnormals.
        for i in range(0, size, LANES * 4):
            clear_vector(kept + i)
    before = -1
    for unit in range(begin, end):
        q, block = unit % across, unit // across
        g, first_panel = block // blocks, block % blocks * per_block
        last_panel = min(panels, first_panel + per_block)
        first_product, end_product = read_long(groups + g * 16), read_long(groups + g * 16 + 8)
        # Continue with the next product of the group.
        pitch = panels * length if are_kept else per_block * length
        mine = packed + first_product * pitch + first_panel * length if are_kept else packed
        if not are_kept and block != before:
            where = read_long(head + ROW_OFFSETS * 8) + first_panel * ROWS * 8
            along = read_long(head + LEFT_TERMS * 8)
            code, rest = read_long(head + PACK_ROWS_CODE * 8), height - first_panel * ROWS
            rest = min(rest, per_block * ROWS)
            for i in range(first_product, end_product):
                base, into = (
                    a + read_long(batch + i * BATCH_BYTES),
                    mine + (i - first_product) * pitch,
                )
                call_at(code, (base, left_bytes, where, rest, along, deep, into))
        before = block
        width = min(COLUMNS, count - q * COLUMNS)
        for i in range(first_product, end_product):
            panel = kept + (i * across + q) * size if known & COLUMNS_KEPT else kept
            if not known & COLUMNS_KEPT:
                runs = read_long(head + RUNS_OF_COLUMNS * 8)
                first = runs + read_long(spans + q * 8) * COLUMN_RUN_BYTES
                last = runs + read_long(spans + q * 8 + 8) * COLUMN_RUN_BYTES
                base = b + read_long(batch + i * BATCH_BYTES + 8)
                where, along = (
                    read_long(head + COLUMN_OFFSETS * 8),
                    read_long(head + RIGHT_TERMS * 8),
                )
                code = read_long(head + PACK_COLUMNS_CODE * 8)
                call_at(code, (base, right_bytes, first, last, where, along, deep, panel))
            left, code = mine + (i - first_product) * pitch, read_long(head + MULTIPLY_CODE * 8)
            for p in range(first_panel, last_panel):
                tile, row = (
                    tiles + (p - first_panel) * TILE_BYTES,
                    left + (p - first_panel) * length,
                )
                rest, adds = height - p * ROWS, i - first_product
                given = row, panel, deep, rest, width, tile, spare, adds, terms, rounding
                call_at(code, given)
        runs = read_long(head + RESULT_RUNS * 8)
        first = runs + read_long(result_spans + q * 8) * COLUMN_RUN_BYTES
        last = runs + read_long(result_spans + q * 8 + 8) * COLUMN_RUN_BYTES
        base = out + read_long(batch + first_product * BATCH_BYTES + 16)
        where, along = read_long(head + RESULT_ROWS * 8), read_long(head + RESULT_COLUMNS * 8)
        code = read_long(head + STORE_TILE_CODE * 8)
        for p in range(first_panel, last_panel):
            tile, rest = tiles + (p - first_panel) * TILE_BYTES, min(ROWS, height - p * ROWS)
            tail = _tail(rest, width)
            for j in range(tail):
                found, at = tile + TAIL_BEGIN + j * ROW_LANES * 4, tile + (width - tail + j) * 4
                for r in range(rest):
                    write_float(at + r * COLUMNS * 4, read_float(found + r * 4))
            call_at(code, (tile, base, bytes_, where + p * ROWS * 8, rest, first, last, along))


PRODUCTS = code_address(products)
