"""The outcome of giving a hostile input to a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Verdict: TypeAlias = Literal[
    "accepted",
    "refused",
    "traceback",
    "crash",
    "hang",
    "memory",
    "wrong",
    "escaped",
    "lost",
    "unclear",
]
"""The verdicts.

accepted: the command ended with 0, and the results of a model agree at all levels. refused: it
ended with 1, 2 or 3 and one message. traceback: it raised. crash: a signal ended it. hang: it took
more CPU time than the limit. memory: it took more memory than the limit. wrong: results differ, or
a check passes where the strict machine finds a fault. escaped: it read or wrote a file that nobody
named, or ran code. lost: a file that existed before is gone or changed, though the command failed.
unclear: it was refused without a message, with another exit code, or by the name of a Python
exception.
"""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

GOOD: tuple[Verdict, ...] = ("accepted", "refused")
"""The verdicts that are not failures."""


@dataclass(frozen=True)
class Outcome:
    """The verdict on one case.

    Attributes:
        site: where it failed, as file:line and the exception, which groups failures; "" if it did
            not.
        message: what the command printed to standard error, or the traceback.
        seconds: CPU time.
        peak: the most bytes of memory that the process held.
    """

    verdict: Verdict
    site: str = ""
    message: str = ""
    seconds: float = 0.0
    peak: int = 0

    @property
    def failed(self) -> bool:
        """Whether the outcome shows a mistake in abele."""
        return self.verdict not in GOOD

    @property
    def group(self) -> tuple[str, str]:
        """The group of a failure: failures of one group most likely have the same cause."""
        return self.verdict, self.site
