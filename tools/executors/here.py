"""The executor that carries out tasks in this process, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .carry_out import carried_out, message_for, result_of
from .executor import OnProgress
from .task import End, Json, Result, Task


@dataclass
class Here:
    """Carries out tasks in this process: nothing has to start, and a debugger sees all.

    A task that ends the process ends everything, and there are no limits.
    """

    name: str = "here"
    workers: int = 1

    def run(self, tasks: Iterable[Task], on_progress: OnProgress | None = None) -> Iterator[Result]:
        """Carry out tasks, as Executor says."""
        for task in tasks:

            def tell(progress: Json, task: Task = task) -> None:
                if on_progress is not None:
                    on_progress(task, progress)

            result = result_of(task, carried_out(message_for(task), tell, self.name))
            yield result
            if result.end is End.STOPPED:
                raise KeyboardInterrupt

    def __enter__(self) -> Here:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing has to end."""
