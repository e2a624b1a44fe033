"""Conversions of ONNX: saturating, rounding, or modulo the width of small integers."""

from __future__ import annotations

from xdsl.dialects.builtin import Float8E8M0FNUType, IntegerType, Signedness, f32, i1, i8, i32
from xdsl.ir import Attribute, SSAValue

from ....backends.codelets.conversion import float_limits
from ....dialects import nn
from ....dialects.dtypes import STORED, numpy_dtype
from ....ir.support.number_kinds import bit_width, is_floating, is_whole
from .node import Node

ui8 = IntegerType(8, Signedness.UNSIGNED)
_ui32 = IntegerType(32, Signedness.UNSIGNED)

SMALL: frozenset[Attribute] = frozenset(
    each for each in STORED if not is_floating(numpy_dtype(each))
)
"""The element types of integers of fewer than 8 bits."""

_E8M0 = Float8E8M0FNUType()
_ROUNDINGS = ("up", "down", "nearest")


def converted(node: Node, value: SSAValue, element: Attribute) -> SSAValue:
    """A value with another element type, as Cast converts it; for i1, whether it is not 0.

    The attribute saturate, which is true by default, decides about floats of 8 bits that overflow,
    and round_mode about exponents. Floats are cut off to integers; integers of fewer than 8 bits
    are taken modulo their width.
    """
    given = nn.element_of(value)
    if given == element:
        return value
    if element == _E8M0:
        return _exponent(node, value, node.text("round_mode", "up"), node.flag("saturate", True))
    value = computable(node, value)
    if element == i1:
        zero = node.add(nn.EqualOp(value, node.constant(0, value)))
        return node.add(nn.LogicalNotOp(zero))
    dtype = numpy_dtype(element)
    if element in SMALL and is_floating(numpy_dtype(nn.element_of(value))):
        value = node.cast(value, i32)
    elif is_floating(dtype) and bit_width(dtype) == 8 and node.flag("saturate", True):
        value = saturated(node, value, element)
    return node.cast(value, element)


def computable(node: Node, value: SSAValue) -> SSAValue:
    """A value in a type that can be computed with: stored-only types become f32 or 8-bit
    integers."""
    given = nn.element_of(value)
    if given not in STORED:
        return value
    dtype = numpy_dtype(given)
    if is_whole(dtype):
        return node.cast(value, i8 if dtype.name.startswith("int") else ui8)
    return node.cast(value, f32)


def saturated(node: Node, value: SSAValue, element: Attribute) -> SSAValue:
    """A value limited to the finite numbers of a type of floats; integers become f32."""
    if not is_floating(numpy_dtype(nn.element_of(value))):
        value = node.cast(value, f32)
    most = float_limits(numpy_dtype(element)).largest
    return node.add(nn.ClipOp(value, -most, most))


def _exponent(node: Node, value: SSAValue, rounding: str, saturate: bool) -> SSAValue:
    """The exponent of a number as f8E8M0FNU. Its sign is lost; 0 becomes the smallest power."""
    if rounding not in _ROUNDINGS:
        raise node.bad(f"round_mode {rounding!r}; need {', '.join(_ROUNDINGS)}")
    bits = node.add(nn.BitCastOp(node.cast(computable(node, value), f32), _ui32))

    def const(number: int) -> SSAValue:
        return node.constant(number, bits)

    def part(mask: int) -> SSAValue:
        return node.add(nn.BitwiseAndOp(bits, const(mask)))

    shifted = node.add(nn.ShiftRightOp(bits, const(23)))
    exponent = node.add(nn.BitwiseAndOp(shifted, const(0xFF)))
    if rounding != "down":
        # Half way between two powers, the larger one is nearest, unless the number is subnormal.
        least = {"up": const(1), "nearest": const(0x400000)}[rounding]
        up = node.add(nn.GreaterEqualOp(part(0x7FFFFF), least))
        if rounding == "nearest":
            above = node.add(nn.GreaterOp(part(0x7FFFFF), least))
            normal = node.add(nn.GreaterOp(exponent, const(0)))
            up = node.add(nn.LogicalAndOp(up, node.add(nn.LogicalOrOp(above, normal))))
        highest = const(0xFE if saturate else 0xFF)
        below = node.add(nn.LessOp(exponent, highest))
        up = node.add(nn.LogicalAndOp(up, below))
        exponent = node.add(nn.AddOp(exponent, node.cast(up, _ui32)))
    return node.add(nn.BitCastOp(node.cast(exponent, ui8), _E8M0))
