"""Numbers at every point of loops, as operations of stablehlo on tensors of one shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import chlo, nn, stablehlo
from ...dialects.dense import dense_of_array
from ...dialects.dtypes import numpy_dtype
from ...dialects.stablehlo import elementwise
from ...ir.refusals import Uncovered
from ..exporting.terms import Algebra, Term

FUNCTIONS: Mapping[str, type[Operation]] = {
    "add": elementwise.AddOp,
    "sub": elementwise.SubtractOp,
    "mul": elementwise.MultiplyOp,
    "div": elementwise.DivideOp,
    "rem": elementwise.RemainderOp,
    "max": elementwise.MaximumOp,
    "min": elementwise.MinimumOp,
    "pow": elementwise.PowerOp,
    "neg": elementwise.NegateOp,
    "abs": elementwise.AbsOp,
    "exp": elementwise.ExponentialOp,
    "log": elementwise.LogOp,
    "log1p": elementwise.LogPlusOneOp,
    "sqrt": elementwise.SqrtOp,
    "tanh": elementwise.TanhOp,
    "tan": elementwise.TanOp,
    "floor": elementwise.FloorOp,
    "ceil": elementwise.CeilOp,
    "round": elementwise.RoundNearestEvenOp,
    "sin": elementwise.SineOp,
    "cos": elementwise.CosineOp,
    "and": elementwise.AndOp,
    "or": elementwise.OrOp,
    "xor": elementwise.XorOp,
    "shift_left": elementwise.ShiftLeftOp,
    "erf": chlo.ErfOp,
    "asin": chlo.AsinOp,
    "acos": chlo.AcosOp,
    "atan": chlo.AtanOp,
    "sinh": chlo.SinhOp,
    "cosh": chlo.CoshOp,
    "asinh": chlo.AsinhOp,
    "acosh": chlo.AcoshOp,
    "atanh": chlo.AtanhOp,
}
"""The operation that computes each function. Those that stablehlo does not have are of chlo, which
comes with it."""

FLOATS_ONLY = (
    *("exp", "log", "log1p", "sqrt", "tanh", "tan", "floor", "ceil", "round", "sin", "cos"),
    *("erf", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
)
"""The functions of floats alone."""

DIRECTIONS = {
    "less": "LT",
    "less_equal": "LE",
    "greater": "GT",
    "greater_equal": "GE",
    "equal": "EQ",
    "not_equal": "NE",
}
"""The word for each comparison."""


class Program(Protocol):
    """What operations are added to."""

    def emit(self, op: Operation) -> SSAValue:
        """Add an operation, and return its first result."""
        ...

    def known(self, array: NDArray[Any]) -> SSAValue:
        """A constant, which is made once."""
        ...


class Numbers(Algebra):
    """Adds operations on tensors of one shape."""

    shifts_all_out = True

    def __init__(self, shape: Sequence[int], program: Program) -> None:
        self.shape = tuple(shape)
        self._program = program

    def _made(self, op: Operation, element: Attribute) -> Term:
        return Term(self._program.emit(op), element)

    def primitive(self, name: str, *operands: Term) -> Term:
        """A function of operands of one type."""
        first = operands[0]
        if name == "shift_right":
            unsigned = elementwise.ShiftRightLogicalOp
            kind: Any = unsigned if first.has_no_sign else elementwise.ShiftRightArithmeticOp
        elif name not in FUNCTIONS or (name in FLOATS_ONLY and not first.is_float):
            raise Uncovered(f"{name} of {first.element}, which stablehlo does not have")
        else:
            kind = FUNCTIONS[name]
        return self._made(kind(*(each.value for each in operands)), first.element)

    def compare(self, name: str, left: Term, right: Term) -> Term:
        """A comparison."""
        kind = "FLOAT" if left.is_float else "SIGNED"
        if left.has_no_sign or left.is_truth:
            kind = "UNSIGNED"
        op = stablehlo.CompareOp.build(
            operands=[left.value, right.value],
            result_types=[nn.tensor(nn.shape_of(left.value), i1)],
            properties={
                "comparison_direction": stablehlo.ComparisonDirectionAttr(DIRECTIONS[name]),
                "compare_type": stablehlo.ComparisonTypeAttr(kind),
            },
        )
        return self._made(op, i1)

    def invert(self, operand: Term) -> Term:
        """The other truth value."""
        return self._made(elementwise.NotOp(operand.value), i1)

    def select(self, condition: Term, yes: Term, no: Term) -> Term:
        """One of two operands."""
        op = stablehlo.SelectOp.build(
            operands=[condition.value, yes.value, no.value], result_types=[yes.value.type]
        )
        return self._made(op, yes.element)

    def number(self, value: float | int | bool, element: Attribute) -> Term:
        """A constant."""
        scalar = self._program.known(np.array(value).astype(numpy_dtype(element)))
        return Term(broadcast(scalar, (), self.shape, self._program), element)

    def converted(self, operand: Term, element: Attribute) -> Term:
        """A number as another type."""
        type_ = nn.tensor(nn.shape_of(operand.value), element)
        op = stablehlo.ConvertOp.build(operands=[operand.value], result_types=[type_])
        return self._made(op, element)

    def cast(self, operand: Term, element: Attribute) -> Term:
        """The same number as another type, also to and from truth values."""
        return operand if operand.element == element else self.converted(operand, element)

    def bits(self, operand: Term, element: Attribute) -> Term:
        """The same bits as another type."""
        if operand.element == element:
            return operand
        type_ = nn.tensor(nn.shape_of(operand.value), element)
        op = stablehlo.BitcastConvertOp.build(operands=[operand.value], result_types=[type_])
        return self._made(op, element)


def constant(array: Any) -> stablehlo.ConstantOp:
    """A constant, whose elements are in the text."""
    value = dense_of_array(np.asarray(array))
    return stablehlo.ConstantOp.build(
        properties={"value": value}, result_types=[cast("Attribute", value.type)]
    )


def broadcast(
    value: SSAValue, axes: Sequence[int], shape: Sequence[int], program: Program
) -> SSAValue:
    """A tensor repeated to a shape, of which its axes are these."""
    if tuple(axes) == tuple(range(len(shape))) and nn.shape_of(value) == tuple(shape):
        return value
    op = stablehlo.BroadcastInDimOp.build(
        operands=[value],
        properties={"broadcast_dimensions": nn.integers(axes)},
        result_types=[nn.tensor(shape, nn.element_of(value))],
    )
    return program.emit(op)
