"""Shards: which dimensions of which operators are cut across chips, as options write it.

    fc1:n=4         the dimension n of the operator fc1, across 4 chips
    conv*:b=2,o=2   two dimensions of several operators, across 4 chips in all
    fc8:n=1         no dimension: the operator stays on one chip

A shard is a constraint on a plan, with the key "across" in a file of constraints.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...ir.support.errors import InputError

OPTION = "--shard"

FORM = "need NAME:DIM=N, such as fc1:n=4"

_MOST_DIGITS = 6


@dataclass(frozen=True)
class Shard:
    """The chips over which the dimensions of an operator are cut.

    Attributes:
        name: of a framework node, or a pattern with *.
        across: chips by dimension.
    """

    name: str
    across: tuple[tuple[str, int], ...]

    @classmethod
    def read(cls, text: str) -> Shard:
        """The shard that a text stands for. Raises InputError."""
        name, colon, cuts = text.rpartition(":")
        if not colon or not name:
            raise InputError(f"{OPTION} {text}: {FORM}")
        across: dict[str, int] = {}
        for cut in cuts.split(","):
            dim, equals, chips = (each.strip() for each in cut.partition("="))
            if not equals or not dim:
                raise InputError(f"{OPTION} {text}: {cut!r}; {FORM}")
            number = chips.isascii() and chips.isdigit() and len(chips) <= _MOST_DIGITS
            if not number or int(chips) < 1:
                raise InputError(f"{OPTION} {text}: {dim}: {chips!r}; need a number of chips")
            if dim in across:
                raise InputError(f"{OPTION} {text}: {dim} is given twice")
            across[dim] = int(chips)
        return cls(name, tuple(across.items()))

    def __str__(self) -> str:
        return f"{self.name}:{','.join(f'{dim}={n}' for dim, n in self.across)}"


def read_shards(texts: Iterable[str]) -> tuple[Shard, ...]:
    """The shards of several texts. Raises InputError for a name that is given twice."""
    found = tuple(map(Shard.read, texts))
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"{OPTION} {name}: given twice; name all dimensions at once, as in {name}:m=2,n=2"
            )
    return found
