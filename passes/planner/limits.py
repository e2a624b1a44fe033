"""Limits on the plans of a program: the share of a tile that one operator may take temporarily."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation

from ...backends.target import Target
from ...ir.support.errors import InputError
from .terms import FREE, Terms

PROPORTION = 0.6
"""The share of a tile's usable memory for copies, partials and the result of one operator.

Source: PopLibs, availableMemoryProportion of convolutions and matrix products.
"""


@dataclass(frozen=True)
class Limits:
    """The limits on the plans of a program.

    Raises InputError for a proportion outside 0..1.

    Attributes:
        proportion: the share of a tile's usable memory that one operator may take for copies,
            partials and its result.
        by_operator: other proportions, by operator.
        terms: further constraints on plans, by operator.
    """

    proportion: float = PROPORTION
    by_operator: Mapping[Operation, float] = field(default_factory=dict[Operation, float])
    terms: Mapping[Operation, Terms] = field(default_factory=dict[Operation, Terms])

    def __post_init__(self) -> None:
        for each in (self.proportion, *self.by_operator.values()):
            check_proportion(each)

    def proportion_of(self, op: Operation) -> float:
        """The proportion of a tile's usable memory that an operator may take."""
        return self.by_operator.get(op, self.proportion)

    def terms_of(self, op: Operation, target: Target) -> Terms:
        """The terms of an operator's plan."""
        most = int(self.proportion_of(op) * target.usable_bytes_per_tile)
        return replace(self.terms.get(op, FREE), temporary_bytes=most)


def check_proportion(proportion: float, what: str = "memory proportion") -> None:
    """Raise InputError unless a proportion lies in 0..1."""
    if not 0 <= proportion <= 1:
        raise InputError(f"{what} {proportion}; need 0..1 of a tile's usable memory")
