"""How long a sweep still takes, as far as its finished points tell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

ENOUGH = 2
"""So many finished tasks of a group say how long another one takes."""


@dataclass
class _Took:
    """What finished tasks of a group took: how many, their mean, and the sum of squares around it.

    Welford's way: adding a task takes the same time however many there are.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        before = seconds - self.mean
        self.mean += before / self.count
        self.squares += before * (seconds - self.mean)

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return (self.squares / (self.count - 1) / self.count) ** 0.5


@dataclass
class Remaining:
    """Estimates the time that is left.

    A task is expected to take what tasks of its group took, on average. While a group has no
    finished task, the time is not known, but for a lower bound.

    Attributes:
        left: how many tasks of each group are not finished.
        workers: how many run at once.
        took: what finished tasks took, by group.
    """

    left: Counter[str]
    workers: int
    took: defaultdict[str, _Took] = field(default_factory=lambda: defaultdict(_Took))

    def finish(self, group: str, seconds: float) -> None:
        """Note a finished task, and how long a worker was busy with it; 0 if nobody knows."""
        self.left[group] -= 1
        if seconds:
            self.took[group].add(seconds)

    def text(self) -> str:
        """The time that is left in words: a range of twice the standard error; "" without any."""
        known = {group: found for group, found in self.took.items() if found.count >= ENOUGH}
        left = {group: count for group, count in self.left.items() if count}
        if not left or not known:
            return ""
        middle = sum(left[g] * known[g].mean for g in left if g in known) / self.workers
        if any(group not in known for group in left):
            return f"more than {shown_seconds(middle)} left" if middle else ""
        error = sum((left[g] * known[g].error) ** 2 for g in left) ** 0.5 / self.workers
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
