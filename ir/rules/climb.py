"""Searches for an operation that verifies, guided by the errors of its verifier."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

from .choices import LISTS, Choices


@dataclass(frozen=True)
class Failure:
    """How far a verifier got before it failed.

    lines: line numbers in the verifier, outermost call first. message: the error, without numbers.
    """

    lines: tuple[int, ...]
    message: str

    @staticmethod
    def of(error: Exception) -> Failure:
        """The failure that an error of a verifier describes."""
        lines: list[int] = []
        step = error.__traceback__
        while step is not None:
            lines.append(step.tb_lineno)
            step = step.tb_next
        return Failure(tuple(lines), re.sub(r"\d+|\[.*?\]", "", str(error)))


@dataclass
class Climb:
    """A search for an operation that verifies. An attempt that fails later in the verifier is
    closer.

    Inside a loop of the verifier, an attempt with a message not seen before is closer.
    """

    lines: tuple[int, ...] = ()
    ways: dict[str, str] = field(default_factory=dict[str, str])
    seen: set[str] = field(default_factory=set[str])

    def step(self, random: Random) -> dict[str, str]:
        """The choices of the closest attempt, with a few dropped so that they are made again."""
        if not self.ways:
            return {}
        if random.random() < 0.25:
            return {what: way for what, way in self.ways.items() if way not in LISTS}
        left_out = random.sample(
            sorted(self.ways), min(len(self.ways), random.choice((1, 1, 2, 3)))
        )
        return {what: way for what, way in self.ways.items() if what not in left_out}

    def failed(self, failure: Failure, choices: Choices) -> None:
        """Continue from this attempt if it is closer."""
        new = failure.message not in self.seen
        self.seen.add(failure.message)
        level = failure.lines == self.lines and (new or choices.random.random() < 0.1)
        if failure.lines > self.lines or level:
            self.lines, self.ways = failure.lines, choices.taken


def asked_words(message: str) -> list[str]:
    """The words that a verifier's message says it needs: "combiner 'a'; need one of sum, max"."""
    return re.findall(r"[a-z_]\w*", message.partition("need")[2])
