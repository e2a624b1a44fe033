"""Shrinks failing cases: delta debugging of the damaged file, or of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import TypeVar

from typer.core import TyperGroup

from .case import Case
from .child import outcome_of
from .outcome import Outcome
from .text import tokens_of

SHRINK_SECONDS = 60.0
"""The most seconds for one case."""

Item = TypeVar("Item")


def shrink(
    case: Case, outcome: Outcome, commands: TyperGroup, seconds: float = SHRINK_SECONDS
) -> Case:
    """The smallest case found with the same verdict at the same place.

    Bytes of binary files are removed in pieces; text is reduced by lines, then by tokens; a command
    line by its arguments.

    Args:
        outcome: of the given case.
        seconds: the time limit of the search.
    """
    end = monotonic() + seconds

    def fails(smaller: Case) -> bool:
        return outcome_of(smaller, commands).group == outcome.group

    if not case.damaged:
        # The command's name stays.
        first, rest = case.arguments[:1], case.arguments[1:]
        kept = smallest(rest, lambda some: fails(replace(case, arguments=(*first, *some))), end)
        return replace(case, arguments=(*first, *kept))

    def with_data(data: bytes) -> Case:
        return replace(case, files={**case.files, case.damaged: data})

    data = case.files[case.damaged]
    for pieces in PIECES:
        parts = pieces(data)
        data = b"".join(smallest(parts, lambda some: fails(with_data(b"".join(some))), end))
    return with_data(data)


def smallest(
    items: Sequence[Item], fails: Callable[[Sequence[Item]], bool], end: float
) -> Sequence[Item]:
    """A short selection of the items for which `fails` still holds.

    Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002.

    Args:
        end: the time at which the search ends.
    """
    size = len(items) // 2
    while size and monotonic() < end:
        place, removed = 0, False
        while place < len(items) and monotonic() < end:
            fewer = [*items[:place], *items[place + size :]]
            if fails(fewer):
                items, removed = fewer, True
            else:
                place += size
        if not removed or size > len(items):
            size = min(size, len(items)) // 2
    return items


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _tokens(data: bytes) -> list[bytes]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return [data[place : place + 1] for place in range(len(data))]
    return [each.encode() for _, each in tokens_of(text)]


PIECES: tuple[Callable[[bytes], list[bytes]], ...] = (_lines, _tokens)
"""Ways to cut a file into pieces, coarse ones first."""
