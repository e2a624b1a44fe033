# pyright: basic
"""What kernels compute of roundings to float16, vector by vector. Needs numba.

A rounding takes float32 values, and perhaps words of 32 random bits, whose bits are held in place
of floats. It computes in float64 as ir/support/number_formats.py does, so that its bytes equal
NumPy's. A word is the first of Philox, as codelets/philox.py defines it.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir
from numba.core import cgutils

from ...codelets.philox import KEY_STEPS, MULTIPLIERS, ROUNDS
from .tables import BY_RULE, CHAIN_VECTORS, COUNTER_WORDS, FUNCTION_ROOMS, LANES, ROUNDED_TO
from .vectors import F16, F32, I32, I64, load, put, splat

F64 = ir.DoubleType()
SINGLE_VECTOR, HALF_VECTOR, DOUBLES = (ir.VectorType(each, LANES) for each in (F32, F16, F64))
WORD, LONG = (ir.VectorType(each, LANES) for each in (I32, I64))

ROOM_BYTES = 4 * LANES * CHAIN_VECTORS
DIGITS, LEAST, LARGEST = ROUNDED_TO
FRACTION_BITS, BIAS = 52, 1023
SIGN, INFINITY, NAN = 1 << 63, 0x7FF << FRACTION_BITS, 0xFFF << (FRACTION_BITS - 1)


def _all(builder, kind, value):
    """A vector with one constant in all lanes."""
    return splat(builder, ir.Constant(kind, value))


def _called(builder, name, value):
    """An intrinsic function of LLVM of one vector."""
    kind = ir.FunctionType(value.type, [value.type])
    name = f"llvm.{name}.v{LANES}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [value])


def _powers(builder, value):
    """The distance between the numbers of the type around doubles, and its reciprocal: two powers
    of two. Those of the smallest number for infinities and NaN."""

    def constant(number):
        return _all(builder, I64, number)

    exponent = builder.lshr(builder.bitcast(value, LONG), constant(FRACTION_BITS))
    exponent = builder.and_(exponent, constant(0x7FF))
    least = constant(BIAS + int(LEAST))
    low = builder.icmp_signed("<", exponent, least)
    none = builder.icmp_signed("==", exponent, constant(0x7FF))
    exponent = builder.select(builder.or_(low, none), least, exponent)
    step = builder.sub(exponent, constant(int(DIGITS) - 1))
    inverse = builder.sub(constant(2 * BIAS), step)
    return tuple(
        builder.bitcast(builder.shl(each, constant(FRACTION_BITS)), DOUBLES)
        for each in (step, inverse)
    )


def _limited(builder, made, rule):
    """Doubles whose magnitude is above the largest number are replaced as a rule says."""
    bits = builder.bitcast(made, LONG)
    sign = builder.and_(bits, _all(builder, I64, SIGN - (1 << 64)))
    size = builder.bitcast(builder.xor(bits, sign), DOUBLES)
    largest = _all(builder, F64, LARGEST)
    kept = {
        "infinity": _all(builder, I64, INFINITY),
        "clip": builder.bitcast(largest, LONG),
        "nan": _all(builder, I64, NAN),
    }[rule]
    replaced = builder.bitcast(builder.or_(kept, sign), DOUBLES)
    return builder.select(builder.fcmp_ordered(">", size, largest), replaced, made)


def _to_nearest(rule, builder, values, words):
    """Round values to nearest, ties to even."""
    value = builder.fpext(load(builder, SINGLE_VECTOR, values), DOUBLES)
    step, inverse = _powers(builder, value)
    made = builder.fmul(_called(builder, "rint", builder.fmul(value, inverse)), step)
    put(builder, builder.fptrunc(_limited(builder, made, rule), SINGLE_VECTOR), values)


def _by_word(rule, builder, values, words):
    """Round values to one of the two numbers around each, as words say."""
    value = builder.fpext(load(builder, SINGLE_VECTOR, values), DOUBLES)
    step, inverse = _powers(builder, value)
    sign = builder.and_(builder.bitcast(value, LONG), _all(builder, I64, SIGN - (1 << 64)))
    scaled = builder.bitcast(builder.fmul(value, inverse), LONG)
    clear = _all(builder, I64, SIGN - 1)
    steps = builder.bitcast(builder.and_(scaled, clear), DOUBLES)
    word = builder.zext(load(builder, WORD, words), LONG)
    share = builder.fmul(builder.sitofp(word, DOUBLES), _all(builder, F64, 2.0**-32))
    made = builder.fmul(_called(builder, "floor", builder.fadd(steps, share)), step)
    bits = builder.or_(builder.and_(builder.bitcast(made, LONG), clear), sign)
    made = _limited(builder, builder.bitcast(bits, DOUBLES), rule)
    put(builder, builder.fptrunc(made, SINGLE_VECTOR), values)


def _word(builder, values, unused):
    """The lowest 32 bits of the whole parts of values; 0 for infinities and NaN."""

    def constant(number):
        return _all(builder, I32, number)

    bits = builder.bitcast(load(builder, SINGLE_VECTOR, values), WORD)
    exponent = builder.and_(builder.lshr(bits, constant(23)), constant(0xFF))
    fraction = builder.or_(builder.and_(bits, constant((1 << 23) - 1)), constant(1 << 23))
    left = builder.sub(exponent, constant(127 + 23))
    right = builder.sub(constant(127 + 23), exponent)

    def limited(shift):
        # A shift by 32 places or more would be undefined.
        return builder.and_(shift, constant(31))

    none = constant(0)
    grown = builder.shl(fraction, limited(left))
    grown = builder.select(builder.icmp_signed("<", left, constant(32)), grown, none)
    shrunk = builder.lshr(fraction, limited(right))
    shrunk = builder.select(builder.icmp_signed("<", right, constant(32)), shrunk, none)
    size = builder.select(builder.icmp_signed("<", left, none), shrunk, grown)
    is_negative = builder.icmp_signed("<", bits, none)
    put(builder, builder.select(is_negative, builder.sub(none, size), size), values)


def _philox(builder, values, keys):
    """The word of each element.

    Its counter, and the first word of its key, are in the places behind the rooms of a function:
    the places of the column, the row, the run and the seed.

    Args:
        keys: the second word of the key.
    """

    def constant(number):
        return _all(builder, I32, number - (1 << 32) if number >> 31 else number)

    behind = [
        load(
            builder, WORD, builder.add(values, ir.Constant(I64, (FUNCTION_ROOMS + i) * ROOM_BYTES))
        )
        for i in range(COUNTER_WORDS)
    ]
    a, b, c, low = behind
    d, high = constant(1), load(builder, WORD, keys)
    for _ in range(ROUNDS):
        parts = []
        for word, factor in ((a, MULTIPLIERS[0]), (c, MULTIPLIERS[1])):
            whole = builder.mul(builder.zext(word, LONG), _all(builder, I64, int(factor)))
            upper = builder.lshr(whole, _all(builder, I64, 32))
            parts.append((builder.trunc(upper, WORD), builder.trunc(whole, WORD)))
        (first_high, first_low), (second_high, second_low) = parts
        a, b, c, d = (
            builder.xor(builder.xor(second_high, b), low),
            second_low,
            builder.xor(builder.xor(first_high, d), high),
            first_low,
        )
        low = builder.add(low, constant(int(KEY_STEPS[0])))
        high = builder.add(high, constant(int(KEY_STEPS[1])))
    put(builder, a, values)


def _through_halves(builder, values, unused):
    """Convert values to float16 and back."""
    narrow = builder.fptrunc(load(builder, SINGLE_VECTOR, values), HALF_VECTOR)
    put(builder, builder.fpext(narrow, SINGLE_VECTOR), values)


ROUNDING_SEQUENCES = {
    "as word": _word,
    "random word": _philox,
    "through f16": _through_halves,
    **{f"to_nearest {rule}": partial(_to_nearest, rule) for rule in BY_RULE},
    **{f"by_word {rule}": partial(_by_word, rule) for rule in BY_RULE},
}
"""By name, a function that builds the code of a rounding. It replaces a vector at an address, and
reads one of second operands."""
