"""Decides from the guards of a rule whether a division leaves no remainder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd, lcm

from .syntax import Constant, Expression, Operator


@dataclass(frozen=True)
class Divisors:
    """The divisors that guards guarantee: pairs (a, b) from a % b == 0."""

    facts: tuple[tuple[Expression, Expression], ...]

    @staticmethod
    def of(guards: Iterable[Expression]) -> Divisors:
        """The divisors that follow if all guards hold."""
        return Divisors(tuple(_facts(guards)))

    def divides(self, b: Expression, a: Expression) -> bool:
        """True if a / b is known to be an integer."""
        if (a, b) in self.facts or a == b or _number(a) == 0:
            return True
        number = _number(b)
        if number is not None:
            return number != 0 and self.multiple(a) % number == 0
        match a:
            case Operator(symbol="+" | "-", operands=operands):
                return all(self.divides(b, each) for each in operands)
            case Operator(symbol="neg", operands=(inner,)):
                return self.divides(b, inner)
            case Operator(symbol="*"):
                factors = list(_factors(a))
                return any(self.divides(b, each) for each in factors) or self._cancels(factors, b)
            case _:
                return False

    def _cancels(self, factors: Sequence[Expression], b: Expression) -> bool:
        """True if the factors of b cancel against these factors of a product."""
        left = list(factors)
        number = 1
        for each in _factors(b):
            if each in left:
                left.remove(each)
            elif (value := _number(each)) is not None:
                number *= value
            else:
                return False
        known = 1
        for each in left:
            known *= self.multiple(each)
        return number != 0 and known % number == 0

    def multiple(self, a: Expression) -> int:
        """A number that divides an expression; 0 for 0, which every number divides."""
        known = 1
        for what, by in self.facts:
            if what == a and (value := _number(by)):
                known = lcm(known, value)
        return lcm(known, self._by_parts(a))

    def _by_parts(self, a: Expression) -> int:
        match a:
            case Constant(value=int(value)):
                return abs(value)
            case Operator(symbol="*", operands=(left, right)):
                return self.multiple(left) * self.multiple(right)
            case Operator(symbol="+" | "-", operands=(left, right)):
                return gcd(self.multiple(left), self.multiple(right))
            case Operator(symbol="neg", operands=(inner,)):
                return self.multiple(inner)
            case Operator(symbol="/", operands=(left, right)):
                known, number = self.multiple(left), _number(right)
                return known // number if number and known % number == 0 else 1
            case _:
                return 1


def _facts(guards: Iterable[Expression]) -> Iterator[tuple[Expression, Expression]]:
    for each in guards:
        match each:
            case Operator(symbol="and", operands=operands):
                yield from _facts(operands)
            case Operator(symbol="==", operands=(Operator(symbol="%", operands=(a, b)), zero)):
                if _number(zero) == 0:
                    yield a, b
            case _:
                pass


def _number(expression: Expression) -> int | None:
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return expression.value
    return None


def _factors(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Operator) and expression.symbol == "*":
        for each in expression.operands:
            yield from _factors(each)
    else:
        yield expression
