# pyright: basic
"""Intrinsics that copy rows of elements, contiguous or gathered. Needs numba."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from .tables import LANES
from .vectors import (
    F16,
    F32,
    I8,
    I16,
    I32,
    I64,
    FirstLanes,
    byte_count,
    intrinsic,
    load,
    load_long,
    plus,
    put,
)

UNROLLED = 4
"""Elements of a gathered row that are copied in one turn of its loop."""

TALL = 8
"""From this many rows on, gathered rows are copied by columns: an offset is looked up once."""


def _each(builder, n, do):
    """Call `do` with lists of the numbers below n, several at a time."""
    step = ir.Constant(I64, UNROLLED)
    turns = builder.sdiv(n, step)
    with cgutils.for_range(builder, turns) as counter:
        first = builder.mul(counter.index, step)
        do([builder.add(first, ir.Constant(I64, i)) for i in range(UNROLLED)])
    done = builder.mul(turns, step)
    with cgutils.for_range(builder, builder.sub(n, done)) as counter:
        do([builder.add(done, counter.index)])


def _rows(held, wanted, is_gathered=False, is_spread=False):
    """The intrinsic that copies rows; one that is not gathered has at most LANES elements.

    Row i of the target begins at out + i * step, and its source at source + where[i]. If spread, it
    is the other way round. Elements are contiguous on both sides. If gathered, those of the source,
    or of the target if spread, are at the offsets in `lanes`. held, wanted: the types of elements
    in the source and in the target.
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
                if (held, wanted) == (F16, F32):
                    return builder.fpext(found, type_)
                return builder.fptrunc(found, type_) if (held, wanted) == (F32, F16) else found

            def ends(row):
                """The addresses where a row begins, in the source and in the target."""
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

            def move(row, begins, endings):
                begin, end = ends(row)
                for a, b in zip(begins, endings, strict=True):
                    found = load(builder, held, builder.add(begin, a))
                    put(builder, converted(found), builder.add(end, b))

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
                some = FirstLanes(builder, n)
                with cgutils.for_range(builder, count) as counter:
                    begin, end = ends(counter.index)
                    some.store(end, converted(some.load(held, begin)))
            return context.get_dummy_value()

        return types.void(*[types.int64] * 7), generate

    return copy_rows


word_rows, gathered_words = _rows(I32, I32), _rows(I32, I32, is_gathered=True)
gathered_bytes, gathered_halves = (_rows(kind, kind, is_gathered=True) for kind in (I8, I16))
gathered_longs, gathered_quads = (
    _rows(kind, kind, is_gathered=True) for kind in (I64, ir.VectorType(I32, 4))
)
widened_rows, gathered_widened = _rows(F16, F32), _rows(F16, F32, is_gathered=True)
spread_floats, scattered_floats = (_rows(F32, F32, gathered, True) for gathered in (False, True))
spread_halves, scattered_halves = (_rows(F32, F16, gathered, True) for gathered in (False, True))
