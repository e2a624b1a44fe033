"""The angle of a point, by operations of nn."""

from __future__ import annotations

from collections.abc import Callable
from math import pi

from xdsl.ir import SSAValue

from .base import PureTensorOp
from .elementwise import (
    AbsOp,
    AddOp,
    AtanOp,
    DivOp,
    EqualOp,
    GreaterOp,
    IsInfOp,
    LessOp,
    LogicalAndOp,
    LogicalOrOp,
    SelectOp,
    SubOp,
)
from .state import ConstantOp


def angle(
    y: SSAValue,
    x: SSAValue,
    add: Callable[[PureTensorOp | ConstantOp], SSAValue],
    number: Callable[[float, SSAValue], SSAValue],
) -> SSAValue:
    """The angle of the point (x, y) in radians, from -pi to pi, as atan2 of IEEE 754 defines it.

    Zeros count with their signs, and infinite coordinates count as equally large. The angle follows
    from the quotient of the smaller coordinate and the larger one, which never overflows.

    Args:
        y, x: floats of one element type, whose shapes broadcast with each other.
        add: adds an operation, and returns its result.
        number: returns a constant without axes, of the element type of a value.
    """

    def select(condition: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        return add(SelectOp(condition, then, otherwise))

    zero, one = number(0.0, x), number(1.0, x)

    def is_negative(value: SSAValue) -> SSAValue:
        # The reciprocal of -0 is minus infinity.
        below_0 = add(LessOp(value, zero))
        return add(LogicalOrOp(below_0, add(LessOp(add(DivOp(one, value)), zero))))

    down, left = is_negative(y), is_negative(x)
    steep = add(GreaterOp(add(AbsOp(y)), add(AbsOp(x))))
    larger = select(steep, y, x)
    # The quotient of two zeros is then the zero of y.
    divisor = select(add(EqualOp(larger, zero)), one, larger)
    quotient = add(DivOp(select(steep, x, y), divisor))
    both_infinite = add(LogicalAndOp(add(IsInfOp(y)), add(IsInfOp(x))))
    diagonal = select(add(EqualOp(down, left)), one, number(-1.0, x))
    part = add(AtanOp(select(both_infinite, diagonal, quotient)))
    half_turn = select(down, number(-pi, x), number(pi, x))
    quarter_turn = select(down, number(-pi / 2, x), number(pi / 2, x))
    flat = select(left, add(AddOp(part, half_turn)), part)
    return select(steep, add(SubOp(quarter_turn, part)), flat)
