"""Chooses where a network is cut into stages: the slowest stage is as fast as possible.

Stages are contiguous in the order of the program, so a dynamic program finds the best cuts: the
best way to cut the first j operations into k stages extends the best way to cut the first i into
k - 1. All i and j of a k are compared at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

MOST_PLACES = 1500
"""The most places between operations that are tried as cuts. A longer network is cut at places that
are about equally expensive apart."""


@dataclass(frozen=True)
class Work:
    """What the operations of a network cost, in the order of the program; arrays are (operations,).

    Attributes:
        cycles: of each operation for a micro-batch, with its backward operations.
        held: bytes that each operation keeps for the whole run, such as its weights.
        stashed: bytes of a micro-batch that wait for the backward operations.
        crossing: cycles that a cut in front of each operation costs each of its two stages, and 0
            behind the last one: (operations + 1,).
        working: bytes that are needed only while an operation, or a backward operation of it,
            computes.
    """

    cycles: Numbers
    held: Numbers
    stashed: Numbers
    crossing: Numbers
    working: Numbers

    @property
    def without_working(self) -> Work:
        """The same work without the bytes that operations need only while they compute."""
        return replace(self, working=np.zeros_like(self.working))

    @property
    def places(self) -> NDArray[np.int64]:
        """The places that are tried as cuts, with both ends."""
        n = len(self.cycles)
        if n < MOST_PLACES:
            return np.arange(n + 1)
        total = np.cumsum(self.cycles + self.cycles.mean() / n)
        wanted: Numbers = np.linspace(0.0, float(total[-1]), MOST_PLACES)
        return np.unique(np.r_[0, np.searchsorted(total, wanted), n])

    def stage_cycles(self, begin: int, end: int) -> float:
        """The cycles of a stage from an operation on, up to another one."""
        return float(self.cycles[begin:end].sum() + self.crossing[begin] + self.crossing[end])

    def stage_bytes(self, begin: int, end: int, depth: int) -> float:
        """The bytes of a stage.

        Args:
            depth: how many micro-batches wait in its stashes.
        """
        kept = self.held[begin:end].sum() + depth * self.stashed[begin:end].sum()
        return float(kept + self.working[begin:end].max(initial=0.0))

    def most_working(self, at: NDArray[np.int64]) -> Numbers:
        """The most bytes that an operation between two places needs while it computes: (places,
        places), by the first place and the second one."""
        between = np.maximum.reduceat(np.r_[self.working, 0.0], at[:-1])
        later = np.arange(len(between)) >= np.arange(len(at))[:, None]
        most = np.maximum.accumulate(np.where(later, between, 0.0), axis=1)
        return np.c_[np.zeros(len(at)), most]


def best_cuts(work: Work, depths: Sequence[int], room: float) -> list[int] | None:
    """The first operation of each stage but the first; None if no cuts fit.

    Args:
        depths: for each stage, how many micro-batches wait in its stashes.
        room: bytes of a chip.
    """
    at = work.places
    sums = [np.r_[0, np.cumsum(each)][at] for each in (work.cycles, work.held, work.stashed)]
    cycles, held, stashed = (each[None, :] - each[:, None] for each in sums)
    working = work.most_working(at)
    cost = cycles + work.crossing[at][None, :] + work.crossing[at][:, None]
    # A stage has at least one operation.
    cost[np.tril_indices(len(at))] = np.inf
    best = np.full(len(at), np.inf)
    best[0] = -np.inf
    before: list[NDArray[np.int64]] = []
    for depth in depths:
        own = np.where(held + depth * stashed + working <= room, cost, np.inf)
        slowest = np.maximum(best[:, None], own)
        before.append(slowest.argmin(axis=0))
        best = slowest.min(axis=0)
    if not np.isfinite(best[-1]):
        return None
    cuts, end = list[int](), len(at) - 1
    for each in reversed(before):
        end = int(each[end])
        cuts.append(int(at[end]))
    return cuts[-2::-1]
