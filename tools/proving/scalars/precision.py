"""The float types that a term rounds to: one side of a rule may round to narrower ones.

Real numbers do not see it: x, and x as f16 and back, are the same real number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import ml_dtypes

from ....ir.element_types import dtype_named
from ..terms import Apply, Merge, Term, operands, variables
from .types import TRUTH, is_float, is_signed, width

EXACT = frozenset({"neg", "abs", "relu", "max", "min", "select", "gate", "match", "sign"})
"""Functions whose results are their operands, with another sign or none at all, or 0, 1 or -1."""


@lru_cache(maxsize=64)
def digits(dtype: str) -> int:
    """The bits of a float type's significand."""
    return int(cast(Any, ml_dtypes.finfo(dtype_named(dtype))).nmant)


@lru_cache(maxsize=64)
def largest(dtype: str) -> float:
    """The largest number of a float type."""
    return float(cast(Any, ml_dtypes.finfo(dtype_named(dtype))).max)


@dataclass(frozen=True)
class Roundings:
    """The float types that a term rounds to.

    Attributes:
        last: that of the result, or of the operands of which it is one.
        inner: those on the way.
    """

    last: frozenset[str]
    inner: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """The types of all roundings."""
        return self.last | self.inner


def roundings(term: Term) -> Roundings:
    """The float types that a term rounds to."""
    last, inner = set[str](), set[str]()
    seen: set[tuple[Term, bool]] = set()
    waiting = [(term, True)]
    while waiting:
        each, ends = waiting.pop()
        if (each, ends) in seen:
            continue
        seen.add((each, ends))
        rounds = _rounds(each)
        if rounds:
            (last if ends else inner).add(each.dtype)
        ends = ends and not rounds and is_float(each.dtype)
        waiting += [(below, ends and is_float(below.dtype)) for below in operands(each)]
    return Roundings(frozenset(last), frozenset(inner))


def _rounds(term: Term) -> bool:
    if not is_float(term.dtype):
        return False
    if isinstance(term, Merge):
        return term.combiner in ("sum", "prod")
    if not isinstance(term, Apply) or term.function in EXACT:
        return False
    return term.function != "identity" or not _holds(term.dtype, term.args[0].dtype)


def _holds(dtype: str, other: str) -> bool:
    """Whether a float type has every number of another type."""
    if is_float(other):
        return digits(dtype) >= digits(other) and largest(dtype) >= largest(other)
    bits = 1 if other == TRUTH else width(other) - is_signed(other)
    return digits(dtype) + 1 >= bits and largest(dtype) >= 2.0**bits


def coarser(left: Term, right: Term) -> str:
    """A type that the right side rounds to, narrower than all that the left side rounds to.

    "" if there is none. Then what is equal for real numbers is equal up to rounding.
    """
    own, other = roundings(left), roundings(right)
    last = own.last or _own(left)
    for found, known in ((other.last, last), (other.inner, own.inner or last)):
        for each in sorted(found):
            if known and (
                digits(each) < min(map(digits, known)) or largest(each) < min(map(largest, known))
            ):
                return each
    return ""


def range_shrinks(left: Term, right: Term) -> bool:
    """Whether the left side rounds to a type of a smaller range than all of the right side."""
    own, other = (roundings(each).all or _own(each) for each in (left, right))
    return bool(own and other) and min(map(largest, own)) < min(map(largest, other))


def _own(term: Term) -> frozenset[str]:
    """The float types of a term that does not round."""
    if is_float(term.dtype):
        return frozenset((term.dtype,))
    return frozenset(each.dtype for each in variables(term) if is_float(each.dtype))
