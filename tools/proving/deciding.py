"""Asks the decision of scalars whether two terms are equal."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from .bodies import Undecided, is_float
from .outcomes import Outcome, worst
from .scalars import decide
from .scalars.equality import Values
from .scalars.search import search
from .terms import Apply, Merge, Term, subterms, variables

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
    sides = _by_sign(left, right) if found.verdict == "undecided" else None
    if sides is not None:
        both = worst(decided(*side, assumptions, seconds) for side in sides)
        # A pair may differ only for numbers of the other sign.
        return both if both.proved else Outcome("undecided", reason=found.reason)
    return Outcome(
        found.verdict,
        found.exactness,
        found.special,
        found.reason,
        _by_name(found.example),
        _by_name(found.special_example),
    )


def differing(left: Term, right: Term, assumptions: Sequence[Term]) -> Outcome | None:
    """What some points show: values for which two terms differ; None if they show nothing."""
    named = dict.fromkeys(var for each in (left, right, *assumptions) for var in variables(each))
    found = search(left, right, tuple(named), assumptions)
    if found.values is not None:
        return Outcome("different", model=_by_name(found.values))
    if found.special is not None:
        return Outcome(special="differ", special_model=_by_name(found.special))
    return None


def _by_sign(left: Term, right: Term) -> list[tuple[Term, Term]] | None:
    """Two terms where a magnitude in them is the number, and where it is its negative.

    None without a magnitude of an integer. Products of integers take the solver long if it has to
    find the sign of each factor. If both pairs are equal for all values, so are the two terms.
    """
    found = next(
        (
            each
            for term in (left, right)
            for each in subterms(term)
            if isinstance(each, Apply) and each.function == "abs" and not is_float(each.dtype)
        ),
        None,
    )
    if found is None:
        return None
    negative = Apply("neg", found.args, found.dtype)
    return [
        (_with(left, found, value), _with(right, found, value))
        for value in (found.args[0], negative)
    ]


def _with(term: Term, old: Term, new: Term) -> Term:
    """The term with another one in the place of an inner one."""
    if term == old:
        return new
    if isinstance(term, Apply | Merge):
        return dataclasses.replace(term, args=tuple(_with(each, old, new) for each in term.args))
    return term


def _by_name(values: Values) -> dict[str, float]:
    return {each.name: value for each, value in values.items()}
