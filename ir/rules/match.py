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


def match_rule(rule: BoundRule, op: Operation, vocabulary: Vocabulary) -> Match | None:
    """The match of a rule with an operation as its root; None if it does not match."""
    for variant in _tried(rule, op, vocabulary):
        matcher = Matcher(vocabulary)
        if not matcher.op(variant, op):
            continue
        held = matcher.holds(rule.guards)
        asked = _asked.get()
        if asked is not None:
            asked(rule, None if held else matcher.obstacle().place)
        if held:
            return Match(matcher.env, tuple(matcher.matched))
    return None


def _tried(rule: BoundRule, op: Operation, vocabulary: Vocabulary) -> Iterable[BoundPattern]:
    """The orders of operands of a rule's pattern that may match."""
    if not isinstance(rule.variants, Orders):
        return rule.variants
    # An observer of guards also needs the orders for which a guard does not hold.
    return matching_orders(rule.variants, rule.guards, op, vocabulary, early=_asked.get() is None)


def obstacles(rule: BoundRule, op: Operation, vocabulary: Vocabulary) -> Iterator[Obstacle]:
    """The obstacles of a rule at an operation, one for each order of operands that was tried.

    Of a pattern with very many orders, the first MOST_ORDERS are tried.
    """
    if isinstance(rule.variants, Orders) and match_rule(rule, op, vocabulary) is not None:
        return
    for variant in islice(rule.variants, MOST_ORDERS):
        matcher = Matcher(vocabulary)
        if matcher.op(variant, op) and matcher.holds(rule.guards):
            return
        yield matcher.obstacle()
