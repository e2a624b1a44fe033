"""Operations on the bits of integers, and random bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from ...dialects import nn, stablehlo
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import bit_width
from .conversion import Lower, ToNn
from .elementwise import built
from .integers import bits_as, ones_counted, zeros_counted
from .random_bits import GENERATORS


def _bitcast_convert(op: stablehlo.BitcastConvertOp, new: ToNn) -> Sequence[SSAValue]:
    for each in (op.operand, op.result):
        element = nn.element_of(each)
        if bit_width(numpy_dtype(element)) % 8:
            raise new.unsupported(f"the bits of {element}", "need elements of whole bytes")
    return [bits_as(new, new.value(op.operand), nn.element_of(op.result))]


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
