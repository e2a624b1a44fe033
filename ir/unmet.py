"""A condition that an operation does not meet, in words and in a form that programs can read."""

from __future__ import annotations

from collections.abc import Collection

from .upstream import VerifyException


class Unmet(VerifyException):
    """A condition that an operation does not meet.

    The search for operations that verify (rules/climb.py) reads what and allowed, and never the
    message, so a message can be reworded without changing what is generated.

    what: the operand, attribute or result that is wrong, by name. allowed: the texts that it may
    be, or () if they are not a short list.
    """

    def __init__(self, message: str, what: str, allowed: Collection[str] = ()) -> None:
        super().__init__(message)
        self.what = what
        self.allowed = tuple(allowed)


def need_one_of(what: str, found: str, allowed: Collection[str]) -> None:
    """Raise Unmet unless a text is one of those allowed."""
    if found not in allowed:
        message = f"{what} {found!r}; need one of {', '.join(allowed)}"
        raise Unmet(message, what, allowed)
