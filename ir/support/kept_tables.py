"""A cache of tables that is bounded by the rows of what it holds, not only by its entries."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec, Protocol, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

MOST_ROWS = 1 << 24
"""Rows that the tables of a cache may have together: 134 MB for each column of 8 bytes.

Chosen by judgement. Thousands of tables of a chip of 1,472 tiles are fewer rows. A pod of 256 chips
has 376,832 tiles, so a cache with a bound of entries alone would hold gigabytes there.
"""


class Keeping(Protocol):
    """A decorator that keeps what a function returns."""

    def __call__(self, made: Callable[P, T], /) -> Callable[P, T]:
        """The function that keeps it."""
        ...


def kept_tables(rows: Callable[[Any], int], entries: int, most: int = MOST_ROWS) -> Keeping:
    """Decorator that keeps what a function returns, as `lru_cache` does, within a bound of rows.

    It adds up the rows of the results that it keeps. When their sum exceeds the bound, it forgets
    all but the newest result, and the sum begins again. The sum also counts results that were
    forgotten because there were too many entries. So it may forget early. It never keeps more rows
    than the bound, unless a single result has more.

    Args:
        rows: of a result, including the tables that the result makes later and keeps itself.
        entries: the most results that are kept.
        most: the bound of rows.
    """

    def keeping(made: Callable[P, T]) -> Callable[P, T]:
        held = 0

        @lru_cache(maxsize=entries)
        def kept(*args: P.args, **kwargs: P.kwargs) -> T:
            nonlocal held
            found = made(*args, **kwargs)
            held += rows(found)
            if held > most:
                kept.cache_clear()
                held = rows(found)
            return found

        # lru_cache forgets the types of parameters.
        return cast("Callable[P, T]", kept)

    return keeping
