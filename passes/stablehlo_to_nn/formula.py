"""Formulas of tensors of one shape and element type, written with Python's operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

from xdsl.ir import SSAValue

from ...dialects import nn
from ...dialects.nn.base import same_element
from ...dialects.nn.elementwise import BinaryOp, UnaryOp
from .conversion import ToNn


@dataclass(frozen=True, eq=False)
class Number:
    """A tensor in a formula. An operator adds an operation of nn, and a Python number is a
    constant.

    Attributes:
        new: the program that is made.
        value: the tensor.
    """

    new: ToNn
    value: SSAValue

    def apply(self, op: type[UnaryOp]) -> Number:
        """A function of this number."""
        return Number(self.new, self.new.add(op(self.value)))

    def _with(self, op: type[BinaryOp], other: Number | float) -> Number:
        return Number(self.new, self.new.add(op(self.value, self.other(other))))

    def other(self, other: Number | float) -> SSAValue:
        """Another number as a value of this type."""
        return other.value if isinstance(other, Number) else self.new.number(other, self.value)

    def constant(self, number: float) -> Number:
        """A constant of this type."""
        return Number(self.new, self.new.number(number, self.value))

    def __add__(self, other: Number | float) -> Number:
        """The sum."""
        return self._with(nn.AddOp, other)

    def __sub__(self, other: Number | float) -> Number:
        """The difference."""
        return self._with(nn.SubOp, other)

    def __mul__(self, other: Number | float) -> Number:
        """The product."""
        return self._with(nn.MulOp, other)

    def __truediv__(self, other: Number | float) -> Number:
        """The quotient."""
        return self._with(nn.DivOp, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: float) -> Number:
        """The difference of a constant and this number."""
        return self.constant(other) - self

    def __rtruediv__(self, other: float) -> Number:
        """A constant divided by this number."""
        return self.constant(other) / self

    def __neg__(self) -> Number:
        """The number times -1."""
        return self.apply(nn.NegOp)

    def __abs__(self) -> Number:
        """The magnitude."""
        return self.apply(nn.AbsOp)

    def __mod__(self, other: Number | float) -> Number:
        """The remainder of a quotient, with this number's sign."""
        return self._with(nn.FmodOp, other)

    def __pow__(self, other: Number | float) -> Number:
        """The power."""
        return self._with(nn.PowOp, other)

    def __lt__(self, other: Number | float) -> Number:
        """Whether this number is less."""
        return self._with(nn.LessOp, other)

    def __le__(self, other: Number | float) -> Number:
        """Whether this number is less or equal."""
        return self._with(nn.LessEqualOp, other)

    def __gt__(self, other: Number | float) -> Number:
        """Whether this number is larger."""
        return self._with(nn.GreaterOp, other)

    def __and__(self, other: Number) -> Number:
        """Whether both conditions hold."""
        return self._with(nn.LogicalAndOp, other)

    def __or__(self, other: Number) -> Number:
        """Whether one of two conditions holds."""
        return self._with(nn.LogicalOrOp, other)

    def __invert__(self) -> Number:
        """Whether a condition does not hold."""
        return self.apply(nn.LogicalNotOp)

    def equals(self, other: Number | float) -> Number:
        """Whether the numbers are equal."""
        return self._with(nn.EqualOp, other)

    def choose(self, then: Number, otherwise: Number | float) -> Number:
        """The one number where this condition holds, and the other elsewhere."""
        op = nn.SelectOp(self.value, then.value, then.other(otherwise))
        return Number(self.new, self.new.add(op))

    def exp(self) -> Number:
        """The exponential."""
        return self.apply(nn.ExpOp)

    def log(self) -> Number:
        """The logarithm."""
        return self.apply(nn.LogOp)

    def sqrt(self) -> Number:
        """The square root."""
        return self.apply(nn.SqrtOp)

    def floor(self) -> Number:
        """The largest whole number that is not larger."""
        return self.apply(nn.FloorOp)

    def log_plus_one(self) -> Number:
        """log(1 + x), with all digits where x is small.

        The logarithm of the rounded sum is corrected by how far the sum was rounded: Higham,
        Accuracy and Stability of Numerical Algorithms, 1.14.1.
        """
        total = self + 1.0
        moved = total - 1.0
        is_small = moved.equals(0.0)
        ratio = self / is_small.choose(moved.constant(1.0), moved)
        plain = total.log()
        # An infinite sum has no rounding.
        is_far = abs(moved).equals(float("inf"))
        return is_small.choose(self, is_far.choose(plain, plain * ratio))

    def polynomial(self, coefficients: Iterable[float]) -> Number:
        """A polynomial of this number. The coefficient of the highest power comes first."""
        first, *others = coefficients
        return reduce(lambda total, c: total * self + c, others, self.constant(first))


def in_float32(new: ToNn, formula: Callable[..., Number], *operands: SSAValue) -> SSAValue:
    """A formula of floats, of which narrower ones are computed in float32.

    Raises VerifyException for operands of several types.
    """
    element = same_element(*operands)
    wide = nn.wide_element(element)
    made = formula(*(Number(new, new.cast(each, wide)) for each in operands))
    return new.cast(made.value, element)
