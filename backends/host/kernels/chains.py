# pyright: basic
"""The kernels that compute chains of elementwise steps, and merge rows. Needs numba.

A chain takes one vector from each of several rows, or several vectors of one row, and does all of
its steps on them before it continues. A step merges its operand into a total, from one or more
places in turn, or stores the total. A step is a row of int64, whose columns `tables` names.

A column of an address table names the memory that a step reads or writes: it has the address of
each vector's row. Places are offsets from these addresses in bytes, and so are the elements of a
row.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils

from .hardware import OPTIONS, compiled
from .tables import (
    ACROSS_CODE,
    ADD,
    ADDRESS_LINE_BYTES,
    ADDRESSES_BYTES,
    ALL_PLACES,
    ALONG_CODE,
    APPLY,
    CHAIN_VECTORS,
    COLUMN,
    CONSTANT,
    COUNT,
    CUTS_COLUMNS,
    DIV,
    EVERY_SECOND_FLOAT,
    FACTOR_COLUMN,
    FACTOR_KIND,
    FACTOR_PLACES,
    FACTOR_STRIDE,
    FLOAT,
    FLOATS,
    FUNCTION,
    FUNCTION_CODE,
    FUNCTION_ROOMS,
    HALF,
    HALVES,
    KIND,
    LANES,
    MAX,
    MEMORIES,
    MERGE_CODE,
    MERGE_COLUMNS,
    MERGE_SPAN,
    MERGE_STEP_COUNT,
    MERGE_STEPS,
    MERGE_TABLE_BYTES,
    MERGE_TABLES,
    MIN,
    MUL,
    NO_OPERAND,
    OP,
    PLACES,
    RAMPS,
    RANK,
    REVERSED,
    ROUND,
    SAVE,
    SAVED,
    SAVED_PLACES,
    SIZES,
    SPAN,
    STARTS,
    STEP_COUNT,
    STEP_FIELDS,
    STEPS,
    STEPS_CODE,
    STORE,
    STRIDE,
    STRIDED_FLOATS,
    STRIDED_HALVES,
    STRIDES,
    SUB,
    TAKE,
    TOTAL,
)
from .vectors import (
    F16,
    F32,
    I32,
    I64,
    FirstLanes,
    call_at,
    code_address,
    intrinsic,
    load,
    load_long,
    plus,
    put,
    read8,
    read_long,
    splat,
    write8,
)


def _max(builder, a, b):
    """np.maximum: a NaN wins, and the second of two equal values."""
    first = builder.or_(builder.fcmp_ordered(">", a, b), builder.fcmp_unordered("uno", a, a))
    return builder.select(first, a, b)


def _min(builder, a, b):
    """np.minimum: a NaN wins, and the second of two equal values."""
    first = builder.or_(builder.fcmp_ordered("<", a, b), builder.fcmp_unordered("uno", a, a))
    return builder.select(first, a, b)


def _round(builder, a, b):
    """np.rint: half to even. The operand of the step is not used."""
    name = f"llvm.rint.v{a.type.count}f32"
    rint = cgutils.get_or_insert_function(builder.module, ir.FunctionType(a.type, [a.type]), name)
    return builder.call(rint, [a])


OPERATIONS = {
    TAKE: lambda builder, a, b: b,
    ADD: lambda builder, a, b: builder.fadd(a, b),
    SUB: lambda builder, a, b: builder.fsub(a, b),
    MUL: lambda builder, a, b: builder.fmul(a, b),
    DIV: lambda builder, a, b: builder.fdiv(a, b),
    MAX: _max,
    MIN: _min,
    ROUND: _round,
}
"""The value that each step computes from the total and its operand."""

DIRECT = [
    *((op, kind, NO_OPERAND) for op in (TAKE, ADD) for kind in (FLOATS, FLOAT)),
    *((op, FLOATS, FLOAT) for op in (TAKE, ADD)),
    *((op, EVERY_SECOND_FLOAT, FLOAT) for op in (TAKE, ADD)),
    *((op, EVERY_SECOND_FLOAT, NO_OPERAND) for op in (TAKE, MAX)),
    *((MAX, kind, NO_OPERAND) for kind in (FLOATS, CONSTANT)),
    (MUL, FLOAT, NO_OPERAND),
]
"""Steps, as (operation, kind of operand, kind of factor), that merge an operand as it is loaded.

Most steps of networks are of these kinds. Other steps load their operand first, then multiply it,
then merge it.
"""


def _switch(builder, number, cases, otherwise=lambda: None):
    """Branch on a number.

    Args:
        cases: by number, a function that builds the branch's code.
    """
    end, rest = (builder.append_basic_block(name) for name in ("switched", "otherwise"))
    switch = builder.switch(number, rest)
    for key, build in cases.items():
        block = builder.append_basic_block(f"case_{key}")
        switch.add_case(ir.Constant(I64, key), block)
        builder.position_at_end(block)
        build()
        builder.branch(end)
    builder.position_at_end(rest)
    otherwise()
    builder.branch(end)
    builder.position_at_end(end)


class _Operand(NamedTuple):
    """An operand of a step, or its factor, as described by the step's columns."""

    kind: Any
    places: Any
    stride: Any
    column: Any


class _Steps:
    """Builds the steps of a chain on CHAIN_VECTORS vectors.

    Attributes:
        n: the number of used lanes of each vector, or None for all.
        first: the number of the element in its row at which each vector begins.
    """

    def __init__(self, context, builder, n, addresses, first):
        self.context, self.builder = context, builder
        self.addresses, self.first = addresses, first
        self.lanes = FirstLanes(builder, n)
        self.vector = ir.VectorType(F32, LANES)
        self.totals, self.loaded = (
            [cgutils.alloca_once(builder, self.vector) for _ in range(CHAIN_VECTORS)]
            for _ in range(2)
        )
        # An array whose address is taken stays out of registers, which is fine because it is rarely
        # used. Behind the places of saved totals are those of functions.
        places = ir.ArrayType(self.vector, ALL_PLACES * CHAIN_VECTORS)
        saved = cgutils.alloca_once(builder, places)
        self.saved = builder.ptrtoint(saved, I64)
        if n is not None:
            # The first elements of pairs end one element earlier.
            span = builder.sub(builder.add(self.lanes.n, self.lanes.n), ir.Constant(I64, 1))
            self.pairs = (
                FirstLanes(builder, span),
                FirstLanes(builder, builder.sub(span, ir.Constant(I64, LANES - 1))),
            )
        else:
            self.pairs = (self.lanes, self.lanes)

    def begin(self):
        """Make the totals undefined, so that no register must keep old ones."""
        for each in (*self.totals, *self.loaded):
            self.builder.store(ir.Constant(self.vector, ir.Undefined), each)

    def step(self, step):
        """Build one step.

        Args:
            step: the address of its row.
        """
        builder = self.builder

        def field(which):
            return load_long(builder, builder.add(step, ir.Constant(I64, 8 * which)))

        op, self.function = field(OP), (field(FUNCTION), field(FUNCTION_CODE))
        operand, factor = (
            _Operand(*(field(i) for i in fields))
            for fields in (
                (KIND, PLACES, STRIDE, COLUMN),
                (FACTOR_KIND, FACTOR_PLACES, FACTOR_STRIDE, FACTOR_COLUMN),
            )
        )
        kinds = builder.or_(operand.kind, builder.shl(factor.kind, ir.Constant(I64, 4)))
        code = builder.or_(op, builder.shl(kinds, ir.Constant(I64, 5)))
        with cgutils.for_range(builder, field(COUNT)) as counter:
            direct = {
                each[0] | (each[1] | each[2] << 4) << 5: partial(
                    self._merge_directly, *each, operand, factor, counter.index
                )
                for each in DIRECT
            }
            in_turn = partial(self._merge_in_turn, op, operand, factor, counter.index)
            _switch(builder, code, direct, in_turn)
        store = partial(_switch, builder, operand.kind, self._stores(operand))
        _switch(builder, op, {SAVE: partial(self._save, operand), STORE: store})

    def _merge_directly(self, op, kind, factor_kind, operand, factor, index):
        builder = self.builder
        if kind == CONSTANT:
            value = self._constant(operand)
        else:
            at, load_one = self._places(operand, index), self._loads(operand)[kind]
        if factor_kind != NO_OPERAND:
            factor_at, load_factor = self._places(factor, index), self._loads(factor)[factor_kind]
        for row, total in enumerate(self.totals):
            if kind != CONSTANT:
                value = load_one(at(row))
            if factor_kind != NO_OPERAND:
                value = builder.fmul(value, load_factor(factor_at(row)))
            builder.store(OPERATIONS[op](builder, builder.load(total), value), total)

    def _merge_in_turn(self, op, operand, factor, index):
        builder = self.builder

        def reader(side, load_one, is_factor):
            def read():
                at = self._places(side, index)
                for row, loaded in enumerate(self.loaded):
                    value = load_one(at(row))
                    if is_factor:
                        value = builder.fmul(builder.load(loaded), value)
                    builder.store(value, loaded)

            return read

        def finder(value):
            def find():
                for row, loaded in enumerate(self.loaded):
                    builder.store(value(row), loaded)

            return find

        loads = self._loads(operand).items()
        _switch(
            builder,
            operand.kind,
            {
                **{kind: reader(operand, load_one, False) for kind, load_one in loads},
                CONSTANT: finder(lambda row: self._constant(operand)),
                TOTAL: finder(lambda row: builder.load(self.totals[row])),
                SAVED: finder(lambda row: load(builder, self.vector, self._saved(operand, row))),
            },
        )
        loads = self._loads(factor).items()
        cases = {kind: reader(factor, load_one, True) for kind, load_one in loads}
        _switch(builder, factor.kind, cases)
        _switch(builder, op, self._merges())

    def _places(self, operand, index):
        """A function that maps a vector's number to its address, at one of a step's places."""
        builder = self.builder
        begin = plus(builder, self.addresses, operand.column, ADDRESS_LINE_BYTES)
        place = load_long(builder, plus(builder, operand.places, index, 8))
        offset = builder.add(place, builder.mul(self.first, operand.stride))

        def at(row):
            start = load_long(builder, builder.add(begin, ir.Constant(I64, 8 * row)))
            return builder.add(start, offset)

        return at

    def _loads(self, operand):
        """By kind of operand in memory, a function that loads a vector."""
        builder, lanes = self.builder, self.lanes

        def widened(found):
            vector = isinstance(found.type, ir.VectorType)
            return builder.fpext(found, self.vector if vector else F32)

        return {
            FLOATS: lambda at: lanes.load(F32, at),
            HALVES: lambda at: widened(lanes.load(F16, at)),
            FLOAT: lambda at: splat(builder, load(builder, F32, at)),
            HALF: lambda at: splat(builder, widened(load(builder, F16, at))),
            EVERY_SECOND_FLOAT: self._every_second,
            STRIDED_FLOATS: lambda at: lanes.gather(F32, at, operand.stride),
            STRIDED_HALVES: lambda at: widened(lanes.gather(F16, at, operand.stride)),
        }

    def _every_second(self, at):
        """Every second float. The floats in between are read too, but none after the last."""
        low = self.pairs[0].load(F32, at)
        high = self.pairs[1].load(F32, plus(self.builder, at, ir.Constant(I64, LANES - 1), 4))
        chosen = [2 * i if 2 * i < LANES else 2 * i + 1 for i in range(LANES)]
        mask = ir.Constant(ir.VectorType(I32, LANES), chosen)
        return self.builder.shuffle_vector(low, high, mask)

    def _constant(self, operand):
        value = self.builder.bitcast(self.builder.trunc(operand.column, I32), F32)
        return splat(self.builder, value)

    def _merges(self):
        """By operation, a function that merges the loaded operands into the totals."""
        builder = self.builder

        def merger(operation, is_reversed):
            def merge():
                for total, loaded in zip(self.totals, self.loaded, strict=True):
                    both = builder.load(total), builder.load(loaded)
                    both = both[::-1] if is_reversed else both
                    builder.store(operation(builder, *both), total)

            return merge

        return {
            **{
                op + reverse: merger(operation, reverse)
                for op, operation in OPERATIONS.items()
                for reverse in ((0, REVERSED) if op not in (TAKE, ROUND) else (0,))
            },
            APPLY: partial(self._apply, self.totals, self.loaded),
            APPLY + REVERSED: partial(self._apply, self.loaded, self.totals),
        }

    def _apply(self, first, second):
        """Apply a function to the totals and the loaded operands, in this order or the reverse."""
        builder = self.builder
        size = 4 * LANES * CHAIN_VECTORS
        room = [
            builder.add(self.saved, ir.Constant(I64, (SAVED_PLACES + i) * size))
            for i in range(FUNCTION_ROOMS)
        ]
        for begin, vectors in zip(room, (first, second), strict=True):
            for row, vector in enumerate(vectors):
                put(
                    builder,
                    builder.load(vector),
                    builder.add(begin, ir.Constant(I64, 4 * LANES * row)),
                )
        number, code = self.function
        kinds = [types.int64] * 3
        call_conv = self.context.call_conv
        kind = call_conv.get_function_type(types.void, kinds)
        compiled_function = builder.inttoptr(code, kind.as_pointer())
        call_conv.call_function(builder, compiled_function, types.void, kinds, [number, *room])
        for row, total in enumerate(self.totals):
            at = builder.add(room[0], ir.Constant(I64, 4 * LANES * row))
            builder.store(load(builder, self.vector, at), total)

    def _stores(self, operand):
        """By kind of memory, a function that stores the totals."""
        builder, lanes = self.builder, self.lanes

        def store(is_narrow, is_strided):
            def put_all():
                at = self._places(operand, ir.Constant(I64, 0))
                for row, total in enumerate(self.totals):
                    value = builder.load(total)
                    if is_narrow:
                        value = builder.fptrunc(value, ir.VectorType(F16, LANES))
                    if is_strided:
                        lanes.scatter(at(row), operand.stride, value)
                    else:
                        lanes.store(at(row), value)

            return put_all

        # A single element is a vector of one lane.
        return {
            **dict.fromkeys((FLOATS, FLOAT), store(False, False)),
            **dict.fromkeys((HALVES, HALF), store(True, False)),
            **dict.fromkeys((EVERY_SECOND_FLOAT, STRIDED_FLOATS), store(False, True)),
            STRIDED_HALVES: store(True, True),
        }

    def _saved(self, operand, row):
        """The address where the total of a vector is saved."""
        begin = plus(self.builder, self.saved, operand.column, 4 * LANES * CHAIN_VECTORS)
        return self.builder.add(begin, ir.Constant(I64, 4 * LANES * row))

    def _save(self, operand):
        for row, total in enumerate(self.totals):
            put(self.builder, self.builder.load(total), self._saved(operand, row))


def _steps_of(is_whole):
    """The intrinsic that runs all steps on whole vectors, or on vectors of fewer elements."""

    @intrinsic
    def do_steps(context, steps, count, addresses, first, n):
        def generate(context, builder, sig, arguments):
            del sig
            steps, count, addresses, first, n = arguments
            chain = _Steps(context, builder, None if is_whole else n, addresses, first)
            chain.begin()
            with cgutils.for_range(builder, count) as counter:
                chain.step(plus(builder, steps, counter.index, 8 * STEP_FIELDS))
            return context.get_dummy_value()

        return types.void(*[types.int64] * 5), generate

    return do_steps


do_whole, do_part = (_steps_of(is_whole) for is_whole in (True, False))


@compiled("void(int64, int64, int64, int64, int64)", **OPTIONS)
def chain_steps(steps, count, addresses, first, last):
    """Run all steps on the elements from first to last of the rows in an address table."""
    whole = last - (last - first) % LANES
    for i in range(first, whole, LANES):
        do_whole(steps, count, addresses, i, LANES)
    if last > whole:
        do_part(steps, count, addresses, whole, last - whole)


CHAIN_STEPS = code_address(chain_steps)


@intrinsic
def put_longs(context, out, begin, steps):
    """out[i] = begin + steps[i], for i < CHAIN_VECTORS."""
    del context

    def generate(context, builder, sig, arguments):
        del sig
        out, begin, steps = arguments
        found = load(builder, ir.VectorType(I64, CHAIN_VECTORS), steps)
        put(builder, builder.add(splat(builder, begin, CHAIN_VECTORS), found), out)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@compiled("void(int64, int64, int64)", **OPTIONS)
def _repeat(table, full, width):
    """Set the addresses of the vectors after the first `full` ones to that of the last of these."""
    for s in range(width):
        line = table + s * ADDRESS_LINE_BYTES
        for i in range(full, CHAIN_VECTORS):
            write8(line + i * 8, read8(line + (full - 1) * 8))


@compiled("void(int64, int64, int64)", **OPTIONS)
def _begin(head, row, room):
    """Store the address of each memory at a row, and the row's indices, in the room.

    The room holds a line of addresses per memory, then the current address of each memory, then
    indices.
    """
    rank, width = read_long(head + RANK * 8), read_long(head + MEMORIES * 8)
    starts, sizes = read_long(head + STARTS * 8), read_long(head + SIZES * 8)
    strides, here = read_long(head + STRIDES * 8), room + width * ADDRESS_LINE_BYTES
    for s in range(width):
        write8(here + s * 8, read_long(starts + s * 8))
    write8(here + (width + rank - 1) * 8, 0)
    for i in range(2, rank + 1):
        d = rank - i
        size = read_long(sizes + d * 8)
        index = row % size
        row //= size
        write8(here + (width + d) * 8, index)
        for s in range(width):
            step = index * read_long(strides + (d * width + s) * 8)
            write8(here + s * 8, read_long(here + s * 8) + step)


@compiled("void(int64, int64, int64)", **OPTIONS)
def _advance(head, take, room):
    """Advance by some rows, at most to the end of the second-to-last dimension."""
    sizes, strides = read_long(head + SIZES * 8), read_long(head + STRIDES * 8)
    width = read_long(head + MEMORIES * 8)
    d = read_long(head + RANK * 8) - 2
    here = room + width * ADDRESS_LINE_BYTES
    indices = here + width * 8
    for s in range(width):
        where = here + s * 8
        write8(where, read_long(where) + take * read_long(strides + (d * width + s) * 8))
    write8(indices + d * 8, read_long(indices + d * 8) + take)
    while d > 0 and read_long(indices + d * 8) == read_long(sizes + d * 8):
        write8(indices + d * 8, 0)
        size = read_long(sizes + d * 8)
        d -= 1
        write8(indices + d * 8, read_long(indices + d * 8) + 1)
        for s in range(width):
            where = here + s * 8
            back = size * read_long(strides + ((d + 1) * width + s) * 8)
            write8(where, read_long(where) + read_long(strides + (d * width + s) * 8) - back)


@compiled("void(int64, int64, int64, int64, int64, int64)", **OPTIONS)
def along_rows(head, row, rows, first, last, room):
    """Run the steps on some elements of some rows, row by row, with consecutive vectors side by
    side.

    Args:
        first: a multiple of LANES.
        last: a multiple too, or the end of the rows.
    """
    rank, width = read_long(head + RANK * 8), read_long(head + MEMORIES * 8)
    steps, count = read_long(head + STEPS * 8), read_long(head + STEP_COUNT * 8)
    code = read_long(head + STEPS_CODE * 8)
    strides = read_long(head + STRIDES * 8) + (rank - 1) * width * 8
    ramp = read_long(head + RAMPS * 8) + ADDRESSES_BYTES
    here = room + width * ADDRESS_LINE_BYTES
    whole = last // LANES
    _begin(head, row, room)
    for _ in range(rows):
        for v in range(first // LANES, whole, CHAIN_VECTORS):
            for s in range(width):
                line = s * ADDRESS_LINE_BYTES
                begin = read_long(here + s * 8) + v * LANES * read_long(strides + s * 8)
                put_longs(room + line, begin, ramp + line)
            if whole - v < CHAIN_VECTORS:
                _repeat(room, whole - v, width)
            call_at(code, (steps, count, room, 0, LANES))
        if last > whole * LANES:
            for s in range(width):
                write8(room + s * ADDRESS_LINE_BYTES, read_long(here + s * 8))
            _repeat(room, 1, width)
            call_at(code, (steps, count, room, whole * LANES, last))
        _advance(head, 1, room)


@compiled("void(int64, int64, int64, int64, int64, int64)", **OPTIONS)
def across_rows(head, row, rows, first, last, room):
    """Run the steps on some elements of some rows, with CHAIN_VECTORS rows side by side."""
    rank, width = read_long(head + RANK * 8), read_long(head + MEMORIES * 8)
    steps, count = read_long(head + STEPS * 8), read_long(head + STEP_COUNT * 8)
    code = read_long(head + STEPS_CODE * 8)
    size = read_long(read_long(head + SIZES * 8) + (rank - 2) * 8)
    ramps = read_long(head + RAMPS * 8)
    here = room + width * ADDRESS_LINE_BYTES
    index = here + (width + rank - 2) * 8
    done, full = 0, 0
    _begin(head, row, room)
    while done < rows:
        take = min(CHAIN_VECTORS - full, size - read_long(index), rows - done)
        for s in range(width):
            line = s * ADDRESS_LINE_BYTES
            # This may write beyond the line's first half, but not beyond its second half.
            put_longs(room + line + full * 8, read_long(here + s * 8), ramps + line)
        full += take
        done += take
        if full == CHAIN_VECTORS or done == rows:
            if full < CHAIN_VECTORS:
                _repeat(room, full, width)
            call_at(code, (steps, count, room, first, last))
            full = 0
        _advance(head, take, room)


CODES = CHAIN_STEPS, code_address(along_rows), code_address(across_rows)
"""The addresses of the code of the kernels that `chain` calls."""


@compiled("void(int64, int64, int64, int64, int64, int64)", **OPTIONS)
def _do_rows(head, row, rows, begin, end, room):
    """Run the steps on some elements of some rows, in the order with fewer iterations."""
    span = read_long(head + SPAN * 8)
    whole = (end - begin) // LANES
    part = 1 if end - begin > whole * LANES else 0
    groups = (rows + CHAIN_VECTORS - 1) // CHAIN_VECTORS * (whole + part)
    if rows * ((whole + CHAIN_VECTORS - 1) // CHAIN_VECTORS + part) < groups:
        call_at(read_long(head + ALONG_CODE * 8), (head, row, rows, begin, end, room))
        return
    code = read_long(head + ACROSS_CODE * 8)
    for first in range(begin, end, span):
        call_at(code, (head, row, rows, first, min(first + span, end), room))


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def chain(head, begin, end, room):
    """Run all steps on some rows of an array, or on some spans of CHAIN_VECTORS vectors of every
    row.

    Args:
        head: the address of a chain's table.
    """
    rank, sizes = read_long(head + RANK * 8), read_long(head + SIZES * 8)
    columns, rows = read_long(sizes + (rank - 1) * 8), 1
    if read_long(head + CUTS_COLUMNS * 8):
        for d in range(rank - 1):
            rows *= read_long(sizes + d * 8)
        span = LANES * CHAIN_VECTORS
        _do_rows(head, 0, rows, begin * span, min(columns, end * span), room)
        return
    _do_rows(head, begin, end - begin, 0, columns, room)


CHAIN = code_address(chain)


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def merge(head, begin, end, room):
    """Run all steps on rows at arbitrary addresses.

    The work is divided into groups of CHAIN_VECTORS rows, each in several spans of columns.

    Args:
        head: the address of a table as described in `tables`.
    """
    columns, span = read_long(head + MERGE_COLUMNS * 8), read_long(head + MERGE_SPAN * 8)
    steps, count = read_long(head + MERGE_STEPS * 8), read_long(head + MERGE_STEP_COUNT * 8)
    tables, size = read_long(head + MERGE_TABLES * 8), read_long(head + MERGE_TABLE_BYTES * 8)
    code, spans = read_long(head + MERGE_CODE * 8), (columns + span - 1) // span
    for unit in range(begin, end):
        first = unit % spans * span
        last = min(columns, first + span)
        call_at(code, (steps, count, tables + unit // spans * size, first, last))


MERGE = code_address(merge)
