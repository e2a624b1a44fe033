"""Decides whether two scalar terms are equal, for all values of their variables.

The solver is loaded by the first decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..terms import Term
from .equality import SPECIAL_TEXT, Equality

__all__ = ["LIMIT", "SPECIAL_TEXT", "Equality", "decide", "missing_meanings"]

LIMIT = 5.0
"""Seconds of processor time for one decision, if none are given."""


def decide(
    left: Term, right: Term, assumptions: Sequence[Term] = (), limit_s: float = LIMIT
) -> Equality:
    """Whether two terms of one type are equal wherever all assumptions hold.

    Raises InputError if the solver is not installed.

    Args:
        assumptions: truth values that hold.
        limit_s: seconds of processor time.
    """
    return _decision().decide(left, right, assumptions, limit_s)


def missing_meanings(term: Term) -> tuple[str, ...]:
    """The functions of a term of which only congruence is known."""
    return _decision().missing_meanings(term)


def _decision() -> Any:
    return import_module(".decision", __name__)
