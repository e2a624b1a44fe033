"""Whole numbers that only a run knows, such as the size of an axis: polynomials with bounds.

A `Length` is a sum of products of numbers, each of which has bounds. Two lengths are equal if they
are equal as polynomials, so that `past + 1` is known to be the size of a cache and a new row joined
together, although no one knows `past`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import chain
from operator import mul
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Number(Generic[T]):
    """A whole number that only a run knows. Each is equal to itself only.

    Attributes:
        value: what holds it in the run.
        least, most: its bounds.
    """

    value: T
    least: int
    most: int


@dataclass(frozen=True)
class Quotient:
    """A length divided by an integer, rounded down."""

    dividend: Length
    divisor: int

    @property
    def least(self) -> int:
        """The smallest quotient."""
        return self.dividend.least // self.divisor

    @property
    def most(self) -> int:
        """The largest quotient."""
        return self.dividend.most // self.divisor


@dataclass(frozen=True)
class Larger:
    """The larger one of two lengths."""

    lengths: frozenset[Length]

    @property
    def least(self) -> int:
        """The smallest value."""
        return max(each.least for each in self.lengths)

    @property
    def most(self) -> int:
        """The largest value."""
        return max(each.most for each in self.lengths)


Atom = Number[object] | Quotient | Larger
"""A factor of a product."""

Product = frozenset[tuple[Atom, int]]
"""The factors of a product, each with its power. No factors make 1."""

ONE: Product = frozenset()


def _times(left: Product, right: Product) -> Product:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return frozenset(powers.items())


def _range(product: Product) -> tuple[int, int]:
    """The smallest and the largest value of a product."""
    low, high = 1, 1
    for atom, power in product:
        for _ in range(power):
            ends = [a * b for a in (low, high) for b in (atom.least, atom.most)]
            low, high = min(ends), max(ends)
    return low, high


@dataclass(frozen=True)
class Length:
    """A sum of products of numbers.

    Attributes:
        terms: the products, each with its factor, which is not 0.
    """

    terms: frozenset[tuple[Product, int]] = field(default_factory=frozenset[tuple[Product, int]])

    @classmethod
    def of(cls, value: int | Atom) -> Length:
        """The length that is an integer, or one number."""
        if isinstance(value, int):
            return _sum({ONE: value})
        return _sum({frozenset({(value, 1)}): 1})

    @property
    def fixed(self) -> int | None:
        """The value, if it is the same in every run; None otherwise."""
        if not self.terms:
            return 0
        ((product, factor), *more) = self.terms
        return factor if not more and not product else None

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value."""
        low = high = 0
        for product, factor in self.terms:
            ends = sorted(factor * end for end in _range(product))
            low, high = low + ends[0], high + ends[1]
        return low, high

    @property
    def least(self) -> int:
        """The smallest value, or less."""
        return self.bounds[0]

    @property
    def most(self) -> int:
        """The largest value, or more."""
        return self.bounds[1]

    def numbers(self) -> list[Number[object]]:
        """The numbers that it depends on."""
        found: dict[Number[object], None] = {}
        for atom in dict.fromkeys(a for product, _ in self.terms for a, _ in product):
            if isinstance(atom, Number):
                found[atom] = None
            else:
                inner = [atom.dividend] if isinstance(atom, Quotient) else atom.lengths
                found.update(dict.fromkeys(chain.from_iterable(each.numbers() for each in inner)))
        return list(found)

    def __add__(self, other: int | Length) -> Length:
        """The sum."""
        found = dict(self.terms)
        for product, factor in as_length(other).terms:
            found[product] = found.get(product, 0) + factor
        return _sum(found)

    __radd__ = __add__

    def __neg__(self) -> Length:
        """The negative."""
        return _sum({product: -factor for product, factor in self.terms})

    def __sub__(self, other: int | Length) -> Length:
        """The difference."""
        return self + -as_length(other)

    def __rsub__(self, other: int) -> Length:
        """The difference."""
        return as_length(other) - self

    def __mul__(self, other: int | Length) -> Length:
        """The product."""
        found: dict[Product, int] = {}
        for left, m in self.terms:
            for right, n in as_length(other).terms:
                product = _times(left, right)
                found[product] = found.get(product, 0) + m * n
        return _sum(found)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Length:
        """The quotient by a positive integer, rounded down."""
        assert divisor > 0
        whole = _sum({p: n // divisor for p, n in self.terms if n % divisor == 0})
        rest = _sum({p: n for p, n in self.terms if n % divisor})
        if rest.least // divisor == rest.most // divisor:
            return whole + rest.least // divisor
        return whole + Length.of(Quotient(rest, divisor))

    def __mod__(self, divisor: int) -> Length:
        """The remainder of the division by a positive integer."""
        return self - (self // divisor) * divisor

    def divided(self, other: Length) -> Length | None:
        """The length whose product with another one is this one; None if there is none such."""
        if not other.terms:
            return None
        if len(other.terms) == 1:
            ((divisor, factor),) = other.terms
            found: dict[Product, int] = {}
            for product, n in self.terms:
                powers = dict(product)
                for atom, power in divisor:
                    powers[atom] = powers.get(atom, 0) - power
                if n % factor or min(powers.values(), default=0) < 0:
                    return None
                left = frozenset((atom, power) for atom, power in powers.items() if power)
                found[left] = n // factor
            return _sum(found)
        # Of several terms, only multiples are looked for: a shape repeats the sizes it was made of.
        for product, n in self.terms:
            for divisor, factor in other.terms:
                each = _sum({product: n}).divided(_sum({divisor: factor}))
                if each is not None and each * other == self:
                    return each
        return None


def _sum(terms: Mapping[Product, int]) -> Length:
    return Length(frozenset((product, factor) for product, factor in terms.items() if factor))


def as_length(value: int | Length) -> Length:
    """An integer, or a length, as a length."""
    return value if isinstance(value, Length) else Length.of(int(value))


def simplest(value: int | Length) -> int | Length:
    """A length that is the same in every run as an integer, and any other one as it is."""
    if isinstance(value, Length):
        fixed = value.fixed
        return value if fixed is None else fixed
    return int(value)


def larger(left: int | Length, right: int | Length) -> int | Length:
    """The larger one of two lengths."""
    difference = as_length(left) - as_length(right)
    if difference.least >= 0:
        return simplest(left)
    if difference.most <= 0:
        return simplest(right)
    return Length.of(Larger(frozenset({as_length(left), as_length(right)})))


def smaller(left: int | Length, right: int | Length) -> int | Length:
    """The smaller one of two lengths."""
    return simplest(-as_length(larger(-as_length(left), -as_length(right))))


def product(lengths: Iterable[int | Length]) -> Length:
    """The product of lengths."""
    return reduce(mul, map(as_length, lengths), Length.of(1))


def is_less(left: int | Length, right: int | Length) -> bool | None:
    """Whether one length is less than another one; None if that depends on the run."""
    difference = as_length(left) - as_length(right)
    if difference.most < 0:
        return True
    return False if difference.least >= 0 else None


def is_equal(left: int | Length, right: int | Length) -> bool | None:
    """Whether two lengths are equal; None if that depends on the run."""
    difference = as_length(left) - as_length(right)
    if not difference.terms:
        return True
    return False if difference.least > 0 or difference.most < 0 else None


def row_strides(sizes: Iterable[int | Length]) -> list[Length]:
    """For each axis, the number of elements between neighbours along it, in row-major order."""
    sizes = list(sizes)
    return [product(sizes[i + 1 :]) for i in range(len(sizes))]
