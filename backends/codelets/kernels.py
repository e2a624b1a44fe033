# pyright: basic
"""Compiled kernels: copies, chains of elementwise steps, and sums of products. Needs numba.

What they compute is defined by the NumPy calls beside them, to the bit: terms are added in the
same order, and products and sums are fused in products of matrices only (`ordered`). All take
addresses and tables of int64, which whoever binds a call has made once; nothing here knows a layout
or a tile.

Loops are written in vectors of 16 elements, of which the last one has fewer. With AVX-512 that is a
mask. Elsewhere masked stores and gathers are slow or not there: what is stored goes in halves, and
what lies apart is taken one by one. Compiled code is kept beside this file, or in the user's cache
where that cannot be written. All of them stand in one file, since numba compiles anew only what is
in a file that has changed; so do the numbers that tables are written in, which have the same names
where they are written.
"""

from __future__ import annotations

import inspect
from typing import Any, cast

import numpy as np
from llvmlite import binding, ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

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

BLOCK = 1024
"""Elements that a chain takes at a time; they stay in the first cache."""

REGISTERS = np.zeros(3 * BLOCK + LANES, np.float32)

# The lock is kept: registers are shared by all calls.
OPTIONS = {"cache": True, "error_model": "numpy", "boundscheck": False}


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


def _bytes(element):
    return 2 if element in (F16, I16) else 4


class _First:
    """The first n lanes of a vector, an i64; all of them, if n is None."""

    def __init__(self, builder, n):
        self.builder, self.n = builder, n
        if n is not None:
            most, none = ir.Constant(I64, LANES), ir.Constant(I64, 0)
            n = builder.select(builder.icmp_signed("<", n, most), n, most)
            self.n = builder.select(builder.icmp_signed(">", n, none), n, none)
            lanes = ir.Constant(ir.VectorType(I32, LANES), list(range(LANES)))
            count = builder.trunc(self.n, I32)
            self.mask = builder.icmp_signed("<", lanes, _splat(builder, count))

    def load(self, element, address):
        """What lies at an address; lanes beyond are anything."""
        vector = ir.VectorType(element, LANES)
        if self.n is None:
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
        if self.n is None:
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
        """Elements that lie so many bytes apart, an i64; lanes beyond are anything."""
        builder, vector = self.builder, ir.VectorType(element, LANES)
        if WIDE:
            lanes = ir.Constant(ir.VectorType(I64, LANES), list(range(LANES)))
            offsets = builder.mul(lanes, _splat(builder, step))
            return self.gather_at(element, builder.add(_splat(builder, address), offsets))
        found = cgutils.alloca_once(builder, vector)
        for first in range(0, LANES, QUARTER):
            with builder.if_then(builder.icmp_signed(">", self.n, ir.Constant(I64, first))):
                value = builder.load(found)
                for lane in range(first, first + QUARTER):
                    # Beyond the last element it is taken again.
                    last = builder.sub(self.n, ir.Constant(I64, 1))
                    at = ir.Constant(I64, lane)
                    at = builder.select(builder.icmp_signed("<", at, last), at, last)
                    begin = builder.add(address, builder.mul(at, step))
                    value = builder.insert_element(
                        value, _load(builder, element, begin), ir.Constant(I32, lane)
                    )
                builder.store(value, found)
        return builder.load(found)

    def gather_at(self, element, addresses):
        """Elements at a vector of addresses. Of narrow ones whole words are read."""
        builder, words = self.builder, ir.VectorType(I32, LANES)
        pointers, masks = ir.VectorType(ir.PointerType(I32), LANES), ir.VectorType(I1, LANES)
        gather = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(words, [pointers, I32, masks, words]),
            f"llvm.masked.gather.v{LANES}i32.v{LANES}p0",
        )
        where = builder.inttoptr(addresses, pointers)
        arguments = [where, ir.Constant(I32, 4), self.mask, ir.Constant(words, None)]
        found = builder.call(gather, arguments)
        if _bytes(element) == 2:
            found = builder.trunc(found, ir.VectorType(I16, LANES))
        return builder.bitcast(found, ir.VectorType(element, LANES))

    def scatter_at(self, addresses, value):
        """Store a vector of floats at a vector of addresses."""
        builder, element = self.builder, value.type.element
        pointers, masks = ir.VectorType(ir.PointerType(element), LANES), ir.VectorType(I1, LANES)
        scatter = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [value.type, pointers, I32, masks]),
            f"llvm.masked.scatter.v{LANES}{'f16' if element == F16 else 'f32'}.v{LANES}p0",
        )
        align = ir.Constant(I32, _bytes(element))
        builder.call(scatter, [value, builder.inttoptr(addresses, pointers), align, self.mask])

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
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    return builder.load(builder.inttoptr(address, ir.PointerType(kind)), align=_bytes(element))


def _load_long(builder, address):
    return builder.load(builder.inttoptr(address, ir.PointerType(I64)), align=8)


def _put(builder, value, address):
    element = value.type.element if isinstance(value.type, ir.VectorType) else value.type
    pointer = builder.inttoptr(address, ir.PointerType(value.type))
    builder.store(value, pointer, align=_bytes(element))


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


def _chosen(definitions):
    """The intrinsic that does what has the number that comes first; the rest is for that.

    definitions: intrinsics to be, of the same arguments and without a result, by their numbers.
    Of any other number nothing is done.
    """

    def choose(context, number, *arguments):
        made = {key: define(context, *arguments) for key, define in definitions.items()}
        signature = next(iter(made.values()))[0]

        def generate(context, builder, sig, arguments):
            del sig
            end = builder.append_basic_block("chosen")
            switch = builder.switch(arguments[0], end)
            for key, (own, generate_one) in made.items():
                block = builder.append_basic_block(f"choice_{key}")
                switch.add_case(ir.Constant(I64, key), block)
                builder.position_at_end(block)
                generate_one(context, builder, own, arguments[1:])
                builder.branch(end)
            builder.position_at_end(end)
            return context.get_dummy_value()

        return types.void(types.int64, *signature.args), generate

    # Numba takes *arguments for one tuple.
    context, *rest = inspect.signature(next(iter(definitions.values()))).parameters.values()
    number = inspect.Parameter("number", context.kind)
    cast(Any, choose).__signature__ = inspect.Signature([context, number, *rest])
    return intrinsic(choose)


def _vector_loop(operation, narrow_in=False, narrow_out=False, scalar=False):
    """Defines out[i] = operation(a[i], b[i]) for i < n, at addresses; b may be one value.

    narrow_in: b is float16. narrow_out: out is.
    """

    def loop(context, out, a, b, n):
        del context
        signature = types.void(
            types.int64, types.int64, types.float32 if scalar else types.int64, types.int64
        )

        def generate(context, builder, sig, arguments):
            del sig
            out, a, b, n = arguments
            wide = ir.VectorType(F32, LANES)

            splat = _splat(builder, b) if scalar else None

            def body(index, some):
                def load(base, element):
                    found = some.load(element, _plus(builder, base, index, _bytes(element)))
                    return builder.fpext(found, wide) if element == F16 else found

                first = None if operation is _take else load(a, F32)
                second = splat if scalar else load(b, F16 if narrow_in else F32)
                value = operation(builder, first, second)
                if narrow_out:
                    value = builder.fptrunc(value, ir.VectorType(F16, LANES))
                some.store(_plus(builder, out, index, 2 if narrow_out else 4), value)

            lanes = ir.Constant(I64, LANES)
            whole = builder.sdiv(n, lanes)
            with cgutils.for_range(builder, whole) as counter:
                body(builder.mul(counter.index, lanes), _First(builder, None))
            done = builder.mul(whole, lanes)
            left = builder.sub(n, done)
            with builder.if_then(builder.icmp_signed(">", left, ir.Constant(I64, 0))):
                body(done, _First(builder, left))
            return context.get_dummy_value()

        return signature, generate

    return loop


TAKE, ADD, SUB, MUL, DIV, MAX, MIN, STORE = range(8)
"""What a step of a chain does."""

OPERATIONS = {TAKE: _take, ADD: _add, SUB: _sub, MUL: _mul, DIV: _div, MAX: _max, MIN: _min}

vectors = _chosen({what: _vector_loop(operation) for what, operation in OPERATIONS.items()})
values = _chosen(
    {what: _vector_loop(operation, scalar=True) for what, operation in OPERATIONS.items()}
)
take = intrinsic(_vector_loop(_take))
widen = intrinsic(_vector_loop(_take, narrow_in=True))
narrow = intrinsic(_vector_loop(_take, narrow_out=True))


SIDE_BY_SIDE = 4
"""Vectors that are merged at a time: each waits for its own last step only."""


def _series(operation, element, way, factor=None):
    """Defines how memory is merged into out[i], for i < n: out[i] = operation(out[i], x), for
    x = a[i] at each of count places in turn.

    where: how many bytes on. way: "run" for elements that lie together, "splat" for one that is
    repeated, "apart" for any step from one to the next. factor: that of a second memory, by which
    the first is multiplied.
    """

    def merge(context, out, n, count, a, step, where, b, b_step, b_where):
        del context

        def generate(context, builder, sig, arguments):
            del sig
            out, n, count, *memories = arguments
            wide, size = ir.VectorType(F32, LANES), _bytes(element)

            def constant(value):
                return ir.Constant(I64, value)

            def widened(found):
                return builder.fpext(found, wide) if element == F16 else found

            def loader(way, step):
                """What loads a vector, its first element being place elements from an address."""

                def load(address, place, some):
                    if way == "splat":
                        found = _load(builder, element, address)
                        found = builder.fpext(found, F32) if element == F16 else found
                        return _splat(builder, found)
                    if way == "run":
                        return widened(some.load(element, _plus(builder, address, place, size)))
                    begin = builder.add(address, builder.mul(place, step))
                    return widened(some.gather(element, begin, step))

                return load

            loads = [loader(way, memories[1])]
            if factor is not None:
                loads.append(loader(factor, memories[4]))

            def block(begin, vectors):
                places = [builder.add(begin, constant(LANES * v)) for v in range(vectors)]
                there = [_First(builder, builder.sub(n, place)) for place in places]
                ends = [_plus(builder, out, place, 4) for place in places]
                totals = [cgutils.alloca_once(builder, wide) for _ in places]
                for some, end, total in zip(there, ends, totals, strict=True):
                    builder.store(some.load(F32, end), total)
                with cgutils.for_range(builder, count) as counter:
                    eighth = builder.mul(counter.index, constant(8))
                    starts = []
                    for base, table in ((memories[0], memories[2]), (memories[3], memories[5])):
                        at = builder.inttoptr(builder.add(table, eighth), ir.PointerType(I64))
                        if len(starts) < len(loads):
                            starts.append(builder.add(base, builder.load(at, align=8)))
                    for place, some, total in zip(places, there, totals, strict=True):
                        found = [
                            load(start, place, some)
                            for load, start in zip(loads, starts, strict=True)
                        ]
                        value = builder.fmul(*found) if factor is not None else found[0]
                        builder.store(operation(builder, builder.load(total), value), total)
                for some, end, total in zip(there, ends, totals, strict=True):
                    some.store(end, builder.load(total))

            done = cgutils.alloca_once(builder, I64)
            builder.store(constant(0), done)
            for vectors in (SIDE_BY_SIDE, 1):
                begin = builder.load(done)
                # Of several vectors the last one may be empty.
                slack = LANES * (vectors - 2) if vectors > 1 else LANES - 1
                left = builder.add(builder.sub(n, begin), constant(slack))
                blocks = builder.sdiv(left, constant(LANES * vectors))
                with cgutils.for_range(builder, blocks) as counter:
                    place = builder.mul(counter.index, constant(LANES * vectors))
                    block(builder.add(begin, place), vectors)
                length = builder.mul(blocks, constant(LANES * vectors))
                builder.store(builder.add(begin, length), done)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 9), generate

    return merge


HALVES, SPACED = 8, 16
"""Added to the number of what is done with a series: where its elements are of two bytes, and
where they do not lie together."""

series = _chosen(
    {
        what + narrow + spaced: _series(OPERATIONS[what], element, way)
        for what in (ADD, MUL, MAX, MIN)
        for narrow, element in ((0, F32), (HALVES, F16))
        for spaced, way in ((0, "run"), (SPACED, "apart"))
    }
)

PAIRS, SCALED, SCALES, SCATTERED = range(4)
"""How the elements of two memories lie that are multiplied: both together, one value on the right
or on the left, or in any way."""

WAYS = {
    PAIRS: ("run", "run"),
    SCALED: ("run", "splat"),
    SCALES: ("splat", "run"),
    SCATTERED: ("apart", "apart"),
}

series_of_products = _chosen(
    {
        way + narrow: _series(_add, element, *ways)
        for way, ways in WAYS.items()
        for narrow, element in ((0, F32), (HALVES, F16))
    }
)


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


@intrinsic
def gather_floats(context, out, source, step, n):
    """out[i] = the float32 at source + i * step, for i < n."""
    del context

    def generate(context, builder, sig, arguments):
        del sig
        out, source, step, n = arguments
        if not WIDE:
            with cgutils.for_range(builder, n) as counter:
                begin = builder.add(source, builder.mul(counter.index, step))
                end = _plus(builder, out, counter.index, 4)
                _put(builder, _load(builder, F32, begin), end)
            return context.get_dummy_value()
        count = ir.Constant(I64, LANES)
        chunks = builder.sdiv(builder.add(n, ir.Constant(I64, LANES - 1)), count)
        with cgutils.for_range(builder, chunks) as counter:
            index = builder.mul(counter.index, count)
            begin = builder.add(source, builder.mul(index, step))
            some = _First(builder, builder.sub(n, index))
            some.store(_plus(builder, out, index, 4), some.gather(F32, begin, step))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


LINE = 64
"""Bytes that caches hold together."""

LONGEST_READ, LONGEST_WRITTEN = 4096, 8192
"""Bytes of a block that are asked for ahead of it; what is read has several such blocks."""


def _hint(is_written):
    """The intrinsic that asks for the line at an address, which is about to be read or written."""

    @intrinsic
    def ask(context, address):
        del context

        def generate(context, builder, sig, arguments):
            del sig
            pointer = ir.PointerType(I8)
            prefetch = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32]),
                "llvm.prefetch.p0",
            )
            where = builder.inttoptr(arguments[0], pointer)
            builder.call(prefetch, [where, *(ir.Constant(I32, n) for n in (is_written, 3, 1))])
            return context.get_dummy_value()

        return types.void(types.int64), generate

    return ask


ask_to_read, ask_to_write = (_hint(n) for n in (0, 1))


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


def _rows(kept, wanted, is_gathered=False, is_spread=False, is_added=False):
    """The intrinsic that copies rows of at most LANES elements each, as one masked vector.

    Row i of out begins i * step further on, and that of source where[i]; if spread, it is the other
    way round. Its elements lie together; if gathered, those of the source, and of what is spread
    those of out, are as many bytes on as lanes say. kept, wanted: elements of source and out. If
    added, what is there is added to the source's, both floats.
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

            some = _First(builder, n)
            if is_gathered and WIDE:
                longs = ir.PointerType(ir.VectorType(I64, LANES))
                steps = builder.load(builder.inttoptr(lanes, longs), align=8)
            with cgutils.for_range(builder, count) as counter:
                near = builder.mul(counter.index, step)
                far = _load_long(builder, _plus(builder, where, counter.index, 8))
                begin = builder.add(source, near if is_spread else far)
                end = builder.add(out, far if is_spread else near)
                if not is_gathered:
                    found = converted(some.load(kept, begin))
                    if is_added:
                        found = builder.fadd(found, some.load(wanted, end))
                    some.store(end, found)
                elif not WIDE:
                    with cgutils.for_range(builder, n) as lane:
                        apart = _load_long(builder, _plus(builder, lanes, lane.index, 8))
                        if is_spread:
                            at = _plus(builder, begin, lane.index, _bytes(kept))
                            to = builder.add(end, apart)
                        else:
                            at = builder.add(begin, apart)
                            to = _plus(builder, end, lane.index, _bytes(wanted))
                        found = converted(_load(builder, kept, at))
                        if is_added:
                            found = builder.fadd(found, _load(builder, wanted, to))
                        _put(builder, found, to)
                elif is_spread:
                    addresses = builder.add(_splat(builder, end), steps)
                    some.scatter_at(addresses, converted(some.load(kept, begin)))
                else:
                    addresses = builder.add(_splat(builder, begin), steps)
                    found = converted(some.gather_at(kept, addresses))
                    if is_added:
                        found = builder.fadd(found, some.load(wanted, end))
                    some.store(end, found)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 7), generate

    return copy_rows


word_rows, gathered_words = _rows(I32, I32), _rows(I32, I32, is_gathered=True)
gathered_halves = _rows(I16, I16, is_gathered=True)
wide_rows, gathered_wide = _rows(F16, F32), _rows(F16, F32, is_gathered=True)
spread_words, scattered_words = (_rows(F32, F32, gathered, True) for gathered in (False, True))
added_words, added_apart = (_rows(F32, F32, gathered, is_added=True) for gathered in (False, True))
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


@njit(inline="always", **OPTIONS)
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


@njit(inline="always", **OPTIONS)
def _copy_box(target, source, run, unit, n0, n1, n2, s0, s1, s2, t0, t1, t2):
    for i in range(n0):
        for j in range(n1):
            for k in range(n2):
                _copy_one(
                    target + i * t0 + j * t1 + k * t2, source + i * s0 + j * s1 + k * s2, run, unit
                )


@njit(**OPTIONS)
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


@njit("void(int64[::1])", **OPTIONS)
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

# A chain is a list of steps on registers, which are BLOCK elements each of float32. A step is a row
# of int64: what it does; to which register; with what (memory, a register, a constant); whether
# that stands first; an address, or which register or constant; bytes of an element there; where a
# series goes on, or offsets of the elements of a block, or 0; then its strides. A series is memory
# at several places, as many as the fourth number says, none of which stands first; if the next row
# is a factor, a sum of products with what is at places of that row's own. Constants are a table of
# float32.

STEP_HEAD = 7
MEMORY, REGISTER, CONSTANT, SERIES, FACTOR = range(5)


@njit(**OPTIONS)
def _merge_series(what, out, n, count, a, stride, where, size):
    """Merge memory at some places into n elements of a register."""
    number = what + (HALVES if size == 2 else 0) + (SPACED if stride != size else 0)
    series(number, out, n, count, a, stride, where, 0, 0, where)


@njit(**OPTIONS)
def _add_products(out, n, count, a, stride, where, b, b_stride, b_where, size):
    """Add products of memory at some places to n elements of a register."""
    way = SCATTERED
    if stride == size and b_stride == size:
        way = PAIRS
    elif stride == size and b_stride == 0:
        way = SCALED
    elif stride == 0 and b_stride == size:
        way = SCALES
    number = way + (HALVES if size == 2 else 0)
    series_of_products(number, out, n, count, a, stride, where, b, b_stride, b_where)


@njit(**OPTIONS)
def _vectors(what, out, a, b, n):
    vectors(what, out, a, b, n)


@njit(**OPTIONS)
def _values(what, out, a, b, n):
    values(what, out, a, b, n)


NOWHERE = np.zeros(1, np.int64)


@njit(**OPTIONS)
def _gather(out, source, lanes, n, size, nowhere):
    """Take n elements, each from an offset of its own."""
    for i in range(0, n, LANES):
        width = min(LANES, n - i)
        if size == 4:
            gathered_words(out + i * 4, source, 0, nowhere, 1, lanes + i * 8, width)
        else:
            gathered_wide(out + i * 4, source, 0, nowhere, 1, lanes + i * 8, width)


@njit(**OPTIONS)
def _store(at, size, lanes, register, rows, columns, by_row, by_column, nowhere):
    """Put rows times columns elements of a register into memory."""
    n = columns
    if lanes != 0:
        for i in range(0, rows * columns, LANES):
            width = min(LANES, rows * columns - i)
            if size == 4:
                scattered_words(at, register + i * 4, 0, nowhere, 1, lanes + i * 8, width)
            else:
                scattered_narrow(at, register + i * 4, 0, nowhere, 1, lanes + i * 8, width)
        return
    if rows == 1 or by_row == columns * by_column:
        n = rows * columns
        rows = 1
    for i in range(rows):
        end, found = at + i * by_row, register + i * columns * 4
        if by_column == size:
            if size == 4:
                take(end, end, found, n)
            else:
                narrow(end, end, found, n)
            continue
        for j in range(n):
            if size == 4:
                write_float(end + j * by_column, read_float(found + j * 4))
            else:
                write_half(end + j * by_column, read_float(found + j * 4))


@njit(**OPTIONS)
def _do(what, first, at, size, lanes, register, other, rows, columns, by_row, by_column, nowhere):
    """A step with memory on rows times columns elements; other: address of a spare register."""
    n = rows * columns
    source = at
    if lanes != 0:
        source = other
        _gather(other, at, lanes, n, size, nowhere)
    elif size == 4 and by_column == 4 and (rows == 1 or by_row == columns * 4):
        pass
    elif size == 4 and by_column == 4 and first == 0:
        for i in range(rows):
            out = register + i * columns * 4
            _vectors(what, out, out, at + i * by_row, columns)
        return
    elif by_column == 0 and size == 4 and first == 0:
        if by_row == 0:
            _values(what, register, register, read_float(at), n)
            return
        for i in range(rows):
            out = register + i * columns * 4
            _values(what, out, out, read_float(at + i * by_row), columns)
        return
    else:
        source = other
        for i in range(rows):
            out = other + i * columns * 4
            begin = at + i * by_row
            if by_column == size:
                if size == 4:
                    take(out, out, begin, columns)
                else:
                    widen(out, out, begin, columns)
            elif size == 4:
                gather_floats(out, begin, by_column, columns)
            else:
                for j in range(columns):
                    write_float(out + j * 4, read_half(begin + j * by_column))
    if first == 0:
        _vectors(what, register, register, source, n)
    else:
        _vectors(what, register, source, register, n)


@njit("void(int64[::1], int64[:,::1], float32[::1], int64)", **OPTIONS)
def chain(sizes, steps, constants, base):
    """Do all steps on every block of an array of two dimensions or more.

    base: address of three registers.
    """
    rank = len(sizes)
    rows, columns = sizes[rank - 2], sizes[rank - 1]
    r, c = STEP_HEAD + rank - 2, STEP_HEAD + rank - 1
    other = base + 2 * BLOCK * 4
    nowhere = NOWHERE.ctypes.data
    where = steps[:, 4].copy()
    count = len(steps)
    wide = min(columns, BLOCK)
    high = max(1, BLOCK // wide)
    outer = 1
    for d in range(rank - 2):
        outer *= sizes[d]
    index = np.zeros(rank, np.int64)
    for _ in range(outer):
        if rank > 2:
            for s in range(count):
                if steps[s, 2] == MEMORY:
                    ahead = where[s] + steps[s, STEP_HEAD + rank - 3]
                    extent = (rows - 1) * abs(steps[s, r]) + (columns - 1) * abs(steps[s, c]) + 4
                    for line in range(0, min(extent, LONGEST_READ), LINE):
                        ask_to_read(ahead + line)
        for row in range(0, rows, high):
            height = min(high, rows - row)
            for column in range(0, columns, wide):
                width = min(wide, columns - column)
                for s in range(count):
                    what, kind, first, size = steps[s, 0], steps[s, 2], steps[s, 3], steps[s, 5]
                    by_row, by_column, more = steps[s, r], steps[s, c], steps[s, 6]
                    at = where[s] + row * by_row + column * by_column
                    register = base + steps[s, 1] * BLOCK * 4
                    if what == STORE:
                        _store(
                            *(at, size, more, register, height, width, by_row, by_column, nowhere)
                        )
                    elif kind == MEMORY:
                        _do(
                            *(what, first, at, size, more, register, other, height, width),
                            *(by_row, by_column, nowhere),
                        )
                    elif kind == REGISTER:
                        there = base + steps[s, 4] * BLOCK * 4
                        _vectors(what, register, register, there, height * width)
                    elif kind == CONSTANT and first == 0:
                        value = constants[steps[s, 4]]
                        _values(what, register, register, value, height * width)
                    elif kind == CONSTANT:
                        _values(TAKE, other, other, constants[steps[s, 4]], height * width)
                        _vectors(what, register, other, register, height * width)
                    elif kind == SERIES:
                        # A series is never the last step.
                        is_product = steps[s + 1, 2] == FACTOR
                        f_row, f_column = steps[s + 1, r], steps[s + 1, c]
                        beside = where[s + 1] + row * f_row + column * f_column
                        n, lines = width, height
                        if by_row == width * by_column:
                            if not is_product or f_row == width * f_column:
                                n, lines = height * width, 1
                        for i in range(lines):
                            out = register + i * width * 4
                            if is_product:
                                begin = beside + i * f_row
                                _add_products(
                                    *(out, n, first, at + i * by_row, by_column, more),
                                    *(begin, f_column, steps[s + 1, 6], size),
                                )
                            else:
                                _merge_series(
                                    what, out, n, first, at + i * by_row, by_column, more, size
                                )
        d = rank - 3
        while d >= 0:
            index[d] += 1
            for s in range(count):
                where[s] += steps[s, STEP_HEAD + d]
            if index[d] < sizes[d]:
                break
            for s in range(count):
                where[s] -= steps[s, STEP_HEAD + d] * sizes[d]
            index[d] = 0
            d -= 1


@njit("void(int64[::1], int64[::1], int64[::1])", **OPTIONS)
def merge(head, cells, where):
    """Merge blocks of float32 that lie apart, in turn, into blocks that lie a step apart.

    head: address of the first result, bytes from one to the next, elements of a block, what is
    done. cells: for each result the address of its first block. where: bytes on to each block.
    """
    first, step, n, what = head[0], head[1], head[2], head[3]
    further = where.ctypes.data + where.itemsize
    for c in range(len(cells)):
        out, source = first + c * step, cells[c]
        _vectors(TAKE, out, out, source + where[0], n)
        _merge_series(what, out, n, len(where) - 1, source, 4, further, 4)


# Routes

# A route fills the blocks of a variable from those of another. Tables of int64 say of each axis of
# a block, for each cell along it, where its elements are found; what is found along all axes is
# added. Offsets from FILL on say that there is nothing to be found, from ABSENT on that another
# route brings it.

FILL, ABSENT = 1 << 50, 1 << 56
BY_WORDS, BY_BYTES, GATHERED, FILLED = range(4)


@njit(**OPTIONS)
def _bring(kind, out, step, source, where, count, lanes, n, unit):
    """A run of each of some rows."""
    if kind == BY_WORDS:
        word_rows(out, source, step, where, count, lanes, n)
    elif kind == BY_BYTES:
        for i in range(count):
            copy_bytes(out + i * step, source + read_long(where + i * 8), n)
    elif unit == 4:
        for i in range(0, n, LANES):
            gathered_words(
                out + i * 4, source, step, where, count, lanes + i * 8, min(LANES, n - i)
            )
    elif unit == 2:
        for i in range(0, n, LANES):
            gathered_halves(
                out + i * 2, source, step, where, count, lanes + i * 8, min(LANES, n - i)
            )
    else:
        for i in range(count):
            begin, end = source + read_long(where + i * 8), out + i * step
            for j in range(n):
                at = begin + read_long(lanes + j * 8)
                if unit == 8:
                    write8(end + j * 8, read8(at))
                else:
                    write1(end + j, read1(at))


@njit(**OPTIONS)
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


@njit(**OPTIONS)
def _elements(kind, n, unit):
    """Elements of a run."""
    if kind == BY_WORDS:
        return n * 4 // unit
    return n // unit if kind == BY_BYTES else n


@njit(
    "void(int64[::1], int64[::1], int64[:,::1], int64[:,::1], int64[::1], int64[:,::1],"
    "int64[:,::1], int64[::1], int64[::1])",
    **OPTIONS,
)
def route(head, strides, cells, spans, entries, rows, runs, lanes, replicas):
    """Fill all blocks of a variable with what is found in another, as tables say.

    head: addresses of the source and the target, bytes of an element, the bits that fill.
    strides: bytes from one index to the next on each axis but the last one. cells: bytes to each
    cell, bytes of its block if it lies together and is brought by this route alone, and its row
    of spans on each axis. spans: first, end. On the first axes these are entries, which say where
    an index is found; on the last but one rows: first entry, how many, bytes on in the block, FILL
    or ABSENT or 0; on the last one runs: bytes on in the block, where found, length, kind.
    replicas: bytes to each.
    """
    source, target, unit, fill = head[0], head[1], head[2], head[3]
    outer = len(strides) - 1
    step = strides[outer]
    table, where = lanes.ctypes.data, entries.ctypes.data
    index = np.zeros(outer, np.int64)
    offsets, steps = np.zeros(outer + 1, np.int64), np.zeros(outer + 1, np.int64)
    for c in range(len(cells)):
        begin, whole = target + cells[c, 0], cells[c, 1]
        if c + 1 < len(cells):
            ahead = target + cells[c + 1, 0]
            for line in range(0, min(cells[c + 1, 1], LONGEST_WRITTEN), LINE):
                ask_to_write(ahead + line)
        points = 1
        for d in range(outer):
            span = cells[c, d + 2]
            points *= spans[span, 1] - spans[span, 0]
            index[d] = 0
            offsets[d + 1] = offsets[d] + entries[spans[span, 0]]
            steps[d + 1] = 0
        span = cells[c, outer + 2]
        first_row, last_row = spans[span, 0], spans[span, 1]
        span = cells[c, outer + 3]
        first_run, last_run = spans[span, 0], spans[span, 1]
        for replica in range(len(replicas)):
            if replica > 0 and whole > 0:
                copy_bytes(begin + replicas[replica], begin, whole)
                continue
            for _ in range(points):
                offset, at = offsets[outer], begin + steps[outer]
                for r in range(first_row, last_row):
                    count, state = rows[r, 1], offset + rows[r, 3]
                    if state >= ABSENT:
                        continue
                    for k in range(first_run, last_run):
                        kind, n = runs[k, 3], runs[k, 2]
                        out = at + rows[r, 2] + runs[k, 0]
                        if replica > 0:
                            n = _elements(kind, n, unit) * unit
                            for i in range(count):
                                there = out + i * step
                                copy_bytes(there + replicas[replica], there, n)
                        elif kind == FILLED or state >= FILL:
                            _fill(out, step, count, _elements(kind, n, unit), unit, fill)
                        else:
                            found, near = source + offset, table
                            if kind == GATHERED:
                                near += runs[k, 1] * 8
                            else:
                                found += runs[k, 1]
                            _bring(
                                kind, out, step, found, where + rows[r, 0] * 8, count, near, n, unit
                            )
                d = outer - 1
                while d >= 0:
                    index[d] += 1
                    span = cells[c, d + 2]
                    if index[d] < spans[span, 1] - spans[span, 0]:
                        break
                    index[d] = 0
                    d -= 1
                for e in range(max(d, 0), outer):
                    entry = entries[spans[cells[c, e + 2], 0] + index[e]]
                    offsets[e + 1] = offsets[e] + entry
                    steps[e + 1] = steps[e] + index[e] * strides[e]


# Sums of products


def _micro_kernel(vectors):
    """The intrinsic that multiplies a panel of rows by the first vectors of a panel of columns.

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
                for _ in range(ROWS)
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
                for r in range(ROWS):
                    left = _splat(builder, _load(builder, F32, plus(begin, 4 * r)))
                    for v in range(vectors):
                        total = builder.load(totals[r][v])
                        builder.store(builder.call(fma, [left, right[v], total]), totals[r][v])
            into = [
                (plus(out, 4 * (r * COLUMNS + v * LANES)), totals[r][v])
                for r in range(ROWS)
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


multiply_panels, multiply_vector = _micro_kernel(VECTORS), _micro_kernel(1)


@njit(**OPTIONS)
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


@njit(**OPTIONS)
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


@njit(**OPTIONS)
def _store_tile(tile, base, size, adds, rows, count, runs, first, last, lanes):
    """Put count rows of results, or add them to floats; rows: where they begin."""
    step = COLUMNS * 4
    if adds:
        # All is read before any is written: a load waits for a masked store that it touches.
        for k in range(first, last):
            found, n, end = tile + runs[k, 0] * 4, runs[k, 1], base + runs[k, 2]
            table = lanes.ctypes.data + runs[k, 3] * 8
            if runs[k, 4] == TOGETHER:
                added_words(found, end, step, rows, count, table, n)
            else:
                added_apart(found, end, step, rows, count, table, n)
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


@njit(
    "void(int64[::1], int64[:,::1], int64[::1], int64[::1], int64[:,::1], int64[::1], int64[::1],"
    "int64[:,::1], int64[::1], int64[::1], int64[::1], int64[::1], int64)",
    **OPTIONS,
)
def products(
    head,
    batch,
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
    of packed rows, of a panel or all panels of columns, and of a tile of results. batch: bytes to
    each of the three, and whether products are added to floats that are there. runs: of a panel
    of columns, (first lane, how many, bytes on, entry of columns, together or not); spans: the
    first of each panel, and the end. known: what is kept, and what is packed already.
    """
    a, b, out = head[0], head[1], head[2]
    count, packed, kept, tile = head[6], head[7], head[8], head[9]
    panels, across = (len(rows) + ROWS - 1) // ROWS, len(spans) - 1
    length, size = len(depth) * ROWS * 4, len(depth) * COLUMNS * 4
    for i in range(len(batch)):
        mine = packed + i * panels * length if known & ROWS_KEPT else packed
        if not known & ROWS_PACKED:
            _pack_rows(a + batch[i, 0], head[3], rows, depth, mine)
        for q in range(across):
            begin = b + batch[i, 1]
            panel = kept + (i * across + q) * size if known & COLUMNS_KEPT else kept
            if not known & COLUMNS_PACKED:
                _pack_columns(begin, head[4], runs, spans[q], spans[q + 1], columns, depths, panel)
            is_narrow = count - q * COLUMNS <= LANES
            for p in range(panels):
                for k in range(0, len(depth), TERMS):
                    terms = min(TERMS, len(depth) - k)
                    left, right = mine + p * length + k * ROWS * 4, panel + k * COLUMNS * 4
                    if is_narrow:
                        multiply_vector(left, right, terms, tile, k)
                    else:
                        multiply_panels(left, right, terms, tile, k)
                _store_tile(
                    tile,
                    out + batch[i, 2],
                    head[5],
                    batch[i, 3],
                    row_results.ctypes.data + p * ROWS * 8,
                    min(ROWS, len(rows) - p * ROWS),
                    result_runs,
                    result_spans[q],
                    result_spans[q + 1],
                    column_results,
                )
