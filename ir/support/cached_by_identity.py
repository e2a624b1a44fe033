"""A cache for functions of immutable objects that are asked about often and slow to hash."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")

_MOST = 4096
"""The number of results to keep."""


def cached_by_identity(answer: Callable[[A], T]) -> Callable[[A], T]:
    """Decorator that keeps the results of a function for the objects that it was called with.

    An equal object is another key, so the function may be called again. The objects must not
    change. Exceptions are not kept.
    """
    known: dict[int, tuple[A, T]] = {}

    @wraps(answer)
    def kept(given: A) -> T:
        found = known.get(id(given))
        if found is None:
            if len(known) >= _MOST:
                known.clear()
            # Keep the object alive too, so that no other object gets its identity.
            found = known[id(given)] = given, answer(given)
        return found[1]

    return kept
