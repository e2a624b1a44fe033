"""How long a sweep still takes, as far as its finished points tell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean, stdev
from time import monotonic

ENOUGH = 2
"""So many finished tasks of a group say how long another one takes."""


@dataclass
class Remaining:
    """Estimates the time that is left.

    A task is expected to take what tasks of its group took, on average. While a group has no
    finished task, the time is not known, but for a lower bound.

    Attributes:
        left: how many tasks of each group are not finished.
        workers: how many run at once.
    """

    left: Counter[str]
    workers: int
    took: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    begun: float = field(default_factory=monotonic)

    def finish(self, group: str, seconds: float) -> None:
        """Note a finished task, and how long a worker was busy with it; 0 if nobody knows."""
        self.left[group] -= 1
        if seconds:
            self.took[group].append(seconds)

    def text(self) -> str:
        """The time that is left in words: a range of twice the standard error; "" without any."""
        known = {group: found for group, found in self.took.items() if len(found) >= ENOUGH}
        left = {group: count for group, count in self.left.items() if count}
        if not left or not known:
            return ""
        middle = sum(left[g] * fmean(known[g]) for g in left if g in known) / self.workers
        if any(group not in known for group in left):
            return f"more than {shown_seconds(middle)} left" if middle else ""
        error = (
            sum((left[g] * stdev(known[g])) ** 2 / len(known[g]) for g in left) ** 0.5
            / self.workers
        )
        least, most = shown_seconds(max(middle - 2 * error, 0)), shown_seconds(middle + 2 * error)
        return f"{most} left" if least == most else f"{least} to {most} left"


def counted(groups: Iterable[str], workers: int) -> Remaining:
    """The estimate before any task is finished."""
    return Remaining(Counter(groups), workers)


def shown_seconds(seconds: float) -> str:
    """A time as people say it: 8 s, 3 min, 2.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
