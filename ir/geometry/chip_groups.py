"""Groups of chips that meet apart from each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .tiles import MOST_CHIPS


@dataclass(frozen=True)
class ChipGroups:
    """Groups of chips. The chips of a group meet; those of different groups do not.

        [0, 1] [2, 3]     two pairs, each by itself

    Attributes:
        groups: each in ascending order; the groups in the order of their first chips.

    Raises ValueError for an empty group, a number that is negative or too large, and a chip that is
    named twice.
    """

    groups: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.groups or not all(self.groups):
            raise ValueError("an empty group of chips; need one chip at least")
        chips = sorted(chip for group in self.groups for chip in group)
        if chips[0] < 0:
            raise ValueError(f"chip {chips[0]}; need 0 or more")
        if chips[-1] >= MOST_CHIPS:
            raise ValueError(f"chip {chips[-1]}; need less than {MOST_CHIPS}")
        twice = next((chip for chip, after in pairwise(chips) if chip == after), None)
        if twice is not None:
            raise ValueError(f"chip {twice} is named twice; need disjoint groups")
        ordered = tuple(sorted(tuple(sorted(group)) for group in self.groups))
        if ordered != self.groups:
            raise ValueError("chips are not in ascending order")

    @staticmethod
    def of(groups: Iterable[Iterable[int]]) -> ChipGroups:
        """The groups, in whatever order they are."""
        return ChipGroups(tuple(sorted(tuple(sorted(group)) for group in groups)))

    @staticmethod
    def of_runs(runs: Sequence[ChipRun]) -> ChipGroups:
        """The groups of all runs. Raises ValueError for what is no group, before it lists chips."""
        count = sum(run.count for run in runs)
        if count > MOST_CHIPS:
            raise ValueError(f"{count} chips; at most {MOST_CHIPS}")
        return ChipGroups.of(group for run in runs for group in run.groups())

    @property
    def last(self) -> int:
        """The chip with the largest number."""
        return max(group[-1] for group in self.groups)

    def number(self, chips: int) -> NDArray[np.int64]:
        """The number of the group of each chip: (chips,); -1 for a chip of no group."""
        found = np.full(max(chips, self.last + 1), -1, np.int64)
        for number, group in enumerate(self.groups):
            found[list(group)] = number
        return found[:chips]


@dataclass(frozen=True)
class ChipRun:
    """Groups of the same form at equal distances, as texts write them.

        [0 to 2, 8] times 2 apart 10     [0, 1, 2, 8] [10, 11, 12, 18]

    Attributes:
        ranges: of the first group: the first chip, the last one, and the distance of neighbours.
        times: the number of groups.
        apart: the distance from a group to the next.
    """

    ranges: tuple[tuple[int, int, int], ...]
    times: int = 1
    apart: int = 0

    @property
    def count(self) -> int:
        """The chips of all groups. Raises ValueError for an empty group."""
        if any(last < first or step < 1 for first, last, step in self.ranges) or self.times < 1:
            raise ValueError("an empty group of chips; need one chip at least")
        return self.times * sum((last - first) // step + 1 for first, last, step in self.ranges)

    def groups(self) -> list[tuple[int, ...]]:
        """The groups, chip by chip; `count` says how many chips that takes."""
        first = [c for begin, last, step in self.ranges for c in range(begin, last + 1, step)]
        return [tuple(c + k * self.apart for c in first) for k in range(self.times)]


def ranges_of(chips: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
    """Chips as ranges of equal distance; only three chips or more are worth a range."""
    found: list[tuple[int, int, int]] = []
    at = 0
    while at < len(chips):
        end = at + 1
        if end < len(chips):
            step = chips[end] - chips[at]
            while end + 1 < len(chips) and chips[end + 1] - chips[end] == step:
                end += 1
            if end - at >= 2:
                found.append((chips[at], chips[end], step))
                at = end + 1
                continue
        found.append((chips[at], chips[at], 1))
        at += 1
    return tuple(found)


def runs_of(groups: ChipGroups) -> list[ChipRun]:
    """Groups as runs of equal forms at equal distances."""
    found: list[ChipRun] = []
    left = list(groups.groups)
    while left:
        first = left[0]
        form = [chip - first[0] for chip in first]
        times, apart = 1, 0
        while times < len(left):
            each = left[times]
            step = each[0] - left[times - 1][0]
            if (times > 1 and step != apart) or [c - each[0] for c in each] != form:
                break
            apart = step
            times += 1
        found.append(ChipRun(ranges_of(first), times, apart))
        del left[:times]
    return found
