# pyright: basic
"""The kernel that compares two arrays bit for bit. Needs numba."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from .hardware import OPTIONS, compiled
from .tables import EQUAL_FIELDS, EQUAL_LEFT, EQUAL_RANK, EQUAL_RIGHT, EQUAL_UNIT
from .vectors import I64, intrinsic, read1, read2, read4, read_long, write_long


@intrinsic
def _bytes_differ(context, left, right, n):
    """The bits in which any of n contiguous bytes differ.

    Compares vectors of 64 bytes, then powers of two.
    """
    del context

    def generate(context, builder, sig, arguments):
        del context, sig
        left, right, n = arguments
        vector = ir.VectorType(I64, 8)
        seen = cgutils.alloca_once_value(builder, ir.Constant(vector, [0] * 8))
        rest = cgutils.alloca_once_value(builder, ir.Constant(I64, 0))

        def found(address, offset, kind):
            pointer = builder.inttoptr(builder.add(address, offset), ir.PointerType(kind))
            return builder.load(pointer, align=1)

        def differing(offset, kind):
            return builder.xor(found(left, offset, kind), found(right, offset, kind))

        whole = builder.lshr(n, ir.Constant(I64, 6))
        with cgutils.for_range(builder, whole) as counter:
            offset = builder.shl(counter.index, ir.Constant(I64, 6))
            builder.store(builder.or_(builder.load(seen), differing(offset, vector)), seen)
        done = cgutils.alloca_once_value(builder, ir.Constant(I64, 0))
        builder.store(builder.shl(whole, ir.Constant(I64, 6)), done)
        for size in (32, 16, 8, 4, 2, 1):
            bit = builder.and_(n, ir.Constant(I64, size))
            with builder.if_then(builder.icmp_signed("!=", bit, ir.Constant(I64, 0))):
                for part in range(0, size, 8):
                    kind = ir.IntType(8 * min(size, 8))
                    offset = builder.add(builder.load(done), ir.Constant(I64, part))
                    bits = differing(offset, kind)
                    bits = bits if size >= 8 else builder.zext(bits, I64)
                    builder.store(builder.or_(builder.load(rest), bits), rest)
                builder.store(builder.add(builder.load(done), ir.Constant(I64, size)), done)
        lanes = builder.load(seen)
        bits = builder.load(rest)
        for lane in range(8):
            element = builder.extract_element(lanes, ir.Constant(ir.IntType(32), lane))
            bits = builder.or_(bits, element)
        return bits

    return types.int64(types.int64, types.int64, types.int64), generate


@compiled("int64(int64, int64, int64, int64, int64, int64)", **OPTIONS)
def _elements_differ(left, right, unit, n, left_step, right_step):
    """The bits in which any of n strided elements differ."""
    seen = 0
    if unit == 4:
        for _ in range(n):
            seen |= read4(left) ^ read4(right)
            left, right = left + left_step, right + right_step
    elif unit == 2:
        for _ in range(n):
            seen |= read2(left) ^ read2(right)
            left, right = left + left_step, right + right_step
    elif unit == 1:
        for _ in range(n):
            seen |= read1(left) ^ read1(right)
            left, right = left + left_step, right + right_step
    else:
        for _ in range(n):
            seen |= read_long(left) ^ read_long(right)
            left, right = left + left_step, right + right_step
    return seen


@compiled("int64(int64)", **OPTIONS)
def differ(table):
    """Whether two arrays of one shape differ in any bit. They have elements, and at least two axes.

    The last two axes are separate loops. The indices of the other axes are kept in the last columns
    of the table, and are zero before and after, unless the arrays differ.
    """
    rank, unit = read_long(table + EQUAL_RANK * 8), read_long(table + EQUAL_UNIT * 8)
    left, right = read_long(table + EQUAL_LEFT * 8), read_long(table + EQUAL_RIGHT * 8)
    sizes = table + EQUAL_FIELDS * 8
    lefts, rights, indices = sizes + rank * 8, sizes + rank * 16, sizes + rank * 24
    last, rows = (rank - 1) * 8, (rank - 2) * 8
    n, row_count = read_long(sizes + last), read_long(sizes + rows)
    left_step, right_step = read_long(lefts + last), read_long(rights + last)
    left_row, right_row = read_long(lefts + rows), read_long(rights + rows)
    is_contiguous = left_step == unit and right_step == unit
    while True:
        a, b = left, right
        for _ in range(row_count):
            if is_contiguous:
                seen = _bytes_differ(a, b, n * unit)
            else:
                seen = _elements_differ(a, b, unit, n, left_step, right_step)
            if seen != 0:
                return 1
            a, b = a + left_row, b + right_row
        d = rank - 3
        while d >= 0:
            index = read_long(indices + d * 8) + 1
            left, right = left + read_long(lefts + d * 8), right + read_long(rights + d * 8)
            if index < read_long(sizes + d * 8):
                write_long(indices + d * 8, index)
                break
            write_long(indices + d * 8, 0)
            left, right = (
                left - index * read_long(lefts + d * 8),
                right - index * read_long(rights + d * 8),
            )
            d -= 1
        if d < 0:
            return 0
