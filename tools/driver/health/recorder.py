"""Records the health of steps of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....ir.support.arrays import Array
from ....ir.upstream import LocationAttr
from ..executable import Executable
from .tally import Tally
from .watched import WatchedProgram


@dataclass(frozen=True)
class Recorded:
    """The counts of the results that operations of one location have in one step.

    Attributes:
        step: its number, from 1.
        dtype: the type of the results.
    """

    step: int
    location: LocationAttr
    dtype: np.dtype[Any]
    tally: Tally


class HealthRecorder:
    """Records each N-th step of a program. Nothing is done for the others.

    Attributes:
        every: N.
        records: what was recorded, step by step, each in the order in which it was computed.
        watched: the program that is run again for it.
    """

    def __init__(self, exe: Executable, every: int = 1) -> None:
        self.every = every
        self.records: list[Recorded] = []
        self.watched = WatchedProgram(exe)

    def record(
        self,
        inputs: Mapping[str, Array],
        states: Mapping[str, Array],
        steps: Sequence[int],
        *,
        every: bool = False,
    ) -> None:
        """Record those steps of a run whose turn it is.

        Raises InputError as WatchedProgram.run does.

        Args:
            states: all that a step changes, as it was before the run.
            steps: the numbers of the steps of the run.
            every: whether to record all of them, whosever turn it is.
        """
        due = [i for i, step in enumerate(steps) if every or step % self.every == 0]
        if due:
            for seen in self.watched.run(inputs, states):
                if seen.step in due:
                    step = steps[seen.step]
                    self.records.append(Recorded(step, seen.location, seen.dtype, seen.tally))
