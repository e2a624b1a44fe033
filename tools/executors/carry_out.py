"""What every worker does with a task."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from importlib import import_module
from time import perf_counter, process_time
from typing import Any, cast

from ...ir.support.errors import DoesNotFit, InputError, one_line, short_notes
from .stamp import stamp
from .task import MARK, End, Result, Task, Tell

EXPECTED = (InputError, DoesNotFit)
"""Errors that need no traceback: the message says what is wrong with the task's input."""


def message_for(task: Task) -> str:
    """The line that a worker needs: the task, and what the worker must be."""
    return json.dumps({"stamp": stamp(), "task": task.to_text()})


def carried_out(message: str, tell: Tell, worker: str = "") -> str:
    """Carry out the task of a line that message_for made. Returns one line, for result_of.

    Raises nothing: an exception, also KeyboardInterrupt, is a kind of result. A task for another
    version of abele is refused.

    Args:
        tell: receives what the task says of its progress.
        worker: names this worker in results.
    """
    start, begun = process_time(), perf_counter()

    def took() -> dict[str, float]:
        return {"seconds": process_time() - start, "lasted": perf_counter() - begun}

    try:
        record = cast("dict[str, str]", json.loads(message))
        if refused := refusal(record["stamp"], worker):
            return refused
        task = Task.from_text(record["task"])
        value = _function(task.function)(tell, **task.arguments)
        return _line(End.DONE, worker=worker, value=value, **took())
    except KeyboardInterrupt:
        return _line(End.STOPPED, worker=worker, problem="stopped before it ended")
    except BaseException as error:
        return _line(
            End.FAILED,
            worker=worker,
            error=type(error).__name__,
            problem="; ".join([str(error) or one_line(error), *short_notes(error)]),
            details="" if isinstance(error, EXPECTED) else traceback.format_exc(),
            **took(),
        )


def refusal(theirs: str, worker: str) -> str:
    """The line that refuses a task for another version of abele; "" if it is for this one."""
    own = stamp()
    return "" if theirs == own else _line(End.REFUSED, worker=worker, problem=_differs(own, theirs))


def check_version(worker: str, its: str) -> None:
    """Raise InputError unless a worker that has this stamp may have tasks of this process."""
    if its != stamp():
        raise _other_version(worker, _differs(its, stamp()))


def _differs(worker: str, task: str) -> str:
    return f"this worker is {worker}; the task is for {task}"


def _other_version(worker: str, problem: str) -> InputError:
    return InputError(
        f"worker {worker}: another version of abele: {problem}; need the same version everywhere: "
        "start the workers again, or install it there"
    )


def line_of(result: Result) -> str:
    """The line of a result that another executor has yielded, for result_of."""
    fields = {name: value for name, value in vars(result).items() if name != "task"}
    return json.dumps(fields)


def result_of(task: Task, line: str) -> Result:
    """The result of a task, from the line that carried_out returned.

    Raises InputError if the worker refused the task.
    """
    record = cast("dict[str, Any]", json.loads(line))
    end = End(record.pop("end"))
    if end is End.REFUSED:
        raise _other_version(record["worker"], record["problem"])
    return Result(task, end, **record)


def _line(end: End, **fields: object) -> str:
    return json.dumps({"end": end, **fields})


def _function(place: str) -> Callable[..., Any]:
    """The function that a task names. Raises InputError."""
    module, colon, name = place.partition(":")
    if not colon:
        raise InputError(f"task {place!r}: need MODULE:NAME")
    found = cast("Any", getattr(import_module(module), name, None))
    if not getattr(found, MARK, False):
        raise InputError(f"task {place!r}: no function there that is marked as a task's")
    return found
