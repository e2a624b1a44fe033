"""A cache for functions of immutable objects that are asked about often and slow to hash."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TypeVar
from weakref import ref

A = TypeVar("A")
T = TypeVar("T")

_MOST = 4096
"""The number of results to keep."""


def cached_by_identity(answer: Callable[[A], T]) -> Callable[[A], T]:
    """Decorator that keeps the results of a function for the objects that it was called with.

    An equal object is another key, so the function may be called again. The objects must not
    change. A result is forgotten with its object, where Python can tell that this is gone.
    Exceptions are not kept.
    """
    known: dict[int, tuple[object, T]] = {}

    @wraps(answer)
    def kept(given: A) -> T:
        number = id(given)
        found = known.get(number)
        if found is None:
            if len(known) >= _MOST:
                known.clear()
            holder: object
            try:
                holder = ref(given, partial(_forget, known, number))
            except TypeError:
                # Of a tuple or a number, keep the object alive, so that no other gets its identity.
                holder = given
            found = known[number] = holder, answer(given)
        return found[1]

    return kept


def _forget(known: dict[int, tuple[object, T]], number: int, gone: object) -> None:
    """Drop the result of an object that is gone, unless another one has its identity already."""
    if number in known and known[number][0] is gone:
        del known[number]
