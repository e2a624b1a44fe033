"""Gradients of scalar functions with respect to their operands, as expressions of scalar functions.

A rule is written as Python, and read as an expression:

    Mathematics("mul", 2, slopes=(lambda s: s.g * s.b, lambda s: s.g * s.a))

Rules read the result y instead of the operands where they can, since y is often kept anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """An expression: a scalar function of terms, or a named value.

    Attributes:
        name: the function's name, or the value's: a to e for the operands, y for the result, g for
            the gradient of the result.
        parameters: constants of the function.
    """

    name: str
    operands: tuple[Term, ...] = ()
    parameters: tuple[float, ...] = ()

    def __add__(self, other: Term) -> Term:
        return call("add", self, other)

    def __sub__(self, other: Term) -> Term:
        return call("sub", self, other)

    def __mul__(self, other: Term | float) -> Term:
        if isinstance(other, Term):
            return call("mul", self, other)
        return self if other == 1.0 else call("scale", self, parameters=(other,))

    def __truediv__(self, other: Term) -> Term:
        return call("div", self, other)

    def __neg__(self) -> Term:
        return call("neg", self)

    @property
    def is_value(self) -> bool:
        """Whether it is a named value."""
        return not self.operands

    def values(self) -> Iterator[str]:
        """The names of the values that it reads, with repetitions."""
        if self.is_value:
            yield self.name
        for each in self.operands:
            yield from each.values()


ZERO = Term("zero")
"""The number 0."""


def call(name: str, *operands: Term, parameters: tuple[float, ...] = ()) -> Term:
    """A scalar function of terms."""
    return Term(name, operands, parameters)


def where_positive(condition: Term, value: Term) -> Term:
    """`value` where the condition is positive, else 0, even if `value` is infinite or NaN there."""
    return call("gate", condition, value)


def where_not_zero(condition: Term, value: Term) -> Term:
    """`value` where the condition is not 0, else 0, even if `value` is infinite or NaN there."""
    return where_positive(call("abs", condition), value)


def plus(term: Term, amount: float) -> Term:
    """A term plus a number."""
    return term if amount == 0.0 else call("shift", term, parameters=(amount,))


@dataclass(frozen=True)
class Values:
    """The values that a rule may read."""

    parameters: tuple[float, ...] = ()
    a: Term = Term("a")
    b: Term = Term("b")
    c: Term = Term("c")
    d: Term = Term("d")
    e: Term = Term("e")
    y: Term = Term("y")
    g: Term = Term("g")


Slope = Callable[[Values], Term | None]
"""The gradient of an operand: an expression, or None if it is 0 everywhere."""

OPERANDS = "abcde"
"""The names of the operands in expressions."""


def zero(s: Values) -> None:
    """The slope of an operand that does not change the result, except by jumps."""


# Rules that are longer than a line. At a pole, a gradient of 0 gives 0.


def of_largest(s: Values) -> Term:
    """The gradient of a maximum's first operand: g where it is larger, g / 2 where both are
    equal."""
    return s.g * (plus(call("sign", s.a - s.b), 1.0) * 0.5)


def of_largest_second(s: Values) -> Term:
    """The gradient of a maximum's second operand: g where it is larger, g / 2 where both are
    equal."""
    return s.g * (plus(call("sign", s.b - s.a), 1.0) * 0.5)


def of_leaky(s: Values) -> Term | None:
    """The gradient of leaky_relu: g * alpha where a is 0 or less, and g above."""
    (alpha,) = s.parameters
    if alpha == 1.0:
        return s.g
    above = where_positive(s.a, s.g * (1.0 - alpha))
    return above if alpha == 0.0 else s.g * alpha + above


def of_clip(s: Values) -> Term | None:
    """The gradient of clip: g between the limits, 0 at and beyond them."""
    low, high = s.parameters
    found = s.g
    if high != float("inf"):
        found = where_positive(plus(-s.a, high), found)
    if low != float("-inf"):
        found = where_positive(plus(s.a, -low), found)
    return found


def of_power(s: Values) -> Term | None:
    """The gradient of a constant power: g * p * a^(p - 1); None for p = 0, even at a = 0."""
    (p,) = s.parameters
    if p == 0.0:
        return None
    if p == 1.0:
        return s.g
    if p == 2.0:
        return s.g * (s.a * 2.0)
    if p < 0.0:
        # Computed from the result, because a second power would cost as much as the first.
        return where_not_zero(s.g, s.g * ((s.y / s.a) * p))
    found = s.g * (call("power", s.a, parameters=(p - 1.0,)) * p)
    return where_not_zero(s.g, found) if p < 1.0 else found


def of_base(s: Values) -> Term:
    """The gradient of a power's base: g * b * a^(b - 1); 0 where b is 0, even at a = 0."""
    found = s.g * (s.b * call("pow", s.a, plus(s.b, -1.0)))
    return where_not_zero(s.b, where_not_zero(s.g, found))


def of_exponent(s: Values) -> Term:
    """The gradient of a power's exponent: g * y * log(a), and 0 where a is not positive."""
    return where_positive(s.a, s.g * (s.y * call("log", s.a)))


def over_root(sign: float, square: Callable[[Values], Term]) -> Slope:
    """A rule: the gradient over the square root of an expression, times a sign."""

    def slope(s: Values) -> Term:
        return where_not_zero(s.g, (s.g * sign) / call("sqrt", square(s)))

    return slope


def one_minus(term: Term) -> Term:
    """1 minus a term."""
    return plus(-term, 1.0)


def squared(term: Term) -> Term:
    """The square of a term."""
    return call("square", term)


def of_packed_number(s: Values) -> Term:
    """The gradient of packed_mul's number: g times the unpacked integer."""
    return call("packed_mul", s.g, s.b, s.c, s.d, s.e, parameters=s.parameters)


def of_packed_scale(s: Values) -> Term:
    """The gradient of packed_mul's scale: as that of its number, with both exchanged."""
    return call("packed_mul", s.g, s.b, s.a, s.d, s.e, parameters=s.parameters)
