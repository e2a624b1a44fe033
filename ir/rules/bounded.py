"""Arithmetic of the conditions of rules, whose numbers and lists cannot grow without bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ..support.errors import InputError
from ..support.limits import INTEGER_BITS, LIST_ITEMS


class TooLarge(InputError):
    """A number or list that a rule computes exceeds a limit, which the message names."""


def checked_bits(bits: int) -> None:
    """Raise TooLarge if an integer may have so many bits."""
    if bits > INTEGER_BITS.most:
        raise TooLarge(INTEGER_BITS.refusal(f"an integer of {bits:,} bits"))


def checked_length(items: int) -> None:
    """Raise TooLarge if a list may have so many items."""
    if items > LIST_ITEMS.most:
        raise TooLarge(LIST_ITEMS.refusal(f"a list of {items:,} items"))


def checked(value: Any) -> Any:
    """The value, if no integer and no list in it exceeds its limit. Raises TooLarge."""
    _check(value)
    return value


def _check(value: object) -> None:
    if isinstance(value, int):
        checked_bits(value.bit_length())
    elif isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        checked_length(len(items))
        for each in items:
            _check(each)


def times(a: Any, b: Any) -> Any:
    """The product of two numbers. Raises TooLarge, and TypeError for anything else."""
    for each in (a, b):
        # Python would also repeat a list or a string.
        if not isinstance(each, int | float):
            raise TypeError(f"{type(each).__name__}; need a number")
    if isinstance(a, int) and isinstance(b, int):
        checked_bits(a.bit_length() + b.bit_length() - 1)
    return cast(Any, a) * cast(Any, b)


def product_of(values: Iterable[int]) -> int:
    """The product of integers. Raises TooLarge."""
    found = 1
    for each in values:
        found = times(found, each)
    return found
