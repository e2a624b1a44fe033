"""The time that compiling and running take."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...ir.instruments.timing import PassTiming
    from .keep_plans import KeptPlans

CHECK = "check against float64"
"""What progress shows while a run is checked, with the part that is checked in brackets."""


@dataclass
class Stages:
    """Seconds of wall-clock time: by stage of compiling and running, and by pass.

    Attributes:
        timings: every run of a pass, in order.
        plans: the program as it was planned; None if it was not planned here.
    """

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    passes: dict[str, float] = field(default_factory=dict[str, float])
    timings: list[PassTiming] = field(default_factory=list["PassTiming"])
    plans: KeptPlans | None = None

    @contextmanager
    def timed(self, stage: str) -> Generator[None]:
        """Add the time of the block to a stage."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add(stage, perf_counter() - start)

    def add(self, stage: str, seconds: float) -> None:
        """Add time to a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
