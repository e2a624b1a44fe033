"""Asks the solver one question, within a limit of processor time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from .library import z3

MEMORY = 1500
"""Megabytes that the solver may take."""
TICK = 0.02
"""Seconds between two looks at the clock."""


@dataclass(frozen=True)
class Answer:
    """The solver's answer.

    Attributes:
        found: "no" if no values fulfil the facts, "yes" if some do, "unknown" otherwise.
        model: the values, if some do.
        reason: why the answer is unknown.
    """

    found: Literal["yes", "no", "unknown"]
    model: Any = None
    reason: str = ""


def fulfilled(facts: Iterable[Any], seconds: float) -> Answer:
    """Whether some values fulfil all facts.

    Args:
        seconds: of processor time of this thread.
    """
    if seconds <= 0:
        return Answer("unknown", reason="there was no time left")
    solver = z3.Solver()
    solver.set("max_memory", MEMORY)
    # Clock time limits the solver too, in case that it does not see the interrupt.
    solver.set("timeout", int(20_000 * seconds) + 1000)
    solver.add(*facts)
    done = threading.Event()
    clock = time.pthread_getcpuclockid(threading.get_ident())
    end = time.clock_gettime(clock) + seconds

    def watch() -> None:
        while not done.wait(TICK):
            if time.clock_gettime(clock) > end:
                solver.interrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        answer = solver.check()
        reason = solver.reason_unknown() if answer == z3.unknown else ""
    except z3.Z3Exception as error:
        answer, reason = z3.unknown, str(error)
    finally:
        done.set()
        watcher.join()
    if answer == z3.sat:
        return Answer("yes", solver.model())
    if answer == z3.unsat:
        return Answer("no")
    return Answer("unknown", reason=_in_words(reason, seconds))


def _in_words(reason: str, seconds: float) -> str:
    if reason in ("canceled", "interrupted", "timeout", "interrupted from keyboard"):
        return f"the solver was not done after {seconds:.3g} s"
    if "memory" in reason:
        return f"the solver needed more than {MEMORY} MB"
    return f"the solver gave up: {reason or 'no reason given'}"
