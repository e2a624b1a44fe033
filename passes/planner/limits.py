"""What bounds the plans of a program: how much of a tile one operator may take for a while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation

from ...backends.target import Target
from ...ir.errors import InputError
from .terms import FREE, Terms

PROPORTION = 0.6
"""Of a tile's usable memory, for copies, partials and the result of one operator, as in PopLibs."""


@dataclass(frozen=True)
class Limits:
    """What is asked of the plans of a program.

    proportion: of a tile's usable memory, which one operator may take for copies, partials and its
    result. by_operator: other proportions, and terms: what else is asked, by operator.
    Raises InputError for a proportion outside 0..1.
    """

    proportion: float = PROPORTION
    by_operator: Mapping[Operation, float] = field(default_factory=dict[Operation, float])
    terms: Mapping[Operation, Terms] = field(default_factory=dict[Operation, Terms])

    def __post_init__(self) -> None:
        for each in (self.proportion, *self.by_operator.values()):
            check_proportion(each)

    def proportion_of(self, op: Operation) -> float:
        """The proportion of a tile that an operator may take."""
        return self.by_operator.get(op, self.proportion)

    def terms_of(self, op: Operation, target: Target) -> Terms:
        """What the plan of an operator has to meet."""
        most = int(self.proportion_of(op) * target.usable_bytes_per_tile)
        return replace(self.terms.get(op, FREE), temporary_bytes=most)


def check_proportion(proportion: float, what: str = "memory proportion") -> None:
    """Raise InputError unless a proportion lies in 0..1."""
    if not 0 <= proportion <= 1:
        raise InputError(f"{what} {proportion}; need 0..1 of a tile's usable memory")
