"""The orders of operands in which a commutative pattern is tried, made one at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import overload

from xdsl.traits import Commutative

from .bound_rule import BoundNested, BoundPattern
from .syntax import Rest

MOST_ORDERS = 64
"""Orders that are tried one after another. With more, a search leaves most of them out.

Assumed: 64 attempts to match take less than a millisecond.
"""


def orders_of(pattern: BoundPattern) -> Sequence[BoundPattern]:
    """The orders of operands of a pattern, listed if they are few."""
    orders = Orders(pattern)
    return tuple(orders) if orders.total <= MOST_ORDERS else orders


def swaps(pattern: BoundPattern) -> bool:
    """Whether the two operands of a pattern's root are tried in both orders."""
    commutes = all(cls.has_trait(Commutative) for cls in pattern.classes)
    operands = pattern.operands
    two = len(operands) == 2 and not any(isinstance(each, Rest) for each in operands)
    return commutes and two and operands[0] != operands[1]


@dataclass(frozen=True, eq=False)
class Orders(Sequence[BoundPattern]):
    """A pattern with the operands of commutative operations in every order, by number.

    The pattern as written is number 0. A swap at the root changes the number most quickly, then a
    swap in the last operand. There are 2**n orders, so they are made when they are asked for, and
    `len` ends at the largest length that Python allows.
    """

    pattern: BoundPattern

    @cached_property
    def swaps(self) -> bool:
        """Whether the operands of the root are tried in both orders."""
        return swaps(self.pattern)

    @cached_property
    def operands(self) -> tuple[Orders | None, ...]:
        """The orders of each operand; None for one that is not nested."""
        return tuple(
            Orders(each.pattern) if isinstance(each, BoundNested) else None
            for each in self.pattern.operands
        )

    @cached_property
    def total(self) -> int:
        """The number of orders."""
        inner = prod(each.total for each in self.operands if each is not None)
        return inner * (2 if self.swaps else 1)

    def __len__(self) -> int:
        return min(self.total, sys.maxsize)

    def __iter__(self) -> Iterator[BoundPattern]:
        return map(self.numbered, range(self.total))

    @overload
    def __getitem__(self, index: int) -> BoundPattern: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[BoundPattern]: ...
    def __getitem__(self, index: int | slice) -> BoundPattern | Sequence[BoundPattern]:
        numbers = range(self.total)[index]
        if isinstance(numbers, int):
            return self.numbered(numbers)
        return [self.numbered(each) for each in numbers]

    def numbered(self, number: int) -> BoundPattern:
        """The order with a number."""
        swapped = False
        if self.swaps:
            number, swapped = number // 2, bool(number % 2)
        operands = list(self.pattern.operands)
        for i in reversed(range(len(operands))):
            each, orders = operands[i], self.operands[i]
            if orders is not None and isinstance(each, BoundNested):
                number, own = divmod(number, orders.total)
                operands[i] = replace(each, pattern=orders.numbered(own))
        if swapped:
            operands.reverse()
        return replace(self.pattern, operands=tuple(operands))
