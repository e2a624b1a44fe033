"""What a plan of one operator has to meet: what a user has chosen, and how much a tile may hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from ...dialects.abele import Plan


@dataclass(frozen=True)
class Terms:
    """The terms of one operator's plan. What is left out is free.

    split: parts of each dimension, 0 where any will do. method: how the codelet works. tiles: the
    most that may be used, 0 for all. steps, ring: as in Plan. temporary_bytes: of a tile, for
    copies, partials and the result; where no plan keeps it, it is doubled until one does.
    """

    split: tuple[int, ...] = ()
    method: str = ""
    tiles: int = 0
    steps: tuple[int, ...] = ()
    ring: tuple[int, ...] = ()
    temporary_bytes: int | None = None

    def parts(self, dim: int) -> int:
        """Parts of a dimension; 0 where any number will do."""
        return self.split[dim] if self.split else 0

    def least_parts(self, rank: int) -> tuple[int, ...]:
        """Parts of each dimension of the smallest plan there is; a ring has as many as steps."""
        least = [max(self.parts(d), 1) for d in range(rank)]
        for d, r in enumerate(self.ring):
            if r >= 0 and self.steps:
                least[r] = self.parts(r) or self.steps[d]
        return tuple(least)

    def most_tiles(self, tiles: int) -> int:
        """Of so many tiles, how many may be used."""
        return min(self.tiles, tiles) if self.tiles else tiles

    def allow(self, split: Sequence[int]) -> bool:
        """Whether a split is one of those that are left."""
        same = all(n in (0, k) for n, k in zip(self.split, split, strict=False))
        return same and (not self.tiles or prod(split) <= self.tiles)

    def hold(self, temporary_bytes: int) -> bool:
        """Whether a plan may take so many bytes, no limit being relaxed."""
        return self.temporary_bytes is None or temporary_bytes <= self.temporary_bytes

    def complete(self, plan: Plan) -> Plan:
        """A plan with all else that is decided."""
        return replace(plan, method=self.method, steps=self.steps, ring=self.ring)


FREE = Terms()
"""The terms of an operator of which nothing is asked."""


def relaxed(limit: int | None, least: int) -> int:
    """A limit on bytes, doubled until it is at least so many; those themselves, of a limit of 0.

    None is no limit: the largest number of bytes there is.
    """
    if limit is None:
        return 2**62
    while 0 < limit < least:
        limit *= 2
    return max(limit, least)
