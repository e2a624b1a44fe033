"""Formulas of floats in stablehlo, written with Python's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from xdsl.ir import SSAValue

from ...dialects import chlo, stablehlo
from ...dialects.stablehlo.elementwise import BinaryOp, UnaryOp
from .splitting import Made, Rule, Splitting

_FUNCTIONS = (*stablehlo.UNARY, *stablehlo.BINARY, chlo.AsinhOp)
_BY_NAME = {each.name.rpartition(".")[2]: each for each in _FUNCTIONS}


@dataclass(frozen=True, eq=False)
class Term:
    """A tensor of floats, or of conditions, in a formula. A Python number is a constant.

    Attributes:
        new: the program that is changed.
        value: the tensor.
    """

    new: Splitting
    value: SSAValue

    def of(self, name: str) -> Term:
        """A function of this term, by the name of its operation without the dialect."""
        op: type[UnaryOp] = _BY_NAME[name]  # pyright: ignore[reportAssignmentType]
        return Term(self.new, self.new.add(op(self.value)))

    def number(self, value: float) -> Term:
        """A constant of this term's type."""
        return Term(self.new, self.new.number(value, self.value))

    def _other(self, other: Term | float) -> SSAValue:
        return other.value if isinstance(other, Term) else self.new.number(other, self.value)

    def with_(self, name: str, other: Term | float) -> Term:
        """A function of this term and another, by the name of its operation."""
        op: type[BinaryOp] = _BY_NAME[name]  # pyright: ignore[reportAssignmentType]
        return Term(self.new, self.new.add(op(self.value, self._other(other))))

    def _compared(self, other: Term | float, direction: str) -> Term:
        op = stablehlo.CompareOp(self.value, self._other(other), direction)
        return Term(self.new, self.new.add(op))

    def __add__(self, other: Term | float) -> Term:
        """The sum."""
        return self.with_("add", other)

    def __sub__(self, other: Term | float) -> Term:
        """The difference."""
        return self.with_("subtract", other)

    def __mul__(self, other: Term | float) -> Term:
        """The product."""
        return self.with_("multiply", other)

    def __truediv__(self, other: Term | float) -> Term:
        """The quotient."""
        return self.with_("divide", other)

    def __neg__(self) -> Term:
        """The negative."""
        return self.of("negate")

    def __abs__(self) -> Term:
        """The magnitude."""
        return self.of("abs")

    def __and__(self, other: Term) -> Term:
        """Whether both conditions hold."""
        return self.with_("and", other)

    def __or__(self, other: Term) -> Term:
        """Whether one of two conditions holds."""
        return self.with_("or", other)

    def __invert__(self) -> Term:
        """Whether a condition does not hold."""
        return self.of("not")

    def __lt__(self, other: Term | float) -> Term:
        """Whether this term is less."""
        return self._compared(other, "LT")

    def __gt__(self, other: Term | float) -> Term:
        """Whether this term is larger."""
        return self._compared(other, "GT")

    def __ge__(self, other: Term | float) -> Term:
        """Whether this term is larger or equal."""
        return self._compared(other, "GE")

    def equals(self, other: Term | float) -> Term:
        """Whether the terms are equal."""
        return self._compared(other, "EQ")

    def differs(self, other: Term | float) -> Term:
        """Whether the terms differ."""
        return self._compared(other, "NE")

    def is_nan(self) -> Term:
        """Whether this term is NaN."""
        return self.differs(self)

    def is_infinite(self) -> Term:
        """Whether this term is infinite."""
        return abs(self).equals(inf)

    def is_finite(self) -> Term:
        """Whether this term is neither infinite nor NaN."""
        return self.of("is_finite")

    def choose(self, then: Term | float, otherwise: Term | float) -> Term:
        """The first where this condition holds, and the second elsewhere. One may be a number."""
        like = then if isinstance(then, Term) else otherwise
        assert isinstance(like, Term)
        values = [
            each.value if isinstance(each, Term) else like.number(each).value
            for each in (then, otherwise)
        ]
        return Term(self.new, self.new.add(stablehlo.SelectOp(self.value, *values)))


@dataclass(frozen=True, eq=False)
class Complex:
    """A complex number in a formula.

    Attributes:
        real, imag: its parts.
    """

    real: Term
    imag: Term

    def __add__(self, other: Complex) -> Complex:
        """The sum."""
        return Complex(self.real + other.real, self.imag + other.imag)

    def __mul__(self, other: Complex) -> Complex:
        """The product."""
        return Complex(
            self.real * other.real - self.imag * other.imag,
            self.real * other.imag + self.imag * other.real,
        )

    def __neg__(self) -> Complex:
        """The negative."""
        return Complex(-self.real, -self.imag)

    def times_i(self) -> Complex:
        """The product with i."""
        return Complex(-self.imag, self.real)

    def over_i(self) -> Complex:
        """The quotient by i."""
        return Complex(self.imag, -self.real)

    def constant(self, real: float, imag: float = 0.0) -> Complex:
        """A constant of this number's type."""
        return Complex(self.real.number(real), self.real.number(imag))


def chosen(condition: Term, then: Complex, otherwise: Complex) -> Complex:
    """The first number where a condition holds, and the second elsewhere."""
    return Complex(
        condition.choose(then.real, otherwise.real), condition.choose(then.imag, otherwise.imag)
    )


def formula(build: Callable[..., Complex | Term]) -> Rule:
    """The rule that replaces an operation by a formula of its operands' parts."""

    def rule(op: Any, new: Splitting) -> Sequence[Made]:
        given = [Complex(*(Term(new, part) for part in new.pair(each))) for each in op.operands]
        made = build(*given)
        if isinstance(made, Term):
            return [made.value]
        return [(made.real.value, made.imag.value)]

    return rule
