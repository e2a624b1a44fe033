# pyright: basic
"""Intrinsics that copy rows of elements, contiguous or gathered. Needs numba."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from .hardware import FORM
from .tables import LANES, LEAST_SIDE
from .vectors import (
    F16,
    F32,
    I8,
    I16,
    I32,
    I64,
    byte_count,
    intrinsic,
    load,
    load_long,
    plus,
    put,
)

UNROLLED = 4
"""Elements of a gathered row that are copied in one iteration of its loop."""

TALL = 8
"""From this many rows on, gathered rows are copied column by column, so an offset is looked up
once.
"""


def _each(builder, n, do):
    """Call `do` with lists of the numbers below n, several at a time."""
    step = ir.Constant(I64, UNROLLED)
    iterations = builder.sdiv(n, step)
    with cgutils.for_range(builder, iterations) as counter:
        first = builder.mul(counter.index, step)
        do([builder.add(first, ir.Constant(I64, i)) for i in range(UNROLLED)])
    done = builder.mul(iterations, step)
    with cgutils.for_range(builder, builder.sub(n, done)) as counter:
        do([builder.add(done, counter.index)])


def _halves(width):
    """A width and all its halves, down to 1."""
    return [width >> i for i in range(width.bit_length())]


def _by_widest(builder, n, widths, do):
    """Call `do` in the branch of the widest width that is at most n; in none if n is less than all.

    Args:
        widths: the widest first.
    """
    width, *narrower = widths
    fits = builder.icmp_signed(">=", n, ir.Constant(I64, width))
    if not narrower:
        with builder.if_then(fits):
            do(width)
        return
    with builder.if_else(fits) as (here, below):
        with here:
            do(width)
        with below:
            _by_widest(builder, n, narrower, do)


def _rows(held, wanted, is_gathered=False, is_spread=False):
    """The intrinsic that copies rows; one that is not gathered has at most LANES elements.

    Row i of the target begins at out + i * step, and its source at source + where[i]. If spread, it
    is the other way round. Elements are contiguous on both sides. If gathered, those of the source,
    or of the target if spread, are at the offsets in `lanes`.

    Args:
        held, wanted: the types of elements in the source and in the target.
    """

    @intrinsic
    def copy_rows(context, out, source, step, where, count, lanes, n):
        del context

        def generate(context, builder, sig, arguments):
            del sig
            out, source, step, where, count, lanes, n = arguments

            def converted(found):
                vector = isinstance(found.type, ir.VectorType)
                type_ = ir.VectorType(wanted, found.type.count) if vector else wanted
                if (held, wanted) == (F16, F32):
                    return builder.fpext(found, type_)
                return builder.fptrunc(found, type_) if (held, wanted) == (F32, F16) else found

            def ends(row):
                """The addresses at which a row begins, in the source and in the target."""
                even = builder.mul(row, step)
                listed = load_long(builder, plus(builder, where, row, 8))
                begin = builder.add(source, even if is_spread else listed)
                return begin, builder.add(out, listed if is_spread else even)

            def offsets(some):
                """The offsets of some elements of a row, in the source and in the target."""
                listed = [load_long(builder, plus(builder, lanes, lane, 8)) for lane in some]
                width = ir.Constant(I64, byte_count(held if is_spread else wanted))
                even = [builder.mul(lane, width) for lane in some]
                return (even, listed) if is_spread else (listed, even)

            def move(row, begins, endings, width=None):
                begin, end = ends(row)
                type_ = ir.VectorType(held, width) if width else held
                for a, b in zip(begins, endings, strict=True):
                    found = load(builder, type_, builder.add(begin, a))
                    put(builder, converted(found), builder.add(end, b))

            def in_two(width):
                """Copy n elements of each row as vectors: the first elements, and the last elements
                if needed.
                """
                last = builder.sub(n, ir.Constant(I64, width))
                zero = ir.Constant(I64, 0)
                with builder.if_else(builder.icmp_signed(">", last, zero)) as (two, one):
                    for branch, firsts in (two, (zero, last)), (one, (zero,)):
                        with branch, cgutils.for_range(builder, count) as counter:
                            begins, endings = (
                                [plus(builder, zero, first, byte_count(kind)) for first in firsts]
                                for kind in (held, wanted)
                            )
                            move(counter.index, begins, endings, width)

            def by_columns(some):
                columns = offsets(some)
                with cgutils.for_range(builder, count) as counter:
                    move(counter.index, *columns)

            if is_gathered:
                is_tall = builder.icmp_signed(">=", count, ir.Constant(I64, TALL))
                with builder.if_else(is_tall) as (tall, flat):
                    with tall:
                        _each(builder, n, by_columns)
                    with flat, cgutils.for_range(builder, count) as counter:
                        row = counter.index
                        _each(builder, n, lambda some: move(row, *offsets(some)))
            else:
                _by_widest(builder, n, _halves(LANES), in_two)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 7), generate

    return copy_rows


def _transposed(builder, vectors):
    """The transposed vectors: vector i has element i of each. There are as many as each has
    elements.
    """
    size = len(vectors)
    for distance in _halves(size)[1:]:
        # Exchange the lanes that have this bit with the vectors that have this bit.
        masks = [
            ir.Constant(
                ir.VectorType(I32, size),
                [
                    size + lane - distance + shift if lane & distance else lane + shift
                    for lane in range(size)
                ],
            )
            for shift in (0, distance)
        ]
        exchanged = list(vectors)
        for i in range(size):
            if not i & distance:
                pair = vectors[i], vectors[i + distance]
                exchanged[i], exchanged[i + distance] = (
                    builder.shuffle_vector(*pair, mask) for mask in masks
                )
        vectors = exchanged
    return vectors


def _transposer(element):
    """The intrinsic that copies rows whose elements are consecutive in the source.

    Element j of row i is at source + lanes[j], i elements further, and is copied to element j of
    the row at out + where[i]. There are at least LEAST_SIDE rows and elements per row.
    """

    @intrinsic
    def transpose(context, out, source, where, count, lanes, n):
        del context
        size = byte_count(element)

        def generate(context, builder, sig, arguments):
            del sig
            out, source, where, count, lanes, n = arguments

            def first_of(block, total, side):
                """The first element of a block; the last block is moved back to end with the
                elements.
                """
                most = builder.sub(total, ir.Constant(I64, side))
                first = builder.mul(block, ir.Constant(I64, side))
                return builder.select(builder.icmp_signed("<", first, most), first, most)

            def blocks(total, side):
                rounded = builder.add(total, ir.Constant(I64, side - 1))
                return cgutils.for_range(builder, builder.sdiv(rounded, ir.Constant(I64, side)))

            def by_blocks(side):
                steps = [ir.Constant(I64, i) for i in range(side)]
                type_ = ir.VectorType(element, side)
                with blocks(n, side) as across:
                    lane = first_of(across.index, n, side)
                    listed = plus(builder, lanes, lane, 8)
                    offsets = [load_long(builder, plus(builder, listed, i, 8)) for i in steps]
                    begins = [builder.add(source, offset) for offset in offsets]
                    on = plus(builder, out, lane, size)
                    with blocks(count, side) as down:
                        row = first_of(down.index, count, side)
                        found = [
                            load(builder, type_, plus(builder, begin, row, size))
                            for begin in begins
                        ]
                        listed = plus(builder, where, row, 8)
                        for i, vector in zip(steps, _transposed(builder, found), strict=True):
                            end = load_long(builder, plus(builder, listed, i, 8))
                            put(builder, vector, builder.add(on, end))

            shorter = builder.select(builder.icmp_signed("<", count, n), count, n)
            widest = FORM.vector_bytes // size
            sides = [side for side in _halves(widest) if side >= LEAST_SIDE]
            _by_widest(builder, shorter, sides, by_blocks)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 6), generate

    return transpose


word_rows, gathered_words = _rows(I32, I32), _rows(I32, I32, is_gathered=True)
gathered_bytes, gathered_halves = (_rows(kind, kind, is_gathered=True) for kind in (I8, I16))
gathered_longs, gathered_quads = (
    _rows(kind, kind, is_gathered=True) for kind in (I64, ir.VectorType(I32, 4))
)
widened_rows, gathered_widened = _rows(F16, F32), _rows(F16, F32, is_gathered=True)
spread_floats, scattered_floats = (_rows(F32, F32, gathered, True) for gathered in (False, True))
spread_halves, scattered_halves = (_rows(F32, F16, gathered, True) for gathered in (False, True))
transposed_words, transposed_longs = (_transposer(kind) for kind in (I32, I64))
