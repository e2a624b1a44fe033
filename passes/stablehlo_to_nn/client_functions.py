"""The functions of chlo: those that nn has too, and those that StableHLO defines by formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from xdsl.ir import SSAValue

from ...dialects import nn
from .conversion import Lower, ToNn
from .special_functions import FORMULAS, special


def _unary(make: Callable[[SSAValue], Any]) -> Lower:
    def lower(op: Any, new: ToNn) -> Sequence[SSAValue]:
        return [new.add(make(new.value(op.operand)))]

    return lower


def _special(op: Any, new: ToNn) -> Sequence[SSAValue]:
    return [special(new, op.name, *new.operands(op))]


def _is_infinity(sign: float) -> Lower:
    def lower(op: Any, new: ToNn) -> Sequence[SSAValue]:
        value = new.value(op.operand)
        return [new.add(nn.EqualOp(value, new.number(sign * inf, value)))]

    return lower


TABLE: Mapping[str, Lower] = {
    "chlo.acos": _unary(nn.AcosOp),
    "chlo.acosh": _unary(nn.AcoshOp),
    "chlo.asin": _unary(nn.AsinOp),
    "chlo.asinh": _unary(nn.AsinhOp),
    "chlo.atan": _unary(nn.AtanOp),
    "chlo.atanh": _unary(nn.AtanhOp),
    "chlo.cosh": _unary(nn.CoshOp),
    "chlo.erf": _unary(nn.ErfOp),
    "chlo.is_inf": _unary(nn.IsInfOp),
    "chlo.is_neg_inf": _is_infinity(-1.0),
    "chlo.is_pos_inf": _is_infinity(1.0),
    "chlo.sinh": _unary(nn.SinhOp),
    "chlo.square": _unary(nn.SquareOp),
    "chlo.tan": _unary(nn.TanOp),
    "chlo.next_after": _special,
    **dict.fromkeys(FORMULAS, _special),
}
"""What lowers each operation, by name."""
