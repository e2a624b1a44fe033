"""The terms of one operator's plan: a user's constraints, and a memory limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from ...dialects.abele import Plan


@dataclass(frozen=True)
class Terms:
    """The terms of one operator's plan. Empty fields leave the planner free.

    Attributes:
        split: parts of each dimension, 0 for any number.
        method: of the codelet.
        tiles: the most tiles that may be used, 0 for all.
        steps, ring: as in Plan.
        temporary_bytes: the most bytes of a tile for copies, partials and the result; doubled until
            a plan keeps it.
        across, apart: as in Plan; None where the planner may choose the chips.
        batch: the dimension that spans the samples of a batch, which is cut across replicas, and
            their number; None for an operator without samples.
        every: whether the plan takes all chips, if it can.
    """

    split: tuple[int, ...] = ()
    method: str = ""
    tiles: int = 0
    steps: tuple[int, ...] = ()
    ring: tuple[int, ...] = ()
    temporary_bytes: int | None = None
    across: tuple[int, ...] | None = None
    apart: int = 0
    batch: tuple[int, int] | None = None
    every: bool = False

    def chips(self, dim: int) -> int:
        """The chips over which the parts of a dimension are spread."""
        return self.across[dim] if self.across else 1

    def parts(self, dim: int) -> int:
        """Parts of a dimension; 0 for any number."""
        return self.split[dim] if self.split else 0

    def least_parts(self, rank: int) -> tuple[int, ...]:
        """The fewest parts of each dimension; a ring has at least as many parts as steps."""
        least = [max(self.parts(d), 1) for d in range(rank)]
        for d, r in enumerate(self.ring):
            if r >= 0 and self.steps:
                least[r] = self.parts(r) or self.steps[d]
        return tuple(least)

    def most_tiles(self, chip_tiles: int) -> int:
        """The number of tiles that may be used.

        Args:
            chip_tiles: those of a chip.
        """
        tiles = chip_tiles * prod(self.across or ())
        return min(self.tiles, tiles) if self.tiles else tiles

    def allow(self, split: Sequence[int]) -> bool:
        """Whether a split is allowed."""
        same = all(n in (0, k) for n, k in zip(self.split, split, strict=False))
        return same and (not self.tiles or prod(split) <= self.tiles)

    def allow_chips(self, across: Sequence[int]) -> bool:
        """Whether the parts of dimensions may be spread over so many chips; () is one chip."""
        return self.across is None or tuple(across) == self.across

    def keep_chips(self, across: Sequence[int]) -> bool:
        """Whether a plan cuts the batch across all replicas, and takes all chips if it has to.

        Args:
            across: as in Plan.
        """
        if self.batch is not None:
            dim, replicas = self.batch
            return bool(across) and across[dim] % replicas == 0
        return bool(across) or not self.every

    def hold(self, temporary_bytes: int) -> bool:
        """Whether a plan may take this many temporary bytes without relaxing the limit."""
        return self.temporary_bytes is None or temporary_bytes <= self.temporary_bytes

    def complete(self, plan: Plan) -> Plan:
        """A plan with the method, steps, ring and chips of these terms."""
        if (plan.method, plan.steps, plan.ring) != (self.method, self.steps, self.ring):
            plan = replace(plan, method=self.method, steps=self.steps, ring=self.ring)
        if self.across is None or plan.across == self.across:
            return plan
        return replace(plan, across=self.across, apart=self.apart)


FREE = Terms()
"""The terms of an operator without constraints."""


def relaxed(limit: int | None, least: int) -> int:
    """A limit on bytes, doubled until it is at least `least`.

    A limit of 0 becomes `least`. None is no limit, and gives 2**62.
    """
    if limit is None:
        return 2**62
    while 0 < limit < least:
        limit *= 2
    return max(limit, least)
