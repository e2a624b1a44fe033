# pyright: basic
"""The kernel that computes error bounds and the ratio of errors to them. Needs numba.

It does the operations of reference/merged.py, stages.py and compare.py in their order, on blocks of
elements that stay in the first-level cache, so that its bounds equal theirs to the bit. Masks are
bits of integers. Each task of a block is a separate kernel, called at its address, so that it is
compiled only once.

A loop writes one array: LLVM vectorises a loop only if few pairs of arrays may overlap.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from .hardware import OPTIONS, compiled
from .tables import (
    ACTUAL,
    ACTUAL_BYTES,
    ACTUAL_LARGEST,
    ADD,
    BEGIN_BOUNDS_CODE,
    BEGIN_LEAST_CODE,
    BOUND_FACTOR,
    BOUND_STEP_BY,
    BOUND_STEP_CONSTANT,
    BOUND_STEP_FIELDS,
    BOUND_STEP_OP,
    BOUND_STEPS,
    BY_ITSELF,
    BY_OPERAND,
    COMPARE_CODE,
    DIV,
    END_STAGE_CODE,
    ENDS_CODE,
    ERRORS,
    FETCH_CODE,
    FURTHER,
    FURTHER_COUNT,
    FURTHER_OPERAND,
    GROWTH,
    HAS_SEVERAL,
    IS_DOUBLE,
    LARGEST_SUM,
    LINE,
    LOOK_CODE,
    LOST,
    LOST_PER_SIZE,
    MARK_CODE,
    MAX,
    MERGED_BY,
    MIN,
    MORE_ADDRESS,
    MORE_COUNT,
    MORE_FIELDS,
    MORE_REPEATS,
    MUL,
    NEVER_BELOW,
    NO_VALUE,
    NUMBERS_OF_BOUND,
    OWN_FACTOR,
    READ_ACTUAL_CODE,
    RESULT_LARGEST,
    RESULT_NORMAL,
    RESULT_ROUNDOFF,
    RESULT_SUBNORMAL,
    REVERSED,
    ROUNDOFF,
    ROUNDS_ONCE,
    SELECTED,
    SIZES_OF_TERMS,
    STAGE_CODE,
    STAGE_COUNT,
    STAGE_FACTOR,
    STAGE_FIELDS,
    STAGE_OPERANDS,
    STAGE_POLES,
    STAGE_POSITIVE,
    STAGE_STEPS,
    STAGE_STEPS_END,
    STAGE_ULPS,
    STAGES,
    STEP_CODE,
    SUB,
    SUMMED,
    TINY,
    TINY_IN_ALL,
    VALUES,
)
from .vectors import (
    F32,
    I64,
    call_at,
    code_address,
    copy_bytes,
    intrinsic,
    read_long,
    write_long,
)

BLOCK = 256
"""Elements that are handled at a time."""

ROW_BYTES = 8 * BLOCK

VALUE, ERROR, LEAST, LOW, HIGH = range(5)
ROWS_OF_VALUE = 5
"""Rows of a known value: the value, its error, its lower bound, and the two ends of its
interval."""

KNOWN_BYTES = ROWS_OF_VALUE * ROW_BYTES

MADE, CONDITION, DEVIATION, CONSTANTS, MARKS, RESULTS, FIRST_ROWS = range(7)
"""Rows of a stage: its function's value at a point, its condition and deviation, a constant, and
marks; the actual results. The rows of further operands follow.
"""

IS_LOST, IS_UNKNOWN, IS_ROUGH, MAY_BE_BELOW = 1, 2, 4, 8

INFINITY = np.inf
BITS_OF_INFINITY = 0x7FF0000000000000
BITS_OF_NEGATIVE_INFINITY = -0x10000000000000
BITS_OF_NEGATIVE_ZERO = -0x8000000000000000
BITS_OF_MAGNITUDE = 0x7FFFFFFFFFFFFFFF


F64 = ir.DoubleType()


def _reader(kind, size, numba_type):
    """The intrinsic that reads an element of an array at an address.

    LLVM vectorises a loop if each array begins at a pointer that the loop does not change.

    Args:
        size: bytes of an element.
    """

    @intrinsic
    def read(context, address, index):
        def generate(context, builder, sig, arguments):
            del context, sig
            array = builder.inttoptr(arguments[0], ir.PointerType(kind))
            return builder.load(builder.gep(array, [arguments[1]]), align=size)

        del context, address, index
        return numba_type(types.int64, types.int64), generate

    return read


def _writer(kind, size, numba_type):
    """The intrinsic that writes an element of an array at an address.

    Args:
        size: bytes of an element.
    """

    @intrinsic
    def write(context, address, index, value):
        def generate(context, builder, sig, arguments):
            del sig
            array = builder.inttoptr(arguments[0], ir.PointerType(kind))
            place = builder.gep(array, [arguments[1]])
            builder.store(arguments[2], place, align=size)
            return context.get_dummy_value()

        del context, address, index, value
        return types.void(types.int64, types.int64, numba_type), generate

    return write


get, put = _reader(F64, 8, types.float64), _writer(F64, 8, types.float64)
get_bits, put_bits = _reader(I64, 8, types.int64), _writer(I64, 8, types.int64)
get_float = _reader(F32, 4, types.float32)


def _extreme(order):
    """np.maximum or np.minimum: a NaN wins."""

    @intrinsic
    def extreme(context, a, b):
        def generate(context, builder, sig, arguments):
            del context, sig
            a, b = arguments
            is_first = builder.fcmp_ordered(order, a, b)
            is_first = builder.or_(is_first, builder.fcmp_unordered("uno", a, a))
            return builder.select(is_first, a, b)

        del context, a, b
        return types.float64(types.float64, types.float64), generate

    return extreme


_larger, _smaller = _extreme(">"), _extreme("<")


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def step(values, code, operand, n):
    """Apply a step of a function to values.

    Args:
        operand: the other operand; it must not overlap the values.
    """
    r, other = values, operand
    op, is_reversed = code & ~REVERSED, code & REVERSED
    if op == ADD:
        for i in range(n):
            put(r, i, get(r, i) + get(other, i))
    elif op == SUB:
        if is_reversed:
            for i in range(n):
                put(r, i, get(other, i) - get(r, i))
        else:
            for i in range(n):
                put(r, i, get(r, i) - get(other, i))
    elif op == MUL:
        for i in range(n):
            put(r, i, get(r, i) * get(other, i))
    elif op == DIV:
        if is_reversed:
            for i in range(n):
                put(r, i, get(other, i) / get(r, i))
        else:
            for i in range(n):
                put(r, i, get(r, i) / get(other, i))
    elif op == MAX:
        for i in range(n):
            put(r, i, _larger(get(r, i), get(other, i)))
    elif op == MIN:
        for i in range(n):
            put(r, i, _smaller(get(r, i), get(other, i)))
    else:
        for i in range(n):
            put(r, i, np.rint(get(r, i)))


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def fetch(row, more, begin, n):
    """Read the elements of a further operand for some results."""
    repeats, count = read_long(more + MORE_REPEATS * 8), read_long(more + MORE_COUNT * 8)
    found, into = read_long(more + MORE_ADDRESS * 8), row
    done = 0
    while done < n:
        outer = (begin + done) // repeats
        if repeats == 1:
            first = outer % count
            length = min(n - done, count - first)
            for i in range(length):
                put(into, done + i, get(found, first + i))
        else:
            one = get(found, outer % count)
            length = min(n - done, (outer + 1) * repeats - begin - done)
            for i in range(length):
                put(into, done + i, one)
        done += length


@compiled("void(int64, int64, int64, int64, int64, int64)", **OPTIONS)
def begin_bounds(table, bounds, values, sizes, errors, n):
    """The bounds of merged values, after rounding to the type of the result."""
    bound, value, size, error = bounds, values, sizes, errors
    numbers = read_long(table + NUMBERS_OF_BOUND * 8)
    by = read_long(table + MERGED_BY * 8)
    roundoff, growth = get(numbers, ROUNDOFF), get(numbers, GROWTH)
    result_roundoff = get(numbers, RESULT_ROUNDOFF)
    subnormal, factor = get(numbers, RESULT_SUBNORMAL), get(numbers, BOUND_FACTOR)
    if by == SELECTED:
        tiny = get(numbers, TINY)
        is_double = read_long(table + IS_DOUBLE * 8)
        once = read_long(table + ROUNDS_ONCE * 8)
        for i in range(n):
            v, e = get(value, i), get(error, i)
            total = roundoff * e + (tiny if e > 0 else 0.0)
            rounding = result_roundoff * (abs(v) + total) + subnormal
            held = v == v if is_double else np.float64(np.float32(v)) == v
            is_exact = total == 0.0
            rounding = 0.0 if (is_exact and held) or (once and not is_exact) else rounding
            whole = (total + rounding) * factor
            put(bound, i, whole if whole == whole else INFINITY)
        return
    if by == SUMMED:
        in_all, lost = get(numbers, TINY_IN_ALL), get(numbers, LOST)
        for i in range(n):
            total = roundoff * get(error, i) + in_all
            put(bound, i, total + growth * (get(size, i) + total) + lost)
    else:
        per_size = get(numbers, LOST_PER_SIZE)
        for i in range(n):
            total = _larger(get(error, i) - abs(get(value, i)), 0.0) + growth * get(error, i)
            put(bound, i, total + per_size * get(size, i))
    if read_long(table + HAS_SEVERAL * 8):
        largest = get(numbers, LARGEST_SUM)
        for i in range(n):
            put(
                bound,
                i,
                INFINITY if get(size, i) * (1 + growth) >= largest else get(bound, i),
            )
    for i in range(n):
        rounding = result_roundoff * (abs(get(value, i)) + get(bound, i)) + subnormal
        whole = (get(bound, i) + rounding) * factor
        put(bound, i, whole if whole == whole else INFINITY)


@compiled("void(int64, int64, int64, int64, int64, int64)", **OPTIONS)
def begin_least(table, leasts, values, sizes, errors, n):
    """The lower bound of a correct machine's value before the stages: 0, or -inf."""
    least, value = leasts, values
    by = read_long(table + MERGED_BY * 8)
    if by == SUMMED and read_long(table + NEVER_BELOW * 8):
        size = sizes
        for i in range(n):
            put(least, i, 0.0 if get(value, i) >= get(size, i) else -INFINITY)
    elif by == SELECTED:
        error, roundoff = errors, get(read_long(table + NUMBERS_OF_BOUND * 8), ROUNDOFF)
        for i in range(n):
            put(
                least,
                i,
                0.0 if get(value, i) >= roundoff * get(error, i) else -INFINITY,
            )
    else:
        for i in range(n):
            put(least, i, -INFINITY)


@compiled("void(int64, int64)", **OPTIONS)
def ends(known, n):
    """The ends of each value's interval.

    An end is np.nextafter of value minus or plus error, computed by changing its bits by one.

    Args:
        known: the rows of a known value.
    """
    value, error = known + VALUE * ROW_BYTES, known + ERROR * ROW_BYTES
    least = known + LEAST * ROW_BYTES
    low, bits = known + LOW * ROW_BYTES, known + LOW * ROW_BYTES
    for i in range(n):
        put(low, i, get(value, i) - get(error, i))
    for i in range(n):
        b = get_bits(bits, i)
        if b > 0:
            moved = b if b > BITS_OF_INFINITY else b - 1
        else:
            moved = b if b >= BITS_OF_NEGATIVE_INFINITY else b + 1
        put_bits(bits, i, moved if b != 0 else BITS_OF_NEGATIVE_ZERO + 1)
    for i in range(n):
        put(
            low,
            i,
            _larger(get(low, i), get(least, i)) if get(error, i) > 0 else get(value, i),
        )
    high, bits = known + HIGH * ROW_BYTES, known + HIGH * ROW_BYTES
    for i in range(n):
        put(high, i, get(value, i) + get(error, i))
    for i in range(n):
        b = get_bits(bits, i)
        if b >= 0:
            moved = b if b >= BITS_OF_INFINITY else b + 1
        else:
            moved = b if b > BITS_OF_NEGATIVE_INFINITY else b - 1
        put_bits(bits, i, moved if b != BITS_OF_NEGATIVE_ZERO else 1)
    for i in range(n):
        put(high, i, get(high, i) if get(error, i) > 0 else get(value, i))


@compiled("void(int64, int64, int64, int64, int64, int64)", **OPTIONS)
def mark(marks, known, numbers, is_pole, is_positive, n):
    """Mark where an operand has an error, and where nothing is known about a function of it."""
    value, error = known + VALUE * ROW_BYTES, known + ERROR * ROW_BYTES
    flags, largest = marks, get(numbers, RESULT_LARGEST)
    for i in range(n):
        v, e, flag = get(value, i), get(error, i), get_bits(flags, i)
        is_finite = abs(v) < INFINITY
        lost = e == INFINITY or (is_finite and abs(v) + e >= largest)
        lost = lost or (is_pole != 0 and e > 0 and abs(v) <= e)
        lost = lost or (is_positive != 0 and e > 0 and v <= e)
        flag |= IS_LOST if lost else 0
        flag |= IS_UNKNOWN if flag & IS_LOST and is_finite else 0
        put_bits(flags, i, flag | (IS_ROUGH if e > 0 else 0))


@compiled("void(int64, int64, int64, int64, int64)", **OPTIONS)
def look(made_rows, into, numbers, place, n):
    """Update a stage with the value of its function at a point.

    Args:
        made_rows: the rows of a stage.
        into: those of its known value.
        place: the address of the stage's error in units of roundoff; negative for the first point,
            which is the value itself.
    """
    made = made_rows + MADE * ROW_BYTES
    condition = made_rows + CONDITION * ROW_BYTES
    deviation = made_rows + DEVIATION * ROW_BYTES
    flags = made_rows + MARKS * ROW_BYTES
    value, roundoff = into + VALUE * ROW_BYTES, get(numbers, RESULT_ROUNDOFF)
    ulps = get(abs(place), 0)
    if place < 0:
        for i in range(n):
            put(value, i, get(made, i))
        for i in range(n):
            put(condition, i, _larger(0.0, ulps * abs(get(made, i))) if ulps != 0 else 0.0)
        for i in range(n):
            put(deviation, i, 0.0)
    else:
        if ulps != 0:
            for i in range(n):
                put(condition, i, _larger(get(condition, i), ulps * abs(get(made, i))))
        for i in range(n):
            apart = abs(get(made, i) - get(value, i)) if get_bits(flags, i) & IS_ROUGH else 0.0
            put(deviation, i, _larger(get(deviation, i), apart))
    for i in range(n):
        own = ulps * abs(get(made, i)) if ulps != 0 else 0.0
        put_bits(
            flags,
            i,
            get_bits(flags, i) | (0 if get(made, i) >= roundoff * own else MAY_BE_BELOW),
        )


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def end_stage(made_rows, into, numbers, n):
    """Compute the error and the lower bound of a stage's value."""
    condition = made_rows + CONDITION * ROW_BYTES
    deviation = made_rows + DEVIATION * ROW_BYTES
    flags = made_rows + MARKS * ROW_BYTES
    error, least = into + ERROR * ROW_BYTES, into + LEAST * ROW_BYTES
    roundoff, normal = get(numbers, RESULT_ROUNDOFF), get(numbers, RESULT_NORMAL)
    own, factor = get(numbers, OWN_FACTOR), get(numbers, STAGE_FACTOR)
    for i in range(n):
        c = get(condition, i)
        rounding = roundoff * c + (normal if c > 0 else 0.0)
        whole = (get(deviation, i) + own * rounding) * factor
        put(error, i, INFINITY if get_bits(flags, i) & IS_LOST or whole != whole else whole)
    for i in range(n):
        put(least, i, -INFINITY if get_bits(flags, i) & MAY_BE_BELOW else 0.0)


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def read_actual(table, row, begin, n):
    """Read actual results."""
    into, address = row, read_long(table + ACTUAL * 8)
    if read_long(table + ACTUAL_BYTES * 8) == 4:
        floats = address + 4 * begin
        for i in range(n):
            put(into, i, np.float64(get_float(floats, i)))
    else:
        doubles = address + 8 * begin
        for i in range(n):
            put(into, i, get(doubles, i))


@compiled("void(int64, int64, int64, int64, int64, int64)", **OPTIONS)
def compare(results, values, bounds, numbers, worst, n):
    """Store the largest ratio of error to bound at an address, if it is larger than the one there.

    Args:
        results: replaced by the ratios. The bits of ratios sort like the ratios, and those of a NaN
            are the largest.
    """
    actual, value, bound = results, values, bounds
    bits, largest = results, get(numbers, ACTUAL_LARGEST)
    for i in range(n):
        a, v, b = get(actual, i), get(value, i), get(bound, i)
        error = abs(a - v)
        ratio = 0.0 if error == 0.0 else error / b
        is_infinite = abs(a) == INFINITY
        overflows = is_infinite and abs(v) + b >= largest and (a > 0) == (v > 0) and v != 0
        same = a == v or (a != a and v != v) or (overflows and v == v)
        wrong = ((a != a) != (v != v)) or is_infinite or abs(v) == INFINITY
        ratio = 0.0 if same else INFINITY if wrong else ratio
        put(actual, i, 0.0 if b == INFINITY and abs(v) < INFINITY else ratio)
    most = read_long(worst)
    for i in range(n):
        most = max(most, get_bits(bits, i) & BITS_OF_MAGNITUDE)
    write_long(worst, most)


@compiled("int64(int64, int64, int64)", **OPTIONS)
def _operand_row(operand, point, room):
    """The row of an operand at one of its points: the value, or an end of its interval."""
    if operand <= FURTHER_OPERAND:
        return room + (FIRST_ROWS + FURTHER_OPERAND - operand) * ROW_BYTES
    return (
        room - (operand + 1) * KNOWN_BYTES + (VALUE if point == 0 else LOW + point - 1) * ROW_BYTES
    )


@compiled("void(int64, int64, int64, int64)", **OPTIONS)
def do_stage(table, s, room, n):
    """Apply a stage to the values before it."""
    numbers, steps = read_long(table + NUMBERS_OF_BOUND * 8), read_long(table + BOUND_STEPS * 8)
    stage = read_long(table + STAGES * 8) + s * (STAGE_FIELDS * 8)
    made, constant = room + MADE * ROW_BYTES, room + CONSTANTS * ROW_BYTES
    marks = room + MARKS * ROW_BYTES
    into = room - (s + 2) * KNOWN_BYTES
    call_at(read_long(table + ENDS_CODE * 8), (room - (s + 1) * KNOWN_BYTES, n))
    flags = marks
    for i in range(n):
        put_bits(flags, i, get_bits(flags, i) & (IS_UNKNOWN))
    points = 0
    for k in range(2):
        operand = read_long(stage + (STAGE_OPERANDS + k) * 8)
        if operand > FURTHER_OPERAND and operand != NO_VALUE:
            points |= 1 << k
            pole = read_long(stage + STAGE_POLES * 8) >> k & 1
            positive = read_long(stage + STAGE_POSITIVE * 8) >> k & 1
            known = room - (operand + 1) * KNOWN_BYTES
            call_at(read_long(table + MARK_CODE * 8), (marks, known, numbers, pole, positive, n))
    left = read_long(stage + STAGE_OPERANDS * 8)
    right = read_long(stage + STAGE_OPERANDS * 8 + 8)
    ulps = stage + STAGE_ULPS * 8
    for first in range(3 if points & 1 else 1):
        for second in range(3 if points & 2 else 1):
            copy_bytes(made, _operand_row(left, first, room), 8 * n)
            for at in range(
                read_long(stage + STAGE_STEPS * 8), read_long(stage + STAGE_STEPS_END * 8)
            ):
                line = steps + at * (BOUND_STEP_FIELDS * 8)
                by, other = read_long(line + BOUND_STEP_BY * 8), constant
                if by == BY_OPERAND:
                    other = _operand_row(right, second, room)
                elif by == BY_ITSELF:
                    copy_bytes(constant, made, 8 * n)
                else:
                    number = get(line, BOUND_STEP_CONSTANT)
                    for i in range(n):
                        put(constant, i, number)
                call_at(
                    read_long(table + STEP_CODE * 8),
                    (made, read_long(line + BOUND_STEP_OP * 8), other, n),
                )
            call_at(
                read_long(table + LOOK_CODE * 8),
                (room, into, numbers, ulps if first or second else -ulps, n),
            )
    call_at(read_long(table + END_STAGE_CODE * 8), (room, into, numbers, n))


CODES = (
    code_address(step),
    code_address(fetch),
    code_address(begin_bounds),
    code_address(begin_least),
    code_address(ends),
    code_address(mark),
    code_address(look),
    code_address(end_stage),
    code_address(read_actual),
    code_address(compare),
    code_address(do_stage),
)
"""The addresses of the code of tasks, in the order of their columns in a bound's table."""


@compiled("int64(int64, int64, int64)", **OPTIONS)
def largest_ratio(table, count, room):
    """The bits of the largest ratio of error to bound among `count` results.

    Args:
        room: the address of memory for rows, and for a number.
    """
    stages, further = read_long(table + STAGE_COUNT * 8), read_long(table + FURTHER_COUNT * 8)
    worst = room
    # The rows of known values lie before those of stages, in reverse order.
    room += LINE * 8 + KNOWN_BYTES * (1 + stages)
    first_known, last_known = room - KNOWN_BYTES, room - (stages + 1) * KNOWN_BYTES
    numbers, more = read_long(table + NUMBERS_OF_BOUND * 8), read_long(table + FURTHER * 8)
    results, marks = room + RESULTS * ROW_BYTES, room + MARKS * ROW_BYTES
    write_long(worst, 0)
    for first in range(0, count, BLOCK):
        n = min(BLOCK, count - first)
        values = read_long(table + VALUES * 8) + 8 * first
        sizes = read_long(table + SIZES_OF_TERMS * 8) + 8 * first
        errors = read_long(table + ERRORS * 8) + 8 * first
        bounds = first_known + ERROR * ROW_BYTES
        call_at(read_long(table + BEGIN_BOUNDS_CODE * 8), (table, bounds, values, sizes, errors, n))
        call_at(read_long(table + READ_ACTUAL_CODE * 8), (table, results, first, n))
        if not stages:
            call_at(
                read_long(table + COMPARE_CODE * 8), (results, values, bounds, numbers, worst, n)
            )
            continue
        copy_bytes(first_known + VALUE * ROW_BYTES, values, 8 * n)
        call_at(
            read_long(table + BEGIN_LEAST_CODE * 8),
            (table, first_known + LEAST * ROW_BYTES, values, sizes, errors, n),
        )
        for k in range(further):
            row = room + (FIRST_ROWS + k) * ROW_BYTES
            call_at(
                read_long(table + FETCH_CODE * 8), (row, more + k * (MORE_FIELDS * 8), first, n)
            )
        for i in range(n):
            put_bits(marks, i, 0)
        for s in range(stages):
            call_at(read_long(table + STAGE_CODE * 8), (table, s, room, n))
        last, flags = last_known + VALUE * ROW_BYTES, marks
        for i in range(n):
            # An infinity or NaN is certain only if no value that may have overflowed is involved.
            is_unknown = get_bits(flags, i) & IS_UNKNOWN and not abs(get(last, i)) < INFINITY
            put(last, i, 0.0 if is_unknown else get(last, i))
        bounds = last_known + ERROR * ROW_BYTES
        call_at(
            read_long(table + COMPARE_CODE * 8),
            (results, last_known + VALUE * ROW_BYTES, bounds, numbers, worst, n),
        )
    return read_long(worst)
