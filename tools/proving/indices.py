"""Indices and sizes as polynomials with whole coefficients, over sizes and dimensions of any value.

    n * i + j - 1

A quotient or a remainder that does not simplify is an unknown of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias


@dataclass(frozen=True)
class Quotient:
    """The largest whole number whose product with `by` is at most `of`. `by` is positive."""

    of: Poly
    by: Poly

    def __str__(self) -> str:
        return f"(({self.of}) // ({self.by}))"


@dataclass(frozen=True)
class Remainder:
    """What is left of `of` after the Quotient: 0 to by - 1. `by` is positive."""

    of: Poly
    by: Poly

    def __str__(self) -> str:
        return f"(({self.of}) % ({self.by}))"


Atom: TypeAlias = "str | Quotient | Remainder"
"""A name, or a quotient or remainder that does not simplify."""

Product: TypeAlias = "tuple[Atom, ...]"
"""Atoms that are multiplied, in the order of their text; () for 1."""


@dataclass(frozen=True)
class Poly:
    """A polynomial: the sum of coefficient * product.

    Attributes:
        terms: (product, coefficient) pairs, in the order of their text. No coefficient is 0.
    """

    terms: tuple[tuple[Product, int], ...] = ()

    @staticmethod
    def of(value: int | str | Quotient | Remainder | Poly) -> Poly:
        """A number, a name, a quotient or a remainder as a polynomial."""
        if isinstance(value, Poly):
            return value
        if isinstance(value, int):
            return Poly((((), value),)) if value else Poly()
        return Poly((((value,), 1),))

    @staticmethod
    def total(terms: Iterable[tuple[Product, int]]) -> Poly:
        """The sum of terms in any order."""
        found: dict[Product, int] = {}
        for product, coefficient in terms:
            key = tuple(sorted(product, key=str))
            found[key] = found.get(key, 0) + coefficient
        kept = [(product, c) for product, c in found.items() if c]
        return Poly(tuple(sorted(kept, key=lambda term: [str(each) for each in term[0]])))

    def __add__(self, other: Poly | int) -> Poly:
        return Poly.total((*self.terms, *Poly.of(other).terms))

    def __neg__(self) -> Poly:
        return Poly(tuple((product, -c) for product, c in self.terms))

    def __sub__(self, other: Poly | int) -> Poly:
        return self + -Poly.of(other)

    def __mul__(self, other: Poly | int) -> Poly:
        return Poly.total(((*p, *q), a * b) for p, a in self.terms for q, b in Poly.of(other).terms)

    @cached_property
    def constant(self) -> int | None:
        """The number that the polynomial is; None if it depends on anything."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @cached_property
    def text(self) -> str:
        """The polynomial as people write it."""
        shown: list[str] = []
        for product, c in self.terms:
            factors = [str(atom) for atom in product]
            if abs(c) != 1 or not factors:
                factors.insert(0, str(abs(c)))
            shown.append(("- " if c < 0 else "+ ") + " * ".join(factors))
        joined = " ".join(shown).removeprefix("+ ")
        return joined or "0"

    def __str__(self) -> str:
        return self.text

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that the polynomial depends on, also within quotients and remainders."""
        return frozenset(self._names())

    def _names(self) -> Iterator[str]:
        for product, _ in self.terms:
            for atom in product:
                if isinstance(atom, str):
                    yield atom
                else:
                    yield from atom.of.names
                    yield from atom.by.names

    def replaced(self, values: Mapping[str, Poly]) -> Poly:
        """The polynomial with others in the place of names."""
        if self.names.isdisjoint(values):
            return self
        made = Poly()
        for product, c in self.terms:
            term = Poly.of(c)
            for atom in product:
                term = term * _replaced(atom, values)
            made = made + term
        return made

    def slope(self, name: str) -> int | None:
        """The coefficient of a name; None if the polynomial is not linear in it."""
        found = 0
        for product, c in self.terms:
            if product == (name,):
                found = c
            elif any(
                atom == name if isinstance(atom, str) else name in _names_of(atom)
                for atom in product
            ):
                return None
        return found

    def value(self, values: Mapping[str, int]) -> int:
        """The number that the polynomial is where names have these values."""
        total = 0
        for product, c in self.terms:
            for atom in product:
                if isinstance(atom, str):
                    c *= values[atom]
                else:
                    of, by = atom.of.value(values), atom.by.value(values)
                    c *= of // by if isinstance(atom, Quotient) else of % by
            total += c
        return total


def _names_of(atom: Quotient | Remainder) -> frozenset[str]:
    return atom.of.names | atom.by.names


def _replaced(atom: Atom, values: Mapping[str, Poly]) -> Poly:
    if isinstance(atom, str):
        return values.get(atom, Poly.of(atom))
    return Poly.of(type(atom)(atom.of.replaced(values), atom.by.replaced(values)))


def product_of(values: Sequence[Poly]) -> Poly:
    """The product of polynomials."""
    made = Poly.of(1)
    for each in values:
        made = made * each
    return made
