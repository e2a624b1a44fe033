"""Matches the patterns of rules, and says why a rule does not match."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TypeAlias

from xdsl.ir import Operation

from .bound_rule import BoundPattern, BoundRule, Match
from .commuting import matching_orders
from .matcher import Matcher, Obstacle
from .orders import MOST_ORDERS, Orders
from .syntax import Place
from .vocabulary import Vocabulary

Asked: TypeAlias = "Callable[[BoundRule, Place | None], None]"
"""Called with a rule whose pattern matched, and the place of the guard that did not hold."""

_asked: ContextVar[Asked | None] = ContextVar("asked", default=None)


@contextmanager
def watched_guards(asked: Asked) -> Generator[None]:
    """Within the block, call a function with the outcome of each rule's guards."""
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)


def match_law(law: BoundRule, op: Operation, vocabulary: Vocabulary) -> Match | None:
    """The match of a rule with an operation as its root; None if it does not match."""
    for variant in _tried(law, op, vocabulary):
        matcher = Matcher(vocabulary)
        if not matcher.op(variant, op):
            continue
        held = matcher.holds(law.guards)
        asked = _asked.get()
        if asked is not None:
            asked(law, None if held else matcher.obstacle().place)
        if held:
            return Match(matcher.env, tuple(matcher.matched))
    return None


def _tried(law: BoundRule, op: Operation, vocabulary: Vocabulary) -> Iterable[BoundPattern]:
    """The orders of operands of a rule's pattern that may match."""
    if not isinstance(law.variants, Orders):
        return law.variants
    # An observer of guards also needs the orders for which a guard does not hold.
    return matching_orders(law.variants, law.guards, op, vocabulary, early=_asked.get() is None)


def obstacles(law: BoundRule, op: Operation, vocabulary: Vocabulary) -> Iterator[Obstacle]:
    """The obstacles of a rule at an operation, one for each order of operands that was tried.

    Of a pattern with very many orders, the first MOST_ORDERS are tried.
    """
    if isinstance(law.variants, Orders) and match_law(law, op, vocabulary) is not None:
        return
    for variant in islice(law.variants, MOST_ORDERS):
        matcher = Matcher(vocabulary)
        if matcher.op(variant, op) and matcher.holds(law.guards):
            return
        yield matcher.obstacle()
