# pyright: basic
"""Intrinsics that load, store and combine vectors at addresses. Needs numba.

A loop goes by vectors of LANES elements, and its last vector has fewer. In a form with masks, for
AVX-512, the last vector is loaded and stored under a mask. Elsewhere masked stores are slow or
missing, so it is stored in halves. Elements at a stride are loaded and stored one by one.
"""

from __future__ import annotations

from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

from .hardware import FORM
from .tables import LANES

intrinsic = cast(Any, _intrinsic)

F16, F32 = ir.HalfType(), ir.FloatType()
I1, I8, I16, I32, I64 = (ir.IntType(n) for n in (1, 8, 16, 32, 64))


# Calls


def code_address(kernel):
    """The address of the code of a kernel that has one signature."""
    (overload,) = kernel.overloads.values()
    return overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name)


@intrinsic
def call_at(context, code, arguments):
    """Call the kernel whose code is at an address, with a tuple of int64.

    Numba compiles a function again in each of its direct and indirect callers. A large function is
    called at its address instead, so that it is compiled once.
    """
    del context
    count = len(arguments)

    def generate(context, builder, sig, values):
        del sig
        code, packed = values
        kinds = [types.int64] * count
        kind = context.call_conv.get_function_type(types.void, kinds)
        function = builder.inttoptr(code, kind.as_pointer())
        given = cgutils.unpack_tuple(builder, packed)
        context.call_conv.call_function(builder, function, types.void, kinds, given)
        return context.get_dummy_value()

    return types.void(types.int64, types.UniTuple(types.int64, count)), generate


# Loads and stores


def byte_count(kind):
    """Bytes of a type of LLVM."""
    if isinstance(kind, ir.VectorType):
        return kind.count * byte_count(kind.element)
    return {F16: 2, F32: 4}[kind] if kind in (F16, F32) else kind.width // 8


def _alignment(kind):
    """The alignment of elements; those wider than a float may consist of several elements."""
    return min(4, byte_count(kind.element if isinstance(kind, ir.VectorType) else kind))


def plus(builder, address, count, size):
    """The address `count` elements after an address."""
    return builder.add(address, builder.mul(count, ir.Constant(I64, size)))


def load(builder, kind, address):
    """The value at an address, a vector or not, aligned as its elements are."""
    return builder.load(builder.inttoptr(address, ir.PointerType(kind)), align=_alignment(kind))


def load_first(builder, element, address, n, width):
    """A vector of the first n elements at an address, and zeros: `width` elements."""
    mask = ir.Constant(ir.VectorType(I1, width), [lane < n for lane in range(width)])
    return _masked(builder, "load", address, mask, ir.VectorType(element, width))


def load_long(builder, address):
    """The int64 at an aligned address."""
    return builder.load(builder.inttoptr(address, ir.PointerType(I64)), align=8)


def put(builder, value, address):
    """Store a value, a vector or not, aligned as its elements are."""
    pointer = builder.inttoptr(address, ir.PointerType(value.type))
    builder.store(value, pointer, align=_alignment(value.type))


def some_lanes(builder, value, lanes, width=LANES):
    """A vector of selected lanes of another; lanes from `width` on are undefined."""
    undefined = ir.Constant(value.type, ir.Undefined)
    chosen = [i if i < width else 0 for i in lanes]
    mask = ir.Constant(ir.VectorType(I32, len(chosen)), chosen)
    return builder.shuffle_vector(value, undefined, mask)


def splat(builder, value, width=LANES):
    """A vector with one value in all lanes."""
    vector = ir.VectorType(value.type, width)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(I32, 0))
    return some_lanes(builder, first, [0] * width)


def _masked(builder, kind, address, mask, value):
    """A masked load or store of a vector.

    Args:
        value: the vector to store, or the type to load.
    """
    vector = value if kind == "load" else value.type
    element, masks = vector.element, ir.VectorType(I1, vector.count)
    name = {F32: "f32", F16: "f16", I16: "i16", I32: "i32"}[element]
    where = ir.PointerType(vector)
    result, first = (vector, []) if kind == "load" else (ir.VoidType(), [vector])
    last = [vector] if kind == "load" else []
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(result, [*first, where, I32, masks, *last]),
        f"llvm.masked.{kind}.v{vector.count}{name}.p0",
    )
    pointer, align = builder.inttoptr(address, where), ir.Constant(I32, byte_count(element))
    if kind == "load":
        return builder.call(function, [pointer, align, mask, ir.Constant(vector, None)])
    return builder.call(function, [value, pointer, align, mask])


class FirstLanes:
    """The first n lanes of a vector.

    Attributes:
        n: an i64 value, or None for all lanes.
    """

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
        self.mask = builder.icmp_signed("<", lanes, splat(builder, count))

    def load(self, element, address):
        """The contiguous elements at an address; the other lanes are undefined."""
        vector = ir.VectorType(element, LANES)
        if self.is_whole:
            return load(self.builder, vector, address)
        if FORM.has_masks or byte_count(element) == 4:
            return _masked(self.builder, "load", address, self.mask, vector)
        return self._load_in_parts(vector, address)

    def _load_in_parts(self, vector, address):
        """Load by powers of two, from the end; each part is put in front of the parts before."""
        builder, element = self.builder, vector.element
        found = cgutils.alloca_once(builder, vector)
        with builder.if_else(self._has(LANES)) as (whole, parts):
            with whole:
                builder.store(load(builder, vector, address), found)
            with parts:
                for width in (1, 2, 4, 8):
                    with builder.if_then(self._has(width)):
                        # The number of elements before this part and all narrower parts.
                        before = builder.and_(self.n, ir.Constant(I64, -2 * width))
                        part = load(
                            builder,
                            ir.VectorType(element, width),
                            plus(builder, address, before, byte_count(element)),
                        )
                        part = some_lanes(builder, part, range(LANES), width)
                        rest = builder.load(found)
                        lanes = [i if i < width else LANES + i - width for i in range(LANES)]
                        mask = ir.Constant(ir.VectorType(I32, LANES), lanes)
                        builder.store(builder.shuffle_vector(part, rest, mask), found)
        return builder.load(found)

    def store(self, address, value):
        """Store the lanes as contiguous elements; memory beyond them is not touched."""
        builder, element = self.builder, value.type.element
        if self.is_whole:
            put(builder, value, address)
            return
        if FORM.has_masks:
            _masked(builder, "store", address, self.mask, value)
            return
        with builder.if_else(self._has(LANES)) as (whole, parts):
            with whole:
                put(builder, value, address)
            with parts:
                for width in (8, 4, 2, 1):
                    low = some_lanes(builder, value, range(width))
                    high = some_lanes(builder, value, range(width, 2 * width))
                    here = self._has(width)
                    with builder.if_then(here):
                        put(builder, low, address)
                    value = builder.select(here, high, low)
                    length = builder.and_(self.n, ir.Constant(I64, width))
                    address = plus(builder, address, length, byte_count(element))

    def gather(self, element, address, step):
        """Elements that are `step` bytes apart, an i64 value; the other lanes are undefined.

        Loads them one by one, which is no slower than a gather, and twice as fast on some hosts.
        """
        builder, vector = self.builder, ir.VectorType(element, LANES)
        if self.is_whole:
            value = ir.Constant(vector, ir.Undefined)
            for lane in range(LANES):
                one = load(builder, element, address)
                value = builder.insert_element(value, one, ir.Constant(I32, lane))
                address = builder.add(address, step)
            return value
        room = cgutils.alloca_once(builder, vector)
        begin = builder.ptrtoint(room, I64)
        with cgutils.for_range(builder, self.n) as lane:
            one = load(builder, element, builder.add(address, builder.mul(lane.index, step)))
            put(builder, one, plus(builder, begin, lane.index, byte_count(element)))
        return builder.load(room)

    def scatter(self, address, step, value):
        """Store the lanes as elements `step` bytes apart, an i64 value."""
        builder = self.builder
        if self.is_whole:
            for lane in range(LANES):
                put(builder, builder.extract_element(value, ir.Constant(I32, lane)), address)
                address = builder.add(address, step)
            return
        with cgutils.for_range(builder, self.n) as lane:
            found = builder.extract_element(value, builder.trunc(lane.index, I32))
            put(builder, found, builder.add(address, builder.mul(lane.index, step)))

    def _has(self, width):
        """Whether n, as a sum of powers of two, contains this one."""
        part = self.builder.and_(self.n, ir.Constant(I64, width))
        return self.builder.icmp_signed("!=", part, ir.Constant(I64, 0))


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
read_long, write_long = _reader(I64, types.int64), _writer(I64, types.int64)
read_float, read_half = _reader(F32, types.float32), _reader(F16, types.float32)
write_float = _writer(F32, types.float32)


def prefetch(builder, address, to_write):
    """Prefetch the cache line at an address, which may be invalid."""
    pointer = ir.PointerType(I8)
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32]),
        "llvm.prefetch.p0",
    )
    where = builder.inttoptr(address, pointer)
    builder.call(function, [where, *(ir.Constant(I32, n) for n in (int(to_write), 3, 1))])


def _prefetcher(to_write):
    """The intrinsic that prefetches the cache line at an address for writing or reading."""

    @intrinsic
    def ask(context, address):
        del context

        def generate(context, builder, sig, arguments):
            del sig
            prefetch(builder, arguments[0], to_write=to_write)
            return context.get_dummy_value()

        return types.void(types.int64), generate

    return ask


prefetch_to_write, prefetch_to_read = _prefetcher(True), _prefetcher(False)


@intrinsic
def copy_bytes(context, out, source, n):
    """Copy n contiguous bytes: vectors of 64, then a power of two at a time."""
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
