"""The progress of a long command: a changing line, or a line for each step with its time."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from ...ir.support.deferred import deferred
from ...ir.support.on_step import OnStep
from ..driver.shown_text import shown
from .terminal import changing_line

with deferred(__name__):
    from ...ir.pass_manager import PassEntry, load_pass
    from ...passes.pipelines import PASSES
    from .pass_listing import first_sentence


@contextmanager
def progress(
    *, verbose: bool = False, passes: Mapping[str, PassEntry] = PASSES
) -> Generator[OnStep]:
    """A function that shows a step of the work on standard error.

    It shows one changing line on a terminal, and nothing elsewhere. Steps that differ only in what
    stands in brackets, as in "check (2 of 3)", are one step.

    Args:
        verbose: one line for each step instead, with its seconds, and the summary of a pass.
        passes: the passes that steps may name.
    """
    if verbose:
        steps = _Steps(passes)
        try:
            yield steps.begin
        except BaseException:
            steps.end("stopped")
            raise
        steps.end("in all")
        return
    with changing_line() as show:
        show("start-up")
        yield show


@dataclass
class _Steps:
    """Writes a line when a step ends, because the line begins with the step's seconds."""

    passes: Mapping[str, PassEntry]
    step: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        self.start = self.last = perf_counter()

    def begin(self, step: str) -> None:
        """End the previous step, and begin a step. The first word of a pass's step is its name."""
        name = step.partition(" (")[0]
        if name == self.name:
            return
        self.name = name
        now = perf_counter()
        if self.step:
            self._write(now - self.last, self.step)
        meaning = first_sentence(load_pass(name, self.passes)) if name in self.passes else ""
        self.step = f"{step}: {meaning}" if meaning else step
        self.last = perf_counter()

    def end(self, word: str) -> None:
        """End the last step, and write the sum."""
        now = perf_counter()
        if self.step:
            self._write(now - self.last, self.step)
        self._write(now - self.start, word)

    def _write(self, seconds: float, what: str) -> None:
        sys.stderr.write(f"{seconds:8.3f} s  {shown(what)}\n")
