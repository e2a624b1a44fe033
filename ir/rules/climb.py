"""The search for an operation that verifies, guided by the errors of its verifier.

The search reads the line on which a verifier raises and what an Unmet names. It never reads a
message, so rewording a message does not change which operations are generated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from ..unmet import Unmet
from .choices import LISTS, Choices


@dataclass(frozen=True)
class Failure:
    """How far a verifier came before it raised.

    Attributes:
        lines: the line number in each frame, outermost first.
        what: the operand, attribute or result that is wrong, if the error is an Unmet.
        allowed: the texts that it may be.
    """

    lines: tuple[int, ...] = ()
    what: str = ""
    allowed: tuple[str, ...] = ()

    @staticmethod
    def of(error: Exception) -> Failure:
        """The failure that an error of a verifier describes."""
        lines: list[int] = []
        step = error.__traceback__
        while step is not None:
            lines.append(step.tb_lineno)
            step = step.tb_next
        if isinstance(error, Unmet):
            return Failure(tuple(lines), error.what, error.allowed)
        return Failure(tuple(lines))


@dataclass
class Climb:
    """A search for an operation that verifies: an attempt that fails later is closer.

    Where a verifier fails on the same line again, as in a loop, a new `what` counts as closer.

    Attributes:
        sideways: how often to continue from an attempt that is equally close, from 0 to 1.
    """

    sideways: float = 0.1
    lines: tuple[int, ...] = ()
    ways: dict[str, str] = field(default_factory=dict[str, str])
    seen: set[tuple[tuple[int, ...], str]] = field(default_factory=set[tuple[tuple[int, ...], str]])

    def step(self, random: Random) -> dict[str, str]:
        """The choices of the closest attempt, with a few dropped so that they are made again."""
        if not self.ways:
            return {}
        if random.random() < 0.25:
            return {what: way for what, way in self.ways.items() if way not in LISTS}
        return without_some(self.ways, random)

    def failed(self, failure: Failure, choices: Choices) -> bool:
        """Continue from this attempt if it is closer. Returns whether it failed in a new way."""
        new = (failure.lines, failure.what) not in self.seen
        self.seen.add((failure.lines, failure.what))
        level = failure.lines == self.lines and (new or choices.random.random() < self.sideways)
        if failure.lines > self.lines or level:
            self.lines, self.ways = failure.lines, choices.taken
        return new


def without_some(ways: Mapping[str, str], random: Random) -> dict[str, str]:
    """Choices without one to three of them, which are to be made anew."""
    left_out = random.sample(sorted(ways), min(len(ways), random.choice((1, 1, 2, 3))))
    return {what: way for what, way in ways.items() if what not in left_out}
