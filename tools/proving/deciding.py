"""Asks the decision of scalars whether two terms are equal."""

from __future__ import annotations

from collections.abc import Sequence

from .bodies import Undecided
from .outcomes import Outcome
from .scalars import decide
from .scalars.equality import Values
from .terms import Term

LONGEST = 2.0
"""Seconds of processor time for one question, so that a rule has time for several."""


def decided(left: Term, right: Term, assumptions: Sequence[Term], seconds: float) -> Outcome:
    """How equal two terms are, wherever the assumptions hold. Raises Undecided without time.

    Args:
        assumptions: truth values that hold.
        seconds: of processor time at most.
    """
    if left == right:
        return Outcome()
    if seconds <= 0:
        raise Undecided("the time was up")
    found = decide(left, right, assumptions, min(seconds, LONGEST))
    return Outcome(
        found.verdict,
        found.exactness,
        found.special,
        found.reason,
        _by_name(found.example),
        _by_name(found.special_example),
    )


def _by_name(values: Values) -> dict[str, float]:
    return {each.name: value for each, value in values.items()}
