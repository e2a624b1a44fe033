"""The functions of chlo: those that nn has too, and those that StableHLO defines by formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from xdsl.ir import OpResult, SSAValue

from ...dialects import nn
from .conversion import Lower, ToNn, splat_of
from .elementwise import unary
from .special_functions import FORMULAS, special


def _special(op: Any, new: ToNn) -> Sequence[SSAValue]:
    return [special(new, op.name, *new.operands(op))]


def _erfc(op: Any, new: ToNn) -> Sequence[SSAValue]:
    """One minus the error function; in GELU, 1 + erf of the negative, which is as exact there."""
    value = new.value(op.operand)
    if not _is_in_gelu(op, new):
        return [special(new, op.name, value)]
    return [new.add(nn.ShiftOp(new.add(nn.ErfOp(_negative(new, op.operand))), 1.0))]


def _is_in_gelu(op: Any, new: ToNn) -> bool:
    """Whether the only reader of an erfc multiplies it by a multiple of its argument.

    1 + erf loses digits where it is small, and the product is small there too.
    """
    readers = [use.operation for use in op.results[0].uses]
    if len(readers) != 1 or readers[0].name != "stablehlo.multiply":
        return False
    others = [value for value in readers[0].operands if value is not op.results[0]]
    if len(others) != 1:
        return False
    (of_other, root), (of_own, argument) = (
        _factored(new, value) for value in (others[0], op.operand)
    )
    return root is argument and of_other > 0 > of_own


def _factored(new: ToNn, value: SSAValue) -> tuple[float, SSAValue]:
    """A number and a value of stablehlo whose product a value is. The number may be 1."""
    factor = 1.0
    while isinstance(value, OpResult):
        if value.op.name == "stablehlo.negate":
            factor, value = -factor, value.op.operands[0]
            continue
        found = _multiple(new, value)
        if found is None:
            break
        number, value = found
        factor *= number
    return factor, value


def _multiple(new: ToNn, value: OpResult) -> tuple[float, SSAValue] | None:
    """A number and a value whose product a value is; None if it is no product with a number."""
    if value.op.name not in ("stablehlo.multiply", "stablehlo.divide"):
        return None
    lhs, rhs = value.op.operands
    number = splat_of(new.value(rhs))
    if value.op.name == "stablehlo.divide":
        return (1.0 / number, lhs) if number else None
    if number is not None:
        return number, lhs
    number = splat_of(new.value(lhs))
    return None if number is None else (number, rhs)


def _negative(new: ToNn, value: SSAValue) -> SSAValue:
    """The negative of a value of stablehlo, in nn, without a second change of sign."""
    factor, root = _factored(new, value)
    return new.add(nn.ScaleOp(new.value(root), -factor))


def _conj(op: Any, new: ToNn) -> Sequence[SSAValue]:
    """The float itself. Conjugates of complex numbers are taken before."""
    return [new.value(op.operand)]


def _is_infinity(sign: float) -> Lower:
    def lower(op: Any, new: ToNn) -> Sequence[SSAValue]:
        value = new.value(op.operand)
        return [new.add(nn.EqualOp(value, new.number(sign * inf, value)))]

    return lower


TABLE: Mapping[str, Lower] = {
    "chlo.acos": unary(nn.AcosOp),
    "chlo.acosh": unary(nn.AcoshOp),
    "chlo.asin": unary(nn.AsinOp),
    "chlo.asinh": unary(nn.AsinhOp),
    "chlo.atan": unary(nn.AtanOp),
    "chlo.atanh": unary(nn.AtanhOp),
    "chlo.conj": _conj,
    "chlo.cosh": unary(nn.CoshOp),
    "chlo.erf": unary(nn.ErfOp),
    "chlo.is_inf": unary(nn.IsInfOp),
    "chlo.is_neg_inf": _is_infinity(-1.0),
    "chlo.is_pos_inf": _is_infinity(1.0),
    "chlo.sinh": unary(nn.SinhOp),
    "chlo.square": unary(nn.SquareOp),
    "chlo.tan": unary(nn.TanOp),
    "chlo.next_after": _special,
    **dict.fromkeys(FORMULAS, _special),
    "chlo.erfc": _erfc,
}
"""What lowers each operation, by name."""
