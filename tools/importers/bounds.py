"""Bounds of a size that only a run knows, such as the number of tokens in a cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ...ir.support.errors import InputError

LARGEST_DIGITS = 18
"""The most digits of a size in a text."""


@dataclass(frozen=True)
class Bounds:
    """The smallest and the largest size of an axis."""

    least: int
    most: int

    def __str__(self) -> str:
        """As the option --dim has it: 0..64."""
        return f"{self.least}..{self.most}"


GivenSize = int | Bounds | str | tuple[int, int]
"""A size: a number, or its bounds, as a text "0..64" or as a pair (0, 64)."""


def parts_of(name: str) -> list[str]:
    """The parts of the name of a size that is a sum: "past + 1" has two."""
    return [part.strip() for part in name.split("+")]


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _digits(text: str) -> int | None:
    """The number in a text; None if it is none, or too long."""
    is_number = text.isascii() and text.isdigit() and len(text) <= LARGEST_DIGITS
    return int(text) if is_number else None


def size_or_bounds(given: object) -> int | Bounds | None:
    """A size, or its bounds if they differ; None for anything else."""
    if isinstance(given, str):
        first, _, last = given.partition("..")
        ends: tuple[object, ...] = (_digits(first), _digits(last))
    elif isinstance(given, Bounds):
        ends = given.least, given.most
    elif isinstance(given, tuple | list):
        ends = tuple(cast("tuple[object, ...]", given))
    else:
        ends = given, given
    if len(ends) != 2 or not all(map(_is_size, ends)):
        return None
    least, most = cast("tuple[int, int]", ends)
    if least > most:
        return None
    return least if least == most else Bounds(least, most)


def checked_size(what: str, given: object) -> int | Bounds:
    """A size, or its bounds. Raises InputError for anything else.

    Args:
        what: the dimension in messages.
    """
    found = size_or_bounds(given)
    if found is None:
        pair = cast("tuple[object, ...]", given) if isinstance(given, tuple) else (given,)
        shown = "..".join(map(str, pair))
        raise InputError(f"{what}={shown}; need an integer, 0 or more, or bounds such as 0..64")
    return found
