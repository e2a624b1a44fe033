"""A task and its result. Both travel as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON can hold."""

Tell: TypeAlias = Callable[[Json], None]
"""A function that a task calls to say how far it is. It may raise KeyboardInterrupt: then the task
should end soon, and may return what it has so far."""

P = ParamSpec("P")
R = TypeVar("R")

MARK = "__abele_task__"
"""The attribute of functions that tasks may name."""


def task_function(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function as one that tasks may name.

    It has a parameter for a Tell, and then the arguments of the task, by name. What it returns must
    be Json. It should depend on its arguments and on files that they name, and on nothing else: it
    may run anywhere, and twice if a worker is lost.
    """
    setattr(function, MARK, True)
    return function


@dataclass(frozen=True)
class Task:
    """A call of a function, as text.

    Attributes:
        function: the place of a task_function, as MODULE:NAME.
        arguments: its arguments by name. Large ones are files, which the arguments name.
        group: tasks of a group have work in common, which a process does once. An executor may give
            them to one worker.
    """

    function: str
    arguments: Mapping[str, Json]
    _: KW_ONLY
    group: str = ""

    @cached_property
    def digest(self) -> str:
        """The SHA-256 digest of the function and its arguments: equal tasks have equal digests."""
        call = {"function": self.function, "arguments": self.arguments}
        text = json.dumps(call, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return sha256(text.encode()).hexdigest()

    def to_text(self) -> str:
        """One line of JSON."""
        return json.dumps(
            {"function": self.function, "arguments": self.arguments, "group": self.group}
        )

    @staticmethod
    def from_text(text: str) -> Task:
        """The task of a line that to_text wrote."""
        record = cast("dict[str, Any]", json.loads(text))
        return Task(record["function"], record["arguments"], group=record["group"])


class End(StrEnum):
    """How a task ended."""

    DONE = "done"
    """Its function returned a value."""
    FAILED = "failed"
    """Its function raised an exception."""
    LOST = "lost"
    """Two workers ended while they carried it out."""
    LATE = "late"
    """It took longer than the limit."""
    STOPPED = "stopped"
    """Somebody stopped the executor before the task ended."""
    REFUSED = "refused"
    """The worker has another version of abele. No executor's run yields such a result."""


@dataclass(frozen=True)
class Result:
    """What came of a task.

    Attributes:
        value: what the function returned.
        error: the name of the class of the exception, if it failed.
        problem: why there is no value, in a message; "" if there is one.
        details: the traceback of an exception, or the last lines of a lost worker's standard error.
        seconds, lasted: processor seconds and seconds on the clock that it took; 0 if nobody knows.
        worker: where it ran: a process, or the address of a worker.
    """

    task: Task
    end: End
    value: Json = None
    _: KW_ONLY
    error: str = ""
    problem: str = ""
    details: str = ""
    seconds: float = 0.0
    lasted: float = 0.0
    worker: str = ""
