"""Combiners of several values at once: a value with its index, or a count with mean and deviation.

Such a combiner does not merge elements but their *members*, a fixed number of values per element.
It lifts each element to its members, merges the members of two sets of elements into those of both
sets, in any order, and finishes the members into the results. A set may therefore be cut: in parts
whose members are partial results, merged by a second compute, or in steps, each of which begins
with the members of the step before.

    argmax:   x at i  ->  (x, i)      (a, i), (b, j)  ->  the larger, and where it is
    moments:  x       ->  (1, x, 0)   Chan's update   ->  mean, variance

backends/codelets/combiners.py computes each combiner, backends/reference/combiners.py has its exact
value and the error bound of a correct machine, and backends/prices/cost.py has its cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MemberKind = Literal["element", "index", "wide"]
"""The type of a member. element: the type of the lifted elements. index: i32. wide: the type of
sums, f32 for narrower floats.
"""


@dataclass(frozen=True)
class Combiner:
    """The properties of a combiner of several values that do not depend on how it is computed.

    Attributes:
        name: its name in bodies.
        members: the type of each member.
        results: the type of each result.
        text: a description for documentation: what it merges, and the rules for ties and NaN.
        reads_position: whether an element is lifted together with its position in a tensor; a point
            outside that tensor contributes nothing.
        fill: an element that contributes nothing; None if there is none.
        floats: whether elements must be floats.
    """

    name: str
    members: tuple[MemberKind, ...]
    results: tuple[MemberKind, ...]
    text: str
    reads_position: bool = False
    fill: float | None = None
    floats: bool = False


@dataclass(frozen=True)
class Extreme(Combiner):
    """A combiner that finds the largest or smallest element and its position.

    Attributes:
        largest: whether it finds the largest element.
        last: whether the last position wins among equal elements; otherwise the first one does.
        nan_wins: whether NaN counts as the extreme; otherwise NaN is never found, and counts as the
            lowest value of the type.
    """

    largest: bool = True
    last: bool = False
    nan_wins: bool = True


def _extreme(
    name: str, text: str, *, largest: bool, last: bool = False, nan_wins: bool = True
) -> Extreme:
    kinds: tuple[MemberKind, ...] = ("element", "index")
    return Extreme(
        name, kinds, kinds, text, reads_position=True, largest=largest, last=last, nan_wins=nan_wins
    )


_NAN = "If there is a NaN, it is the value, and its index counts."

TUPLE_COMBINERS: dict[str, Combiner] = {
    each.name: each
    for each in (
        _extreme("argmax", f"The largest element, and the first index of it. {_NAN}", largest=True),
        _extreme(
            "argmax_last",
            f"The largest element, and the last index of it. {_NAN}",
            largest=True,
            last=True,
        ),
        _extreme(
            "argmin", f"The smallest element, and the first index of it. {_NAN}", largest=False
        ),
        _extreme(
            "argmin_last",
            f"The smallest element, and the last index of it. {_NAN}",
            largest=False,
            last=True,
        ),
        _extreme(
            "argmax_number",
            "The largest element that is a number, and the first index of it. NaN counts as "
            "-infinity.",
            largest=True,
            nan_wins=False,
        ),
        Combiner(
            "moments",
            ("wide", "wide", "wide"),
            ("wide", "wide"),
            "The mean, and the mean of squared deviations from it; of no elements, both are 0. The "
            "members are the count, the mean and the sum of squared deviations.",
            reads_position=True,
            floats=True,
        ),
        Combiner(
            "exp_sum",
            ("element", "wide"),
            ("element", "wide"),
            "The largest element m, and the sum of exp(x - m) over the elements x above "
            "-infinity. NaN makes both NaN, and infinity makes the sum NaN.",
            fill=float("-inf"),
            floats=True,
        ),
    )
}
"""By name, the combiners that merge several values."""

MEMBERS = "members"
"""The function of a body whose operands are members, which need not be lifted."""
