"""Numbers of another dialect, and the arithmetic that scalar functions are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf

from xdsl.dialects.builtin import AnyFloat, f32, i1
from xdsl.ir import Attribute, SSAValue

from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import is_unsigned

UNARY = (
    *("neg", "abs", "exp", "log", "log1p", "sqrt", "tanh", "floor", "ceil", "round", "erf"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
)
"""The functions of one number that a dialect has."""

EXACT = ("neg", "abs", "floor", "ceil", "round")
"""Those that give whole numbers for whole numbers."""

BINARY = ("add", "sub", "mul", "div", "rem", "max", "min", "pow")
"""The functions of two numbers that a dialect has. `rem` has the sign of its first operand."""

BITS = ("and", "or", "xor", "shift_left", "shift_right")
"""The functions of the bits of two integers that a dialect has; of truth values, the first three.
"""

COMPARED = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
"""The comparisons that a dialect has. Those with NaN are false, but for `not_equal`."""


@dataclass(frozen=True)
class Term:
    """A number at each point, in another dialect.

    Attributes:
        element: its type in nn, which knows whether an integer has a sign.
        never_zero: whether it is certain that it is not 0.
    """

    value: SSAValue
    element: Attribute
    never_zero: bool = False

    @property
    def is_float(self) -> bool:
        """Whether it is a float."""
        return isinstance(self.element, AnyFloat)

    @property
    def is_truth(self) -> bool:
        """Whether it is a truth value."""
        return self.element == i1

    @property
    def has_no_sign(self) -> bool:
        """Whether it is an integer without a sign."""
        return not self.is_float and is_unsigned(numpy_dtype(self.element))


class Algebra(ABC):
    """Computes with numbers of another dialect.

    Attributes:
        shifts_all_out: whether a shift by too large or by a negative number moves all bits out;
            otherwise its result is undefined.
    """

    shifts_all_out = False

    @abstractmethod
    def primitive(self, name: str, *operands: Term) -> Term:
        """A function of UNARY, BINARY or BITS of operands of one type."""

    @abstractmethod
    def compare(self, name: str, left: Term, right: Term) -> Term:
        """A comparison of COMPARED of operands of one type."""

    @abstractmethod
    def select(self, condition: Term, yes: Term, no: Term) -> Term:
        """One of two operands of one type."""

    @abstractmethod
    def number(self, value: float | int | bool, element: Attribute) -> Term:
        """A constant, which the type holds."""

    @abstractmethod
    def converted(self, operand: Term, element: Attribute) -> Term:
        """A number as another type, neither of them i1. Floats are cut towards zero."""

    @abstractmethod
    def bits(self, operand: Term, element: Attribute) -> Term:
        """The same bits as another type."""

    def like(self, value: float | int | bool, operand: Term) -> Term:
        """A constant of the type of an operand."""
        return self.number(value, operand.element)

    def cast(self, operand: Term, element: Attribute) -> Term:
        """The same number as another type; as a truth value, whether it is not 0."""
        if operand.element == element:
            return operand
        if element == i1:
            return self.compare("not_equal", operand, self.like(0, operand))
        if operand.is_truth:
            return self.select(operand, self.number(1, element), self.number(0, element))
        return self.converted(operand, element)

    def invert(self, operand: Term) -> Term:
        """The other truth value."""
        return self.primitive("xor", operand, self.like(True, operand))

    def is_nan(self, operand: Term) -> Term:
        """Whether a number is NaN."""
        if not operand.is_float:
            return self.number(False, i1)
        return self.compare("not_equal", operand, operand)

    def is_infinite(self, operand: Term) -> Term:
        """Whether a number is infinite."""
        if not operand.is_float:
            return self.number(False, i1)
        return self.compare("equal", self.primitive("abs", operand), self.like(inf, operand))


def computing(element: Attribute) -> Attribute:
    """The type that numbers of a type are computed in: f32 for narrower floats."""
    if isinstance(element, AnyFloat) and numpy_dtype(element).itemsize < 4:
        return f32
    return element
