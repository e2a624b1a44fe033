# pyright: basic
"""Compiled kernels: copies, chains of elementwise steps, and sums of products. Needs numba.

What they compute is defined by the NumPy calls beside them, to the bit: terms are added in the
same order, and products and sums are fused in products of matrices only (`ordered`). All take
addresses and tables of int64, which whoever binds a call has made once; nothing here knows a layout
or a tile.

Loops are written in vectors of 16 elements, of which the last one has fewer. With AVX-512 that is a
mask. Elsewhere masked stores and gathers are slow or not there: what is stored goes in halves, and
what lies apart is taken one by one. Compiled code is kept beside this file, or in the user's cache
where that cannot be written (`keeping`). All of them stand in one file, since numba compiles anew
only what is in a file that has changed; so do the numbers that tables are written in, which have
the same names where they are written.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

from .kernel_cache import compiled

intrinsic = cast(Any, _intrinsic)

F16, F32 = ir.HalfType(), ir.FloatType()
I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))
LANES = 16


def _has_wide_vectors():
    """Whether what is compiled may use vectors of 512 bits: as Numba is told, else as the host."""
    told = cast(Any, config)
    if told.CPU_FEATURES is None and told.CPU_NAME in (None, "host"):
        return bool(binding.get_host_cpu_features().get("avx512f"))
    return "+avx512f" in (told.CPU_FEATURES or "").split(",")


WIDE = _has_wide_vectors()

ROWS, VECTORS = (12, 2) if WIDE else (6, 1)
"""The block of results that stays in registers: rows, and vectors of a row."""

COLUMNS = VECTORS * LANES

TERMS = 128

ABREAST = 8
"""Rows of which a chain takes a vector each at a time: what is decided is decided for all."""

KEPT_VECTORS = np.zeros((ABREAST, LANES), np.float32)

# The lock is kept: what a chain keeps is shared by all calls.
OPTIONS = {"error_model": "numpy", "boundscheck": False}


# Loads and stores at addresses


def _masked(builder, kind, address, mask, value):
    """A masked load or store of a vector at an address. value: what is stored, or type of it."""
    vector = value if kind == "load" else value.type
    element, masks = vector.element, ir.VectorType(I1, LANES)
    name = {F32: "f32", F16: "f16", I16: "i16", I32: "i32"}[element]
    where = ir.PointerType(vector)
    result, first = (vector, []) if kind == "load" else (ir.VoidType(), [vector])
    last = [vector] if kind == "load" else []
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(result, [*first, where, I32, masks, *last]),
        f"llvm.masked.{kind}.v{LANES}{name}.p0",
    )
    pointer, align = builder.inttoptr(address, where), ir.Constant(I32, _bytes(element))
    if kind == "load":
        return builder.call(function, [pointer, align, mask, ir.Constant(vector, None)])
    return builder.call(function, [value, pointer, align, mask])


def _bytes(kind):
    if isinstance(kind, ir.VectorType):
        return kind.count * _bytes(kind.element)
    return {F16: 2, F32: 4}[kind] if kind in (F16, F32) else kind.width // 8


class _First:
    """The first n lanes of a vector, an i64; all of them, if n is None."""

    def __init__(self, builder, n):
        self.builder = builder
        self.is_whole = n is None
        most, none = ir.Constant(I64, LANES), ir.Constant(I64, 0)
        if n is None:
            self.n = most
            return
        lanes = ir.Constant(ir.VectorType(I32, LANES), list(range(LANES)))
        n = builder.select(builder.icmp_signed("<", n, most), n, most)
        self.n = builder.select(builder.icmp_signed(">", n, none), n, none)
        count = builder.trunc(self.n, I32)
        self.mask = builder.icmp_signed("<", lanes, _splat(builder, count))

    def load(self, element, address):
        """What lies at an address; lanes beyond are anything."""
        vector = ir.VectorType(element, LANES)
        if self.is_whole:
            return _load(self.builder, vector, address)
        if WIDE or _bytes(element) == 4:
            return _masked(self.builder, "load", address, self.mask, vector)
        return self._load_in_parts(vector, address)

    def _load_in_parts(self, vector, address):
        """From its end on: each part is put before what there is."""
        builder, element = self.builder, vector.element
        found = cgutils.alloca_once(builder, vector)
        with builder.if_else(self._has(LANES)) as (whole, parts):
            with whole:
                builder.store(_load(builder, vector, address), found)
            with parts:
                for width in (1, 2, 4, 8):
                    with builder.if_then(self._has(width)):
                        # What is left once this part and all narrower ones are gone.
                        before = builder.and_(self.n, ir.Constant(I64, -2 * width))
                        part = _load(
                            builder,
                            ir.VectorType(element, width),
                            _plus(builder, address, before, _bytes(element)),
                        )
                        part = _some_lanes(builder, part, range(LANES), width)
                        rest = builder.load(found)
                        lanes = [i if i < width else LANES + i - width for i in range(LANES)]
                        mask = ir.Constant(ir.VectorType(I32, LANES), lanes)
                        builder.store(builder.shuffle_vector(part, rest, mask), found)
        return builder.load(found)

    def store(self, address, value):
        """Put a vector at an address; what lies beyond the lanes stays."""
        builder, element = self.builder, value.type.element
        if self.is_whole:
            _put(builder, value, address)
            return
        if WIDE:
            _masked(builder, "store", address, self.mask, value)
            return
        with builder.if_else(self._has(LANES)) as (whole, parts):
            with whole:
                _put(builder, value, address)
            with parts:
                for width in (8, 4, 2, 1):
                    low = _some_lanes(builder, value, range(width))
                    high = _some_lanes(builder, value, range(width, 2 * width))
                    here = self._has(width)
                    with builder.if_then(here):
                        _put(builder, low, address)
                    value = builder.select(here, high, low)
                    length = builder.and_(self.n, ir.Constant(I64, width))
                    address = _plus(builder, address, length, _bytes(element))

    def gather(self, element, address, step):
        """Elements that lie so many bytes apart, an i64; lanes beyond are anything.

        They are taken one by one, which is no slower than a gather, and twice as fast on some.
        """
        builder, vector = self.builder, ir.VectorType(element, LANES)
        if self.is_whole:
            value = ir.Constant(vector, ir.Undefined)
            for lane in range(LANES):
                one = _load(builder, element, address)
                value = builder.insert_element(value, one, ir.Constant(I32, lane))
                address = builder.add(address, step)
            return value
        room = cgutils.alloca_once(builder, vector)
        begin = builder.ptrtoint(room, I64)
        with cgutils.for_range(builder, self.n) as lane:
            one = _load(builder, element, builder.add(address, builder.mul(lane.index, step)))
            _put(builder, one, _plus(builder, begin, lane.index, _bytes(element)))
        return builder.load(room)

    def scatter(self, address, step, value):
        """Store elements so many bytes apart, an i64."""
        builder = self.builder
        if self.is_whole:
            for lane in range(LANES):
                _put(builder, builder.extract_element(value, ir.Constant(I32, lane)), address)
                address = builder.add(address, step)
            return
        with cgutils.for_range(builder, self.n) as lane:
            found = builder.extract_element(value, builder.trunc(lane.index, I32))
            _put(builder, found, builder.add(address, builder.mul(lane.index, step)))

    def _has(self, width):
        """Whether the lanes are cut into a part of so many."""
        part = self.builder.and_(self.n, ir.Constant(I64, width))
        return self.builder.icmp_signed("!=", part, ir.Constant(I64, 0))


QUARTER = 4
"""Lanes that are filled at a time where each is filled alone."""


def _plus(builder, address, count, size):
    """An address so many elements on."""
    return builder.add(address, builder.mul(count, ir.Constant(I64, size)))


def _load(builder, kind, address):
    """What is at an address, a vector or not, as it is aligned for its elements."""
    return builder.load(builder.inttoptr(address, ir.PointerType(kind)), align=_alignment(kind))


def _load_long(builder, address):
    return builder.load(builder.inttoptr(address, ir.PointerType(I64)), align=8)


def _put(builder, value, address):
    pointer = builder.inttoptr(address, ir.PointerType(value.type))
    builder.store(value, pointer, align=_alignment(value.type))


def _alignment(kind):
    """That of elements; what is wider than a float may be several of these."""
    return min(4, _bytes(kind.element if isinstance(kind, ir.VectorType) else kind))


def _some_lanes(builder, value, lanes, width=LANES):
    """Lanes of a vector; those from width on are anything."""
    undefined = ir.Constant(value.type, ir.Undefined)
    chosen = [i if i < width else 0 for i in lanes]
    mask = ir.Constant(ir.VectorType(I32, len(chosen)), chosen)
    return builder.shuffle_vector(value, undefined, mask)


def _splat(builder, value, width=LANES):
    vector = ir.VectorType(value.type, width)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(I32, 0))
    return _some_lanes(builder, first, [0] * width)


def _add(builder, a, b):
    return builder.fadd(a, b)


def _sub(builder, a, b):
    return builder.fsub(a, b)


def _mul(builder, a, b):
    return builder.fmul(a, b)


def _div(builder, a, b):
    return builder.fdiv(a, b)


def _max(builder, a, b):
    """np.maximum: a NaN wins, and of equal values the second."""
    first = builder.or_(builder.fcmp_ordered(">", a, b), builder.fcmp_unordered("uno", a, a))
    return builder.select(first, a, b)


def _min(builder, a, b):
    first = builder.or_(builder.fcmp_ordered("<", a, b), builder.fcmp_unordered("uno", a, a))
    return builder.select(first, a, b)


def _take(builder, a, b):
    del builder, a
    return b


def _reader(element, numba_type):
    @intrinsic
    def read(context, address):
        del context

        def generate(context, builder, sig, arguments):
            del context, sig
            pointer = builder.inttoptr(arguments[0], ir.PointerType(element))
            found = builder.load(pointer, align=1)
            return builder.fpext(found, F32) if element == F16 else found

        return numba_type(types.int64), generate

    return read


def _writer(element, numba_type):
    @intrinsic
    def write(context, address, value):
        del context

        def generate(context, builder, sig, arguments):
            del sig
            value = arguments[1]
            if element == F16:
                value = builder.fptrunc(value, F16)
            pointer = builder.inttoptr(arguments[0], ir.PointerType(element))
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, numba_type), generate

    return write


read1, read2, read4, read8 = (
    _reader(ir.IntType(8 * n), getattr(types, f"uint{8 * n}")) for n in (1, 2, 4, 8)
)
write1, write2, write4, write8 = (
    _writer(ir.IntType(8 * n), getattr(types, f"uint{8 * n}")) for n in (1, 2, 4, 8)
)
read_long = _reader(I64, types.int64)
read_float, read_half = _reader(F32, types.float32), _reader(F16, types.float32)
write_float, write_half = _writer(F32, types.float32), _writer(F16, types.float32)


def _ask(builder, address, to_write):
    """Ask for the line at an address, wherever that is."""
    pointer = ir.PointerType(I8)
    prefetch = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32]),
        "llvm.prefetch.p0",
    )
    where = builder.inttoptr(address, pointer)
    builder.call(prefetch, [where, *(ir.Constant(I32, n) for n in (int(to_write), 3, 1))])


@intrinsic
def ask_to_write(context, address):
    """Ask for the line at an address, which is about to be written."""
    del context

    def generate(context, builder, sig, arguments):
        del sig
        _ask(builder, arguments[0], to_write=True)
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def copy_bytes(context, out, source, n):
    """Copy n bytes that lie together: vectors of 64, then halves of what is left."""
    del context

    def generate(context, builder, sig, arguments):
        del sig
        out, source, n = arguments

        def move(offset, size):
            if size >= 4:
                kind = ir.VectorType(I32, size // 4)
            else:
                kind = ir.IntType(8 * size)
            begin = builder.inttoptr(builder.add(source, offset), ir.PointerType(kind))
            end = builder.inttoptr(builder.add(out, offset), ir.PointerType(kind))
            builder.store(builder.load(begin, align=1), end, align=1)

        zero = ir.Constant(I64, 0)
        whole = builder.lshr(n, ir.Constant(I64, 6))
        with cgutils.for_range(builder, whole) as counter:
            move(builder.shl(counter.index, ir.Constant(I64, 6)), 64)
        done = cgutils.alloca_once_value(builder, builder.shl(whole, ir.Constant(I64, 6)))
        builder.store(builder.shl(whole, ir.Constant(I64, 6)), done)
        for size in (32, 16, 8, 4, 2, 1):
            bit = builder.and_(n, ir.Constant(I64, size))
            with builder.if_then(builder.icmp_signed("!=", bit, zero)):
                offset = builder.load(done)
                move(offset, size)
                builder.store(builder.add(offset, ir.Constant(I64, size)), done)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _each(builder, n, do):
    """Do something with all numbers below n, some of them at once: a list of them."""
    four = ir.Constant(I64, QUARTER)
    fours = builder.sdiv(n, four)
    with cgutils.for_range(builder, fours) as counter:
        first = builder.mul(counter.index, four)
        do([builder.add(first, ir.Constant(I64, i)) for i in range(QUARTER)])
    done = builder.mul(fours, four)
    with cgutils.for_range(builder, builder.sub(n, done)) as counter:
        do([builder.add(done, counter.index)])


TALL = 8
"""Rows from which on what is gathered is brought by columns: where one lies is looked up once."""


def _rows(kept, wanted, is_gathered=False, is_spread=False):
    """The intrinsic that copies rows, of at most LANES elements each if they are not gathered.

    Row i of out begins i * step further on, and that of source where[i]; if spread, it is the other
    way round. Its elements lie together; if gathered, those of the source, and of what is spread
    those of out, are as many bytes on as lanes say. kept, wanted: elements of source and out.
    """

    @intrinsic
    def copy_rows(context, out, source, step, where, count, lanes, n):
        del context

        def generate(context, builder, sig, arguments):
            del sig
            out, source, step, where, count, lanes, n = arguments

            def converted(found):
                vector = isinstance(found.type, ir.VectorType)
                type_ = ir.VectorType(wanted, LANES) if vector else wanted
                if (kept, wanted) == (F16, F32):
                    return builder.fpext(found, type_)
                return builder.fptrunc(found, type_) if (kept, wanted) == (F32, F16) else found

            def ends(row):
                """Where a row begins, in the source and in out."""
                near = builder.mul(row, step)
                far = _load_long(builder, _plus(builder, where, row, 8))
                begin = builder.add(source, near if is_spread else far)
                return begin, builder.add(out, far if is_spread else near)

            def on(some):
                """Bytes on to some elements of a row, in the source and in out."""
                apart = [_load_long(builder, _plus(builder, lanes, lane, 8)) for lane in some]
                width = ir.Constant(I64, _bytes(kept if is_spread else wanted))
                near = [builder.mul(lane, width) for lane in some]
                return (near, apart) if is_spread else (apart, near)

            def move(row, begins, endings):
                begin, end = ends(row)
                for a, b in zip(begins, endings, strict=True):
                    found = _load(builder, kept, builder.add(begin, a))
                    _put(builder, converted(found), builder.add(end, b))

            def by_columns(some):
                columns = on(some)
                with cgutils.for_range(builder, count) as counter:
                    move(counter.index, *columns)

            if is_gathered:
                is_tall = builder.icmp_signed(">=", count, ir.Constant(I64, TALL))
                with builder.if_else(is_tall) as (tall, flat):
                    with tall:
                        _each(builder, n, by_columns)
                    with flat, cgutils.for_range(builder, count) as counter:
                        row = counter.index
                        _each(builder, n, lambda some: move(row, *on(some)))
            else:
                some = _First(builder, n)
                with cgutils.for_range(builder, count) as counter:
                    begin, end = ends(counter.index)
                    some.store(end, converted(some.load(kept, begin)))
            return context.get_dummy_value()

        return types.void(*[types.int64] * 7), generate

    return copy_rows


word_rows, gathered_words = _rows(I32, I32), _rows(I32, I32, is_gathered=True)
gathered_bytes, gathered_halves = (_rows(kind, kind, is_gathered=True) for kind in (I8, I16))
gathered_longs, gathered_quads = (
    _rows(kind, kind, is_gathered=True) for kind in (I64, ir.VectorType(I32, 4))
)
wide_rows, gathered_wide = _rows(F16, F32), _rows(F16, F32, is_gathered=True)
spread_words, scattered_words = (_rows(F32, F32, gathered, True) for gathered in (False, True))
spread_narrow, scattered_narrow = (_rows(F32, F16, gathered, True) for gathered in (False, True))


# Copies

# A table of int64: how many dimensions; bytes of the innermost run; dimension of the first replica,
# or -1; address of a block's worth of scratch; the source's and the target's address; then sizes,
# the source's strides and the target's strides. With replicas, the dimensions before the first one
# name blocks, then come the replicas, then the runs of a block, which lies together in the target.

COPY_HEAD = 7
WORDS = 16


@intrinsic
def copy_words(context, out, source, n):
    """Copy n words of 4 bytes that lie together, at most LANES: one masked vector."""
    del context

    def generate(context, builder, sig, arguments):
        del sig
        out, source, n = arguments
        some = _First(builder, n)
        some.store(out, some.load(I32, source))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@compiled(inline="always", **OPTIONS)
def _copy_one(target, source, run, unit):
    if unit == WORDS:
        copy_words(target, source, run)
    elif unit == 4:
        write4(target, read4(source))
    elif unit == 8:
        write8(target, read8(source))
    elif unit == 2:
        write2(target, read2(source))
    elif unit == 1:
        write1(target, read1(source))
    else:
        copy_bytes(target, source, run)


@compiled(inline="always", **OPTIONS)
def _copy_box(target, source, run, unit, n0, n1, n2, s0, s1, s2, t0, t1, t2):
    for i in range(n0):
        for j in range(n1):
            for k in range(n2):
                _copy_one(
                    target + i * t0 + j * t1 + k * t2, source + i * s0 + j * s1 + k * s2, run, unit
                )


@compiled(**OPTIONS)
def _copy_runs(table, first, last, source, target, run, unit):
    """Copy runs: all of the dimensions from first to last, the last three in loops of their own."""
    rank = table[0]
    sizes = table[COPY_HEAD : COPY_HEAD + rank]
    steps = table[COPY_HEAD + rank : COPY_HEAD + 2 * rank]
    strides = table[COPY_HEAD + 2 * rank : COPY_HEAD + 3 * rank]
    if unit == WORDS:
        run = run // 4
    n0, n1, n2, s0, s1, s2, t0, t1, t2 = 1, 1, 1, 0, 0, 0, 0, 0, 0
    d = last - 1
    if d >= first:
        n2, s2, t2 = sizes[d], steps[d], strides[d]
        d -= 1
    if d >= first:
        n1, s1, t1 = sizes[d], steps[d], strides[d]
        d -= 1
    if d >= first:
        n0, s0, t0 = sizes[d], steps[d], strides[d]
        d -= 1
    slowest = d
    outer = 1
    for d in range(first, slowest + 1):
        outer *= sizes[d]
    index = np.zeros(rank, np.int64)
    for _ in range(outer):
        # The kind of copy is chosen outside of the loops.
        if unit == WORDS:
            _copy_box(target, source, run, WORDS, n0, n1, n2, s0, s1, s2, t0, t1, t2)
        elif unit == 4:
            _copy_box(target, source, run, 4, n0, n1, n2, s0, s1, s2, t0, t1, t2)
        elif unit == 8:
            _copy_box(target, source, run, 8, n0, n1, n2, s0, s1, s2, t0, t1, t2)
        else:
            _copy_box(target, source, run, unit, n0, n1, n2, s0, s1, s2, t0, t1, t2)
        d = slowest
        while d >= first:
            index[d] += 1
            source += steps[d]
            target += strides[d]
            if index[d] < sizes[d]:
                break
            source -= steps[d] * sizes[d]
            target -= strides[d] * sizes[d]
            index[d] = 0
            d -= 1


@compiled("void(int64[::1])", **OPTIONS)
def copy(table):
    """Copy one array into another of its shape, as a table says."""
    rank, run, replica, scratch, source, target, unit = (
        table[0],
        table[1],
        table[2],
        table[3],
        table[4],
        table[5],
        table[6],
    )
    if replica < 0:
        _copy_runs(table, 0, rank, source, target, run, unit)
        return
    sizes = table[COPY_HEAD : COPY_HEAD + rank]
    steps = table[COPY_HEAD + rank : COPY_HEAD + 2 * rank]
    strides = table[COPY_HEAD + 2 * rank : COPY_HEAD + 3 * rank]
    inner = replica
    while inner < rank and steps[inner] == 0:
        inner += 1
    blocks, replicas, length = 1, 1, run
    for d in range(replica):
        blocks *= sizes[d]
    for d in range(replica, inner):
        replicas *= sizes[d]
    for d in range(inner, rank):
        length *= sizes[d]
    index = np.zeros(rank, np.int64)
    for _ in range(blocks):
        block = source
        if inner < rank:
            # The block is put together once; the strides of scratch are those of the target.
            block = scratch
            _copy_runs(table, inner, rank, source, scratch, run, unit)
        for _ in range(replicas):
            copy_bytes(target, block, length)
            d = inner - 1
            while d >= replica:
                index[d] += 1
                target += strides[d]
                if index[d] < sizes[d]:
                    break
                target -= strides[d] * sizes[d]
                index[d] = 0
                d -= 1
        d = replica - 1
        while d >= 0:
            index[d] += 1
            source += steps[d]
            target += strides[d]
            if index[d] < sizes[d]:
                break
            source -= steps[d] * sizes[d]
            target -= strides[d] * sizes[d]
            index[d] = 0
            d -= 1


# Chains

# A chain takes a vector of each of some rows at a time, and does all of its steps on them before
# it takes the next ones. A step merges what it reads into a total, from as many places in turn as
# it says, or stores the total; it is a row of int64, named below. Memory that it reads or writes is
# named by a column of a table of addresses, which has the row of each vector there; places are
# bytes on from it, and so are elements of a row.

TAKE, ADD, SUB, MUL, DIV, MAX, MIN = range(7)
"""What a step does with the total, which stands first; or second, if REVERSED is added."""

REVERSED = 8
KEEP, STORE = 15, 16
"""Put the total aside; store it. These are done no time at all, and then once."""

NOTHING, WORDS_TOGETHER, HALVES_TOGETHER, WORD, HALF, EVERY_SECOND, WORDS_APART, HALVES_APART = (
    range(8)
)
CONSTANT, ITSELF, KEPT = range(8, 11)
"""What a step reads: floats or float16 of memory that lie together, are one and the same, are
every second one, or lie anyhow; a constant, the total, or what was put aside."""

WHAT, COUNT, PLACES, HOW, BY, COLUMN, FACTOR_PLACES, FACTOR, FACTOR_BY, FACTOR_COLUMN = range(10)
STEP = 10
"""What is done, how often, at which places; what is read, from element to element, of which
column, and the same of a factor. A constant's bits stand where its column would."""

OPERATIONS = {TAKE: _take, ADD: _add, SUB: _sub, MUL: _mul, DIV: _div, MAX: _max, MIN: _min}

HALF_LINE = 8 * ABREAST
LINE_OF_TABLE = 2 * HALF_LINE
"""Bytes of a column of a table of addresses, of which the first half counts."""


def _switch(builder, number, cases, otherwise=lambda: None):
    """Do what a number stands for, or otherwise something else. cases: what builds each."""
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


AT_ONCE = [
    *((what, how, NOTHING) for what in (TAKE, ADD) for how in (WORDS_TOGETHER, WORD)),
    *((what, WORDS_TOGETHER, WORD) for what in (TAKE, ADD)),
    *((what, EVERY_SECOND, WORD) for what in (TAKE, ADD)),
    *((what, EVERY_SECOND, NOTHING) for what in (TAKE, MAX)),
    *((MAX, how, NOTHING) for how in (WORDS_TOGETHER, CONSTANT)),
    (MUL, WORD, NOTHING),
]
"""What is done, how memory lies, and how its factor does, where that is merged as it is read: most
of what networks do. All else is read first, multiplied then, and merged in the end."""


class _Side(NamedTuple):
    """What a step reads, or its factor, as its row says."""

    how: Any
    places: Any
    by: Any
    column: Any


class _Chain:
    """Builds the steps of a chain on one vector of each of ABREAST rows.

    n: lanes of each, or None for all of them. first: the element of its row that a vector begins
    with. totals, found: where a total is kept, and what was read.
    """

    def __init__(self, builder, n, addresses, first, kept):
        self.builder, self.addresses, self.first, self.kept = builder, addresses, first, kept
        self.some = _First(builder, n)
        self.vector = ir.VectorType(F32, LANES)
        self.totals, self.found = (
            [cgutils.alloca_once(builder, self.vector) for _ in range(ABREAST)] for _ in range(2)
        )
        if n is not None:
            # Of pairs, the first elements only; those of the second half begin at an odd one.
            span = builder.sub(builder.add(self.some.n, self.some.n), ir.Constant(I64, 1))
            self.halves = (
                _First(builder, span),
                _First(builder, builder.sub(span, ir.Constant(I64, LANES - 1))),
            )
        else:
            self.halves = (self.some, self.some)

    def begin(self):
        """Forget what was before, which nobody needs to keep in registers."""
        for each in (*self.totals, *self.found):
            self.builder.store(ir.Constant(self.vector, ir.Undefined), each)

    def step(self, step):
        """One step; step: the address of its row."""
        builder = self.builder

        def field(which):
            return _load_long(builder, builder.add(step, ir.Constant(I64, 8 * which)))

        what = field(WHAT)
        side, factor = (
            _Side(*(field(i) for i in fields))
            for fields in (
                (HOW, PLACES, BY, COLUMN),
                (FACTOR, FACTOR_PLACES, FACTOR_BY, FACTOR_COLUMN),
            )
        )
        kinds = builder.or_(side.how, builder.shl(factor.how, ir.Constant(I64, 4)))
        code = builder.or_(what, builder.shl(kinds, ir.Constant(I64, 5)))
        with cgutils.for_range(builder, field(COUNT)) as counter:
            at_once = {
                each[0] | (each[1] | each[2] << 4) << 5: partial(
                    self._do_at_once, *each, side, factor, counter.index
                )
                for each in AT_ONCE
            }
            in_turn = partial(self._do_in_turn, what, side, factor, counter.index)
            _switch(builder, code, at_once, in_turn)
        stores = partial(_switch, builder, side.how, self._stores(side))
        _switch(builder, what, {KEEP: self._keep, STORE: stores})

    def _do_at_once(self, what, how, factor_how, side, factor, index):
        builder = self.builder
        if how == CONSTANT:
            value = self._constant(side)
        else:
            at, load = self._places(side, index), self._loads(side)[how]
        if factor_how != NOTHING:
            beside, load_factor = self._places(factor, index), self._loads(factor)[factor_how]
        for row, total in enumerate(self.totals):
            if how != CONSTANT:
                value = load(at(row))
            if factor_how != NOTHING:
                value = builder.fmul(value, load_factor(beside(row)))
            builder.store(OPERATIONS[what](builder, builder.load(total), value), total)

    def _do_in_turn(self, what, side, factor, index):
        builder = self.builder

        def reader(side, load, is_factor):
            def read():
                at = self._places(side, index)
                for row, found in enumerate(self.found):
                    value = load(at(row))
                    if is_factor:
                        value = builder.fmul(builder.load(found), value)
                    builder.store(value, found)

            return read

        def finder(value):
            def find():
                for row, found in enumerate(self.found):
                    builder.store(value(row), found)

            return find

        loads = self._loads(side).items()
        _switch(
            builder,
            side.how,
            {
                **{how: reader(side, load, False) for how, load in loads},
                CONSTANT: finder(lambda row: self._constant(side)),
                ITSELF: finder(lambda row: builder.load(self.totals[row])),
                KEPT: finder(lambda row: _load(builder, self.vector, self._kept(row))),
            },
        )
        loads = self._loads(factor).items()
        _switch(builder, factor.how, {how: reader(factor, load, True) for how, load in loads})
        _switch(builder, what, self._merges())

    def _places(self, side, index):
        """What says where the vector of a row begins, at one of the places of a step."""
        builder = self.builder
        begin = _plus(builder, self.addresses, side.column, LINE_OF_TABLE)
        place = _load_long(builder, _plus(builder, side.places, index, 8))
        on = builder.add(place, builder.mul(self.first, side.by))

        def at(row):
            start = _load_long(builder, builder.add(begin, ir.Constant(I64, 8 * row)))
            return builder.add(start, on)

        return at

    def _loads(self, side):
        """By how memory lies, what loads a vector of it."""
        builder, some = self.builder, self.some

        def widened(found):
            vector = isinstance(found.type, ir.VectorType)
            return builder.fpext(found, self.vector if vector else F32)

        return {
            WORDS_TOGETHER: lambda at: some.load(F32, at),
            HALVES_TOGETHER: lambda at: widened(some.load(F16, at)),
            WORD: lambda at: _splat(builder, _load(builder, F32, at)),
            HALF: lambda at: _splat(builder, widened(_load(builder, F16, at))),
            EVERY_SECOND: self._every_second,
            WORDS_APART: lambda at: some.gather(F32, at, side.by),
            HALVES_APART: lambda at: widened(some.gather(F16, at, side.by)),
        }

    def _every_second(self, at):
        """Floats, of which what lies between is read, too; nothing beyond the last one is."""
        near = self.halves[0].load(F32, at)
        far = self.halves[1].load(F32, _plus(self.builder, at, ir.Constant(I64, LANES - 1), 4))
        lanes = [2 * i if 2 * i < LANES else 2 * i + 1 for i in range(LANES)]
        mask = ir.Constant(ir.VectorType(I32, LANES), lanes)
        return self.builder.shuffle_vector(near, far, mask)

    def _constant(self, side):
        value = self.builder.bitcast(self.builder.trunc(side.column, I32), F32)
        return _splat(self.builder, value)

    def _merges(self):
        """By what is done, what merges all that was read into the totals."""
        builder = self.builder

        def merger(operation, is_reversed):
            def merge():
                for total, found in zip(self.totals, self.found, strict=True):
                    both = builder.load(total), builder.load(found)
                    both = both[::-1] if is_reversed else both
                    builder.store(operation(builder, *both), total)

            return merge

        return {
            what + reverse: merger(operation, reverse)
            for what, operation in OPERATIONS.items()
            for reverse in ((0, REVERSED) if what != TAKE else (0,))
        }

    def _stores(self, side):
        """By how memory lies, what stores the totals."""
        builder, some = self.builder, self.some

        def store(narrow, is_apart):
            def put():
                at = self._places(side, ir.Constant(I64, 0))
                for row, total in enumerate(self.totals):
                    value = builder.load(total)
                    if narrow:
                        value = builder.fptrunc(value, ir.VectorType(F16, LANES))
                    if is_apart:
                        some.scatter(at(row), side.by, value)
                    else:
                        some.store(at(row), value)

            return put

        # A single one is a vector of one.
        return {
            **dict.fromkeys((WORDS_TOGETHER, WORD), store(False, False)),
            **dict.fromkeys((HALVES_TOGETHER, HALF), store(True, False)),
            **dict.fromkeys((EVERY_SECOND, WORDS_APART), store(False, True)),
            HALVES_APART: store(True, True),
        }

    def _kept(self, row):
        """Where a total is put aside."""
        return self.builder.add(self.kept, ir.Constant(I64, 4 * LANES * row))

    def _keep(self):
        for row, total in enumerate(self.totals):
            _put(self.builder, self.builder.load(total), self._kept(row))


def _chain_of(is_whole):
    """The intrinsic that does steps on vectors of LANES elements, or of fewer."""

    @intrinsic
    def do_steps(context, steps, count, addresses, first, n, kept):
        del context

        def generate(context, builder, sig, arguments):
            del sig
            steps, count, addresses, first, n, kept = arguments
            chain = _Chain(builder, None if is_whole else n, addresses, first, kept)
            chain.begin()
            with cgutils.for_range(builder, count) as counter:
                chain.step(_plus(builder, steps, counter.index, 8 * STEP))
            return context.get_dummy_value()

        return types.void(*[types.int64] * 6), generate

    return do_steps


do_whole, do_part = (_chain_of(is_whole) for is_whole in (True, False))


@compiled(**OPTIONS)
def _do_rows(steps, addresses, first, last, kept):
    """All steps on some elements of rows that begin at addresses."""
    what, count = steps.ctypes.data, len(steps)
    whole = last - (last - first) % LANES
    for i in range(first, whole, LANES):
        do_whole(what, count, addresses, i, LANES, kept)
    if last > whole:
        do_part(what, count, addresses, whole, last - whole, kept)


@intrinsic
def put_longs(context, out, begin, steps):
    """out[i] = begin + steps[i], for i < ABREAST."""
    del context

    def generate(context, builder, sig, arguments):
        del sig
        out, begin, steps = arguments
        found = _load(builder, ir.VectorType(I64, ABREAST), steps)
        _put(builder, builder.add(_splat(builder, begin, ABREAST), found), out)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@compiled(**OPTIONS)
def _repeat(table, full, width):
    """Let vectors beyond the full ones do what the last one does, once more."""
    for s in range(width):
        line = table + s * LINE_OF_TABLE
        for i in range(full, ABREAST):
            write8(line + i * 8, read8(line + (full - 1) * 8))


@compiled(**OPTIONS)
def _advance(take, sizes, strides, where, index):
    """Go on by some rows, at most to the end of the last but one dimension."""
    d, width = len(sizes) - 2, len(where)
    for s in range(width):
        where[s] += take * strides[d, s]
    index[d] += take
    while d > 0 and index[d] == sizes[d]:
        index[d] = 0
        d -= 1
        index[d] += 1
        for s in range(width):
            where[s] += strides[d, s] - sizes[d + 1] * strides[d + 1, s]


@compiled(**OPTIONS)
def _go_along(sizes, rows, steps, strides, starts, ramps, room, kept):
    """One row after the other, vectors of it side by side."""
    rank, width = len(sizes), len(starts)
    columns = sizes[rank - 1]
    whole = columns // LANES
    table, what = room.ctypes.data, steps.ctypes.data
    ramp = ramps.ctypes.data + HALF_LINE
    where, index = starts.copy(), np.zeros(rank, np.int64)
    for _ in range(rows):
        for v in range(0, whole, ABREAST):
            for s in range(width):
                begin = where[s] + v * LANES * strides[rank - 1, s]
                put_longs(table + s * LINE_OF_TABLE, begin, ramp + s * LINE_OF_TABLE)
            if whole - v < ABREAST:
                _repeat(table, whole - v, width)
            do_whole(what, len(steps), table, 0, LANES, kept)
        if columns > whole * LANES:
            for s in range(width):
                write8(table + s * LINE_OF_TABLE, where[s])
            _repeat(table, 1, width)
            do_part(what, len(steps), table, whole * LANES, columns - whole * LANES, kept)
        _advance(1, sizes, strides, where, index)


@compiled(**OPTIONS)
def _go_abreast(sizes, rows, first, last, steps, strides, starts, ramps, room, kept):
    """Some elements of all rows, of which as many as there may be are done side by side."""
    rank, width = len(sizes), len(starts)
    table, ramp = room.ctypes.data, ramps.ctypes.data
    where, index = starts.copy(), np.zeros(rank, np.int64)
    done, full = 0, 0
    while done < rows:
        take = min(ABREAST - full, sizes[rank - 2] - index[rank - 2])
        for s in range(width):
            line = s * LINE_OF_TABLE
            put_longs(table + line + full * 8, where[s], ramp + line)
        full += take
        done += take
        if full == ABREAST or done == rows:
            if full < ABREAST:
                _repeat(table, full, width)
            _do_rows(steps, table, first, last, kept)
            full = 0
        _advance(take, sizes, strides, where, index)


@compiled(
    "void(int64[::1], int64, int64[:,::1], int64[:,::1], int64[::1], int64[:,::1], int64[:,::1],"
    "int64)",
    **OPTIONS,
)
def chain(sizes, span, steps, strides, starts, ramps, room, kept):
    """Do all steps on every row of an array.

    sizes: of its dimensions, two or more, of which the last one makes rows. span: elements of rows
    that are done before others are. strides: of each dimension, in each memory. starts: where
    memories begin. ramps: of each memory, bytes on to each of ABREAST rows of the last but one
    dimension, then to each of as many vectors of a row. room: for a table of addresses. kept:
    address of room for what is put aside.
    """
    rank = len(sizes)
    columns = sizes[rank - 1]
    rows, whole = 1, columns // LANES
    for d in range(rank - 1):
        rows *= sizes[d]
    part = columns > whole * LANES
    groups = (rows + ABREAST - 1) // ABREAST * (whole + part)
    if rows * ((whole + ABREAST - 1) // ABREAST + part) < groups:
        _go_along(sizes, rows, steps, strides, starts, ramps, room, kept)
        return
    for first in range(0, columns, span):
        last = min(first + span, columns)
        _go_abreast(sizes, rows, first, last, steps, strides, starts, ramps, room, kept)


@compiled("void(int64, int64[:,::1], int64[:,:,::1], int64)", **OPTIONS)
def merge(columns, steps, tables, kept):
    """Do all steps on rows that lie anywhere. tables: of addresses, each of ABREAST rows."""
    for i in range(len(tables)):
        _do_rows(steps, tables.ctypes.data + i * tables.strides[0], 0, columns, kept)


# Routes

# A route fills the blocks of a variable from those of another, run by run. A run is a row of int64,
# named below: where it goes and where it is found, its length, and for how many rows, which lie
# evenly in the target and are found where entries say. Runs that are brought in the same way stand
# one after another, in segments.

FILLED, BY_WORDS, BY_BYTES, GATHERED, REPLICA = 0, 1, 2, 3, 8

OUT, FOUND, LENGTH, HEIGHT, ENTRY, LANE = range(6)
TASK = 6

AHEAD = 8
"""Runs after which the line of one is asked for."""


@compiled(**OPTIONS)
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


def _bringing(rows):
    """The kernel that brings some runs as rows are: by words, or in pieces of one width."""

    @compiled(**OPTIONS)
    def bring(tasks, first, end, source, target, step, entries, lanes):
        for t in range(first, end):
            if t + AHEAD < end:
                ask_to_write(target + tasks[t + AHEAD, OUT])
            rows(
                target + tasks[t, OUT],
                source + tasks[t, FOUND],
                step,
                entries + tasks[t, ENTRY] * 8,
                tasks[t, HEIGHT],
                lanes + tasks[t, LANE] * 8,
                tasks[t, LENGTH],
            )

    return bring


bring_words, bring_one, bring_two, bring_four, bring_eight, bring_sixteen = (
    _bringing(rows)
    for rows in (
        word_rows,
        gathered_bytes,
        gathered_halves,
        gathered_words,
        gathered_longs,
        gathered_quads,
    )
)


@compiled("void(int64[::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1])", **OPTIONS)
def route(head, segments, tasks, entries, lanes):
    """Bring all runs.

    head: addresses of the source and the target, bytes of an element, the bits that fill, bytes
    from one row of a run to the next. segments: how runs are brought, the first and the end.
    entries: bytes on to rows. lanes: bytes on to the pieces of runs.
    """
    source, target, unit, fill, step = head[0], head[1], head[2], head[3], head[4]
    where, table = entries.ctypes.data, lanes.ctypes.data
    for s in range(len(segments)):
        kind, first, end = segments[s, 0], segments[s, 1], segments[s, 2]
        if kind == FILLED:
            for t in range(first, end):
                _fill(
                    *(target + tasks[t, OUT], step, tasks[t, HEIGHT], tasks[t, LENGTH], unit, fill)
                )
        elif kind == BY_BYTES:
            for t in range(first, end):
                if t + AHEAD < end:
                    ask_to_write(target + tasks[t + AHEAD, OUT])
                for i in range(tasks[t, HEIGHT]):
                    begin = source + tasks[t, FOUND] + entries[tasks[t, ENTRY] + i]
                    copy_bytes(target + tasks[t, OUT] + i * step, begin, tasks[t, LENGTH])
        elif kind == REPLICA:
            for t in range(first, end):
                for i in range(tasks[t, HEIGHT]):
                    begin = target + tasks[t, FOUND] + i * step
                    copy_bytes(target + tasks[t, OUT] + i * step, begin, tasks[t, LENGTH])
        elif kind == BY_WORDS:
            bring_words(tasks, first, end, source, target, step, where, table)
        elif kind == GATHERED:
            bring_one(tasks, first, end, source, target, step, where, table)
        elif kind == GATHERED + 1:
            bring_two(tasks, first, end, source, target, step, where, table)
        elif kind == GATHERED + 2:
            bring_four(tasks, first, end, source, target, step, where, table)
        elif kind == GATHERED + 3:
            bring_eight(tasks, first, end, source, target, step, where, table)
        else:
            bring_sixteen(tasks, first, end, source, target, step, where, table)


# Sums of products


ROWS_AHEAD = 256
"""Terms after which packed rows are asked for: weights of a large network come from memory, and
more slowly than they are multiplied where nobody asks."""


def _micro_kernel(vectors, height):
    """The intrinsic that multiplies the first rows of a panel by the first vectors of a panel of
    columns.

    rows: [depth][ROWS]. columns: [depth][COLUMNS]. out: [ROWS][COLUMNS]. Each result is a chain of
    fused multiplications and additions, from zero, in the order of depth; it is added to what is
    there if adds is not 0.
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

            def plus(base, offset):
                return builder.add(base, ir.Constant(I64, offset))

            with cgutils.for_range(builder, depth) as counter:
                begin = builder.add(
                    columns, builder.mul(counter.index, ir.Constant(I64, 4 * COLUMNS))
                )
                right = [_load(builder, vector, plus(begin, 4 * LANES * v)) for v in range(vectors)]
                begin = builder.add(rows, builder.mul(counter.index, ir.Constant(I64, 4 * ROWS)))
                _ask(builder, plus(begin, 4 * ROWS * ROWS_AHEAD), to_write=False)
                for r in range(height):
                    left = _splat(builder, _load(builder, F32, plus(begin, 4 * r)))
                    for v in range(vectors):
                        total = builder.load(totals[r][v])
                        builder.store(builder.call(fma, [left, right[v], total]), totals[r][v])
            into = [
                (plus(out, 4 * (r * COLUMNS + v * LANES)), totals[r][v])
                for r in range(height)
                for v in range(vectors)
            ]
            with builder.if_then(builder.icmp_signed("!=", adds, ir.Constant(I64, 0))):
                for where, total in into:
                    found = builder.fadd(_load(builder, vector, where), builder.load(total))
                    builder.store(found, total)
            for where, total in into:
                _put(builder, builder.load(total), where)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 5), generate

    return multiply


THIRD = ROWS // 3
"""Rows of a third of a panel: of the last one, as many thirds are multiplied as it has rows for."""

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
        _put(builder, builder.fadd(_load(builder, vector, out), _load(builder, vector, other)), out)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@compiled(**OPTIONS)
def _pack_rows(base, size, rows, depth, packed):
    """Rows of the first operand in panels: [panel][depth][ROWS]; missing rows are zero."""
    out = packed
    for first in range(0, len(rows), ROWS):
        count = min(ROWS, len(rows) - first)
        for k in range(len(depth)):
            begin = base + depth[k]
            for r in range(count):
                if size == 4:
                    write_float(out + r * 4, read_float(begin + rows[first + r]))
                else:
                    write_float(out + r * 4, read_half(begin + rows[first + r]))
            for r in range(count, ROWS):
                write_float(out + r * 4, np.float32(0))
            out += ROWS * 4


@compiled(**OPTIONS)
def _pack_columns(base, size, runs, first, last, lanes, depth, panel):
    """A panel of columns of the second operand: [depth][COLUMNS]; missing ones are left as is."""
    where, count, step = depth.ctypes.data, len(depth), COLUMNS * 4
    for k in range(first, last):
        out, n, begin = panel + runs[k, 0] * 4, runs[k, 1], base + runs[k, 2]
        table = lanes.ctypes.data + runs[k, 3] * 8
        if runs[k, 4] == TOGETHER:
            if size == 4:
                word_rows(out, begin, step, where, count, table, n)
            else:
                wide_rows(out, begin, step, where, count, table, n)
        elif size == 4:
            gathered_words(out, begin, step, where, count, table, n)
        else:
            gathered_wide(out, begin, step, where, count, table, n)


@compiled(**OPTIONS)
def _store_tile(tile, base, size, rows, count, runs, first, last, lanes):
    """Put count rows of results; rows: where they begin."""
    step = COLUMNS * 4
    for k in range(first, last):
        found, n, end = tile + runs[k, 0] * 4, runs[k, 1], base + runs[k, 2]
        table = lanes.ctypes.data + runs[k, 3] * 8
        if runs[k, 4] == TOGETHER:
            if size == 4:
                spread_words(end, found, step, rows, count, table, n)
            else:
                spread_narrow(end, found, step, rows, count, table, n)
        elif size == 4:
            scattered_words(end, found, step, rows, count, table, n)
        else:
            scattered_narrow(end, found, step, rows, count, table, n)


APART, TOGETHER = 0, 1
ROWS_KEPT, ROWS_PACKED, COLUMNS_KEPT, COLUMNS_PACKED = 1, 2, 4, 8


@compiled(**OPTIONS)
def _add_tile(tile, other):
    """Add one tile of results to another."""
    for i in range(0, ROWS * COLUMNS * 4, LANES * 4):
        add_vector(tile + i, other + i)


@compiled(**OPTIONS)
def _multiply(left, right, depth, height, is_narrow, tile, spare, adds):
    """The first rows of a panel by a panel of columns, as chains of TERMS that are added up; all of
    it is added to what is there if adds is not 0. Rows beyond the height are anything."""
    into = spare if adds and depth > TERMS else tile
    for k in range(0, depth, TERMS):
        rows, columns = left + k * ROWS * 4, right + k * COLUMNS * 4
        terms = min(TERMS, depth - k)
        is_added = k if depth > TERMS else adds
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
        _add_tile(tile, spare)


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
    """Sums of products of rows of one operand and columns of another, for each of a batch.

    head: addresses and element sizes of the operands and the result; how many columns; addresses
    of packed rows, of a panel or all panels of columns, and of tiles of results, of which there
    is one for each panel of rows and a spare one. batch: bytes to each of the three. groups: the
    first of a batch and the end, of which all are added up in one result. runs: of a panel of
    columns, (first lane, how many, bytes on, entry of columns, together or not); spans: the first
    of each panel, and the end. known: what is kept, and what is packed already.
    """
    a, b, out = head[0], head[1], head[2]
    count, packed, kept, tiles = head[6], head[7], head[8], head[9]
    panels, across = (len(rows) + ROWS - 1) // ROWS, len(spans) - 1
    length, size = len(depth) * ROWS * 4, len(depth) * COLUMNS * 4
    spare = tiles + panels * ROWS * COLUMNS * 4
    for g in range(len(groups)):
        begin, end = groups[g, 0], groups[g, 1]
        mine = packed + begin * panels * length if known & ROWS_KEPT else packed
        if not known & ROWS_PACKED:
            for i in range(begin, end):
                into = mine + (i - begin) * panels * length
                _pack_rows(a + batch[i, 0], head[3], rows, depth, into)
        for q in range(across):
            is_narrow = count - q * COLUMNS <= LANES
            for i in range(begin, end):
                panel = kept + (i * across + q) * size if known & COLUMNS_KEPT else kept
                if not known & COLUMNS_PACKED:
                    from_ = b + batch[i, 1]
                    _pack_columns(
                        from_, head[4], runs, spans[q], spans[q + 1], columns, depths, panel
                    )
                left = mine + (i - begin) * panels * length
                for p in range(panels):
                    tile = tiles + p * ROWS * COLUMNS * 4
                    row, height = left + p * length, len(rows) - p * ROWS
                    _multiply(row, panel, len(depth), height, is_narrow, tile, spare, i - begin)
            for p in range(panels):
                _store_tile(
                    tiles + p * ROWS * COLUMNS * 4,
                    out + batch[begin, 2],
                    head[5],
                    row_results.ctypes.data + p * ROWS * 8,
                    min(ROWS, len(rows) - p * ROWS),
                    result_runs,
                    result_spans[q],
                    result_spans[q + 1],
                    column_results,
                )
