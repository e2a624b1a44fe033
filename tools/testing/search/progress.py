"""Shows a failure to the user while it is shrunk."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

from ..generators.program import Program

FIRST = 8.0
"""CPU seconds after which the smallest program so far is saved and shown."""
AGAIN = 5.0
"""CPU seconds until a smaller one is saved in its place."""


class Progress:
    """Saves and shows the smallest program so far, if shrinking takes long.

    Attributes:
        save: saves a program, and returns its place.
        tell: shows a text.
        seconds: the time limit of shrinking.
    """

    def __init__(
        self,
        save: Callable[[Program], str],
        tell: Callable[[str], None] | None,
        seconds: float,
    ) -> None:
        self.save = save
        self.tell = tell or _to_standard_error
        self.seconds = seconds
        self.begin = process_time()
        self.next = self.begin + FIRST
        self.latest: Program | None = None
        self.has_told = False

    def better(self, program: Program) -> None:
        """Remember a smaller program."""
        self.latest = program

    def pause(self) -> None:
        """If it is time, save the smallest program or show the first one. Call it often."""
        if self.latest is None or process_time() < self.next:
            return
        program, self.latest = self.latest, None
        self.next = process_time() + AGAIN
        where = self.save(program)
        if where and not self.has_told:
            self.has_told = True
            left = max(0.0, self.seconds - (process_time() - self.begin))
            self.tell(
                f"abele: found a failure on {program.target.spelling()}, saved in {where}; making "
                f"it smaller for at most {left:.0f} s more (Ctrl-C keeps the smallest so far):\n\n"
                f"{program.text}"
            )


def _to_standard_error(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
