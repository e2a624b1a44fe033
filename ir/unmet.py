"""Verification errors that programs can read as well as people."""

from __future__ import annotations

from collections.abc import Collection

from .upstream import VerifyException


class Unmet(VerifyException):
    """A condition that an operation does not meet.

    The search for operations that verify (rules/climb.py) reads `what` and `allowed` but never the
    message, so rewording a message does not change which operations are generated.

    Attributes:
        what: the name of the operand, attribute or result that is wrong.
        allowed: the strings that it may be, or () if there is no short list of them.
    """

    def __init__(self, message: str, what: str, allowed: Collection[str] = ()) -> None:
        super().__init__(message)
        self.what = what
        self.allowed = tuple(allowed)


def need_one_of(what: str, found: str, allowed: Collection[str]) -> None:
    """Raise Unmet unless a string is one of those allowed."""
    if found not in allowed:
        message = f"{what} {found!r}; need one of {', '.join(allowed)}"
        raise Unmet(message, what, allowed)
