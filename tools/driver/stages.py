"""The time that compiling and running take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...ir.instruments.timing import PassTiming
    from .keep_plans import KeptPlans


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

    def add(self, stage: str, seconds: float) -> None:
        """Add time to a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
