"""The protocol of executors, and how those that wait for workers run tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Protocol, Self, TypeAlias

from .task import Json, Result, Task

OnProgress: TypeAlias = Callable[[Task, Json], None]
"""Receives what a task says of its progress."""


class Executor(Protocol):
    """Carries out tasks.

    An executor is a context: at the end of the block its workers end, whatever they do.
    """

    @property
    def name(self) -> str:
        """The text that executor_of reads back as an equal executor."""
        ...

    @property
    def workers(self) -> int:
        """How many tasks it carries out at once, now."""
        ...

    def run(self, tasks: Iterable[Task], on_progress: OnProgress | None = None) -> Iterator[Result]:
        """Carry out tasks, and yield each result as it comes, in any order.

        A task is taken from the iterable when a worker is free, so the iterable may be long, and
        may depend on results that were yielded before. A task that raises is a result with its
        message. If a worker ends during a task, the task is tried once again, and is then LOST.

        On KeyboardInterrupt, running tasks are stopped. What they still return is yielded, and then
        KeyboardInterrupt is raised.

        Raises InputError if a worker has another version of abele, or if none can be started.
        """
        ...

    def __enter__(self) -> Self:
        """Begin; workers start when they are needed."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """End all workers."""
        ...


class Work(Protocol):
    """One call of `run` of an executor that waits for workers."""

    def hand_out(self) -> bool:
        """Give tasks to idle workers. Returns whether there is anything to wait for."""
        ...

    def wait(self) -> Iterator[Result]:
        """The results that come next, perhaps none."""
        ...

    def stopped(self) -> Iterator[Result]:
        """Stop the running tasks. Yields what they still return."""
        ...

    def end(self) -> None:
        """End the tasks that nobody waits for any more, so that no worker stays busy."""
        ...


def results_of(work: Work) -> Iterator[Result]:
    """The results of all tasks, as Executor.run yields them."""
    try:
        while work.hand_out():
            yield from work.wait()
    except KeyboardInterrupt:
        yield from work.stopped()
        raise
    finally:
        work.end()
