"""Draws functions of elements: by the types that each takes, or by how it is drawn."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import bf16, f16, f32, i1
from xdsl.ir import SSAValue

from .....dialects import nn, stablehlo
from .....dialects.stablehlo.elementwise import BinaryOp, PredicateOp
from .draft import (
    ALL,
    CLASSES,
    FLOATS,
    INTEGERS,
    NARROW_INTEGERS,
    NUMBERS,
    SIGNED,
    TRUTHS,
    WIDE_FLOATS,
    Draft,
    Draw,
    Kinds,
    number,
    tensor_like,
)

BITS: Kinds = (*INTEGERS, *NARROW_INTEGERS)
LOGICAL: Kinds = (*BITS, *TRUTHS * 4)
SINGLE: Kinds = (f32,)
SPECIAL: Kinds = (*[f32] * 4, f16)

DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")

TAKES: Mapping[str, Kinds] = {
    "stablehlo.abs": SIGNED,
    "stablehlo.cbrt": FLOATS,
    "stablehlo.ceil": FLOATS,
    "stablehlo.cosine": FLOATS,
    "stablehlo.count_leading_zeros": BITS,
    "stablehlo.exponential": FLOATS,
    "stablehlo.exponential_minus_one": FLOATS,
    "stablehlo.floor": FLOATS,
    "stablehlo.is_finite": FLOATS,
    "stablehlo.log": FLOATS,
    "stablehlo.log_plus_one": FLOATS,
    "stablehlo.logistic": FLOATS,
    "stablehlo.negate": NUMBERS,
    "stablehlo.not": LOGICAL,
    "stablehlo.popcnt": BITS,
    "stablehlo.round_nearest_afz": FLOATS,
    "stablehlo.round_nearest_even": FLOATS,
    "stablehlo.rsqrt": FLOATS,
    "stablehlo.sign": SIGNED,
    "stablehlo.sine": FLOATS,
    "stablehlo.sqrt": FLOATS,
    "stablehlo.tan": FLOATS,
    "stablehlo.tanh": FLOATS,
    "stablehlo.add": ALL,
    "stablehlo.and": LOGICAL,
    "stablehlo.atan2": WIDE_FLOATS,
    "stablehlo.divide": NUMBERS,
    "stablehlo.maximum": ALL,
    "stablehlo.minimum": ALL,
    "stablehlo.multiply": ALL,
    "stablehlo.or": LOGICAL,
    "stablehlo.power": NUMBERS,
    "stablehlo.remainder": NUMBERS,
    "stablehlo.shift_left": BITS,
    "stablehlo.shift_right_arithmetic": BITS,
    "stablehlo.shift_right_logical": BITS,
    "stablehlo.subtract": NUMBERS,
    "stablehlo.xor": LOGICAL,
    "chlo.acos": WIDE_FLOATS,
    "chlo.acosh": WIDE_FLOATS,
    "chlo.asin": WIDE_FLOATS,
    "chlo.asinh": WIDE_FLOATS,
    "chlo.atan": WIDE_FLOATS,
    "chlo.atanh": WIDE_FLOATS,
    "chlo.bessel_i1e": SPECIAL,
    "chlo.cosh": WIDE_FLOATS,
    "chlo.digamma": SPECIAL,
    "chlo.erf": WIDE_FLOATS,
    "chlo.erf_inv": SPECIAL,
    "chlo.erfc": SPECIAL,
    "chlo.is_inf": WIDE_FLOATS,
    "chlo.is_neg_inf": WIDE_FLOATS,
    "chlo.is_pos_inf": WIDE_FLOATS,
    "chlo.lgamma": SPECIAL,
    "chlo.next_after": SINGLE,
    "chlo.polygamma": SINGLE,
    "chlo.sinh": WIDE_FLOATS,
    "chlo.square": (*WIDE_FLOATS, *INTEGERS),
    "chlo.tan": WIDE_FLOATS,
    "chlo.zeta": SINGLE,
}
"""The element types that each function of one or two elements takes."""


def _function(draft: Draft, name: str) -> None:
    cls, first = CLASSES[name], draft.value(TAKES[name])
    operands = [first]
    if issubclass(cls, BinaryOp):
        operands.append(draft.another(first))
        draft.random.shuffle(operands)
    is_test = issubclass(cls, PredicateOp)
    made = nn.tensor(nn.shape_of(first), i1) if is_test else first.type
    draft.add(name, operands, [made])


def compared(
    draft: Draft, lhs: SSAValue, rhs: SSAValue, direction: str, *, total: bool = False
) -> SSAValue:
    """Whether a comparison of values holds."""
    how = {"comparison_direction": stablehlo.ComparisonDirectionAttr(direction)}
    more = {"compare_type": stablehlo.ComparisonTypeAttr("TOTALORDER")} if total else {}
    made = nn.tensor(nn.shape_of(lhs), i1)
    return draft.add("stablehlo.compare", [lhs, rhs], [made], {**how, **more})[0]


def _compare(draft: Draft, _: str) -> None:
    value = draft.value(ALL)
    other = draft.another(value)
    total = nn.element_of(value) in WIDE_FLOATS and draft.chance(0.3)
    compared(draft, value, other, draft.choice(DIRECTIONS), total=total)


def _select(draft: Draft, name: str) -> None:
    value = draft.value(ALL)
    shape = nn.shape_of(value)
    condition = draft.of(draft.choice((shape, shape, ())), i1)
    draft.add(name, [condition, value, draft.another(value)], [value.type])


def _clamp(draft: Draft, name: str) -> None:
    value = draft.value(NUMBERS)
    shape, element = nn.shape_of(value), nn.element_of(value)
    low, high = (draft.of(draft.choice((shape, ())), element, value) for _ in range(2))
    draft.add(name, [low, value, high], [value.type])


def _convert(draft: Draft, name: str) -> None:
    value = draft.value(ALL)
    draft.add(name, [value], [nn.tensor(nn.shape_of(value), draft.choice(ALL))])


def _reduce_precision(draft: Draft, name: str) -> None:
    value = draft.value((*[f32] * 4, f16, bf16))
    how = {
        "exponent_bits": number(draft.random.randint(3, 8), 32),
        "mantissa_bits": number(draft.random.randint(1, 23), 32),
    }
    draft.add(name, [value], [tensor_like(value)], how)


TABLE: Mapping[str, Draw] = {
    **dict.fromkeys(TAKES, _function),
    "stablehlo.compare": _compare,
    "stablehlo.select": _select,
    "stablehlo.clamp": _clamp,
    "stablehlo.convert": _convert,
    "stablehlo.reduce_precision": _reduce_precision,
}
"""What draws each operation, by name."""
