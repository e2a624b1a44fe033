"""What a worker of Dask does with tasks: it carries out each in a process of its own.

That process has one thread, may be stopped, may die, and has limits, as one of the local executor
does. Dask calls the functions of this file by their names. Only text travels with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from threading import Lock, get_ident
from typing import Any, cast

from .carry_out import line_of, refusal
from .limits import Limits
from .local import Local
from .stamp import stamp
from .task import End, Json, Result, Task

_LOCALS: dict[tuple[int, Limits], Local] = {}
"""The executor of each thread of this worker."""

_RUNNING: dict[int, tuple[str, Local]] = {}
"""By thread, the run that it works for, and its executor."""

_STOPPED: set[str] = set()
"""Runs whose tasks do not begin any more."""

_LOCK = Lock()


def greet() -> str:
    """What this worker is. A worker without abele cannot answer."""
    return stamp()


def carry_out(message: str, run: str, limits: Mapping[str, Any]) -> str:
    """Carry out the task of a line that message_for made. Returns one line, for result_of.

    Raises InputError if no process can be started.

    Args:
        run: the topic to which events with the progress of the task go.
        limits: the fields of Limits.
    """
    worker = cast(Any, import_module("distributed")).get_worker()
    name = str(worker.address)
    key = str(worker.get_current_task())
    record = cast("dict[str, str]", json.loads(message))
    if refused := refusal(record["stamp"], name):
        return refused
    task, most = Task.from_text(record["task"]), Limits(**limits)

    def tell(_: Task, progress: Json) -> None:
        worker.log_event(run, json.dumps([key, progress]))

    thread = get_ident()
    with _LOCK:
        if run in _STOPPED:
            return line_of(Result(task, End.STOPPED, problem="stopped before it began"))
        local = _LOCALS.setdefault((thread, most), Local(1, most))
        _RUNNING[thread] = run, local
    try:
        (result,) = local.run([task], tell)
    finally:
        with _LOCK:
            del _RUNNING[thread]
    return line_of(replace(result, worker=name))


def stop(run: str, kill: bool) -> None:
    """Stop the tasks of a run on this worker.

    Args:
        kill: end their processes. Without it, tasks may return what they have.
    """
    with _LOCK:
        _STOPPED.add(run)
        for own, local in _RUNNING.values():
            if own == run:
                local.stop(kill=kill)
