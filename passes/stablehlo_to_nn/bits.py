"""Operations on the bits of integers, and random bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ...dialects import nn, stablehlo
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import bit_width
from .conversion import Lower, ToNn
from .elementwise import built
from .integers import bits_as, ones_counted, unsigned, zeros_counted
from .random_bits import GENERATORS


def _bitcast_convert(op: stablehlo.BitcastConvertOp, new: ToNn) -> Sequence[SSAValue]:
    value, kinds = new.value(op.operand), [nn.element_of(each) for each in (op.operand, op.result)]
    if kinds[0] == kinds[1]:
        return [value]
    if kinds[0] == i1 and bit_width(numpy_dtype(kinds[1])) % 8 == 0:
        return [bits_as(new, _bytes(new, value), kinds[1])]
    if kinds[1] == i1 and bit_width(numpy_dtype(kinds[0])) % 8 == 0:
        return [_truths(new, bits_as(new, value, unsigned(8)), nn.shape_of(op.result))]
    for each in (op.operand, op.result):
        element = nn.element_of(each)
        if bit_width(numpy_dtype(element)) % 8:
            raise new.unsupported(f"the bits of {element}", "need elements of whole bytes")
    return [bits_as(new, value, kinds[1])]


def _bytes(new: ToNn, value: SSAValue) -> SSAValue:
    """Truth values along the last axis as bytes, each of eight; the lowest bits come first."""
    *rest, count = nn.shape_of(value)
    bits = new.reshape(new.cast(value, unsigned(8)), (*rest, count // 8, 8))
    placed = new.add(nn.ShiftLeftOp(bits, new.constant(np.arange(8, dtype=np.uint8))))
    found = new.add(nn.ReduceOp(placed, "sum", [len(rest) + 1]))
    return new.reshape(found, (*rest, *([count // 8] if count != 8 else [])))


def _truths(new: ToNn, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """The bits of bytes as truth values in a shape; the lowest bits come first."""
    whole = new.reshape(value, (*nn.shape_of(value), 1))
    moved = new.add(nn.ShiftRightOp(whole, new.constant(np.arange(8, dtype=np.uint8))))
    bits = new.add(nn.BitwiseAndOp(moved, new.number(1, moved)))
    return new.reshape(new.add(nn.EqualOp(bits, new.number(1, bits))), shape)


def _rng_bit_generator(op: stablehlo.RngBitGeneratorOp, new: ToNn) -> Sequence[SSAValue]:
    draw = GENERATORS[op.rng_algorithm.data]
    shape, element = nn.shape_of(op.output), nn.element_of(op.output)
    found = draw(new, new.value(op.initial_state), shape, element)
    return [found.state, found.bits]


ON_ELEMENTS = ("stablehlo.popcnt", "stablehlo.count_leading_zeros")
"""The functions of single elements."""

TABLE: Mapping[str, Lower] = {
    "stablehlo.popcnt": built(ones_counted),
    "stablehlo.count_leading_zeros": built(zeros_counted),
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.rng_bit_generator": _rng_bit_generator,
}
"""What lowers each operation, by name."""
