"""Software pipelines: which stage works on which micro-batch in which cycle.

Stage s works on micro-batch i in cycle s + i * interval. One interval is a *row* of cycles, and a
schedule is nothing but the length of a row:

    grouped, 4 stages: interval 1        interleaved, chips 0 1 1 0: interval 2

    cycle      0  1  2  3  4  5          cycle      0  1  2  3  4  5
    stage 0    0  1  2  3  4  5          stage 0    0     1     2
    stage 1       0  1  2  3  4          stage 1       0     1     2
    stage 2          0  1  2  3          stage 2          0     1
    stage 3             0  1  2          stage 3             0     1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal, get_args

ScheduleName = Literal["grouped", "interleaved", "sequential"]
"""grouped: every stage works in each cycle. interleaved: no chip works on two stages in a cycle.
sequential: one stage works in each cycle, as without a pipeline."""

SCHEDULES: tuple[ScheduleName, ...] = get_args(ScheduleName)


def interleaving_interval(chips: Sequence[int]) -> int:
    """The least interval with which no chip works on two stages in the same cycle.

    Two stages share a cycle if their numbers differ by a multiple of the interval. A forward stage
    and the backward stage that mirrors it differ by an odd number, so 2 will do for training.
    """
    own: dict[int, list[int]] = {}
    for stage, chip in enumerate(chips):
        own.setdefault(chip, []).append(stage)
    return next(
        interval
        for interval in count(1)
        if all(len({s % interval for s in stages}) == len(stages) for stages in own.values())
    )


LEAST_INTERVAL: Mapping[ScheduleName, Callable[[Sequence[int]], int]] = {
    "grouped": lambda chips: 1,
    "interleaved": interleaving_interval,
    "sequential": len,
}
"""For each schedule, the interval for the chips of the stages."""


@dataclass(frozen=True)
class Pipeline:
    """The schedule of a pipeline.

    Attributes:
        stages: the number of stages; forward and backward stages both count.
        interval: the cycles between the beginnings of two micro-batches.
    """

    stages: int
    interval: int

    @classmethod
    def of(cls, schedule: ScheduleName, chips: Sequence[int]) -> Pipeline:
        """The pipeline of a schedule.

        Args:
            chips: the chip of each stage.
        """
        return cls(len(chips), max(LEAST_INTERVAL[schedule](chips), 1))

    @property
    def overlap(self) -> int:
        """The micro-batches in work at once, which are also the rows that one of them goes
        through."""
        return max(-(-self.stages // self.interval), 1)

    def slots(self, made: int, read: int) -> int:
        """The slots of the stash between the stage that makes a value and a later one that reads
        it.

        Besides these, the latest value always waits for its reader, as it does without a pipeline.
        """
        return (read - made - 1) // self.interval

    @property
    def fill(self) -> int:
        """The rows before all stages work."""
        return self.overlap - 1

    def main(self, micro_batches: int) -> int:
        """The rows in which all stages work."""
        return micro_batches - self.fill

    @property
    def flush(self) -> int:
        """The rows after the last micro-batch has begun."""
        return self.overlap - 1

    def row(self, offset: int) -> int:
        """How many rows after the first one of a micro-batch a step works on it.

        Args:
            offset: the cycles between the beginning of a micro-batch and the step.
        """
        return offset // self.interval

    def works(self, offset: int, row: int, micro_batches: int) -> bool:
        """Whether a step works in a row. The rows are counted from the first one of the fill.

        Args:
            offset: as of `row`.
        """
        return 0 <= row - self.row(offset) < micro_batches

    def cycles(self, offsets: Sequence[int]) -> Iterator[list[int]]:
        """The steps that work in each cycle of a row, as indices of their offsets."""
        for cycle in range(self.interval):
            found = [i for i, offset in enumerate(offsets) if offset % self.interval == cycle]
            if found:
                yield found
