"""The seconds of a command, so that the stages that it prints add up to what a user waits.

A command begins with its process, or, where several run in one process, when it is called.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from ..driver.stages import Stages

START_UP, OTHER = "start-up", "other"
"""The stages before a command does its work, and of all that no other stage names."""


@dataclass
class Wall:
    """When a command began.

    Attributes:
        of_process: whether the process was started for the next command.
        begun: when the command began, on the clock of perf_counter.
        called: when all that it needs was imported, and its options were read.
    """

    of_process: bool = False
    begun: float = 0.0
    called: float = 0.0

    def call(self) -> None:
        """Begin a command."""
        self.called = perf_counter()
        self.begun = self.called - (_age_of_process() if self.of_process else 0.0)
        self.of_process = False

    def settle(self, stages: Stages) -> None:
        """Add the stages START_UP and OTHER, up to now; again if they are there already."""
        named = {n: s for n, s in stages.seconds.items() if n not in (START_UP, OTHER)}
        start_up = self.called - self.begun
        rest = perf_counter() - self.called - sum(named.values())
        stages.seconds = {START_UP: start_up, **named, OTHER: max(rest, 0.0)}


WALL = Wall()
"""The command that runs."""

_TICKS_AFTER_NAME = 19
"""The place of the start of a process among the numbers after its name, in /proc/PID/stat."""


def _age_of_process() -> float:
    """The seconds since this process was started; those since its first line if unknown."""
    try:
        stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        started = int(stat[_TICKS_AFTER_NAME]) / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - started, 0.0)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.process_time()
