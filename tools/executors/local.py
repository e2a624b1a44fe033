"""The executor that carries out tasks in processes of this host."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from time import monotonic
from typing import BinaryIO, cast

from ...ir.support.errors import InputError
from .carry_out import message_for, result_of
from .executor import OnProgress, results_of
from .limits import Limits, one_thread
from .task import End, Result, Task
from .worker import ENDED, READY, STOP, TOLD

PATIENCE = 10.0
"""Seconds that a stopped task has to end by itself. Then its process is killed."""

MOST_BYTES = 2_000
"""Bytes at the end of a lost worker's standard error that its result keeps."""

PIECE = 1 << 16
"""Bytes that are read from a worker at once."""

LAST_TRY = 2
"""How often a task is tried whose process ends."""

MODULE = f"{__package__}.worker"
"""The program of a worker."""


@dataclass
class _Running:
    """A task that a worker carries out.

    Attributes:
        begun: when the worker could begin with it.
    """

    task: Task
    tries: int
    begun: float = field(default_factory=monotonic)


def paths_of_modules() -> dict[str, str]:
    """The environment in which another process finds the modules that this one finds.

    A module in the working folder must not take the place of one of ours.
    """
    paths = [os.path.abspath(each) for each in sys.path if each]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class _Process:
    """A worker process, and what it carries out.

    Processes of the standard library's pools would not do: their workers outlive a parent that is
    killed, one that dies takes all others with it, and they import the user's main module.
    """

    def __init__(self, limits: Limits) -> None:
        most = () if limits.memory_bytes is None else (str(limits.memory_bytes),)
        self._errors = cast(BinaryIO, TemporaryFile())
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, *most],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=one_thread(paths_of_modules()),
            # Ctrl-C is for the process that the user started, which then stops tasks.
            start_new_session=True,
        )
        self._data = b""
        self.is_ready = False
        self.ended_tasks = 0
        self.running: _Running | None = None

    @property
    def output(self) -> BinaryIO:
        """What the process writes its lines to."""
        return cast(BinaryIO, self._process.stdout)

    def begin(self, task: Task, tries: int) -> None:
        """Give a task to the process. If it has died, its output ends."""
        self.running = _Running(task, tries)
        self._send(message_for(task))

    def stop(self) -> None:
        """Stop the task that is running."""
        self._send(STOP)

    def kill(self) -> None:
        """Kill the process. Its task is not tried again."""
        if self.running is not None:
            self.running.tries = LAST_TRY
        self._process.kill()

    def _send(self, line: str) -> None:
        stream = cast(BinaryIO, self._process.stdin)
        with suppress(OSError):
            stream.write(f"{line}\n".encode())
            stream.flush()

    def lines(self) -> list[tuple[str, str]] | None:
        """The kinds and contents of lines that have come; None if the process has ended."""
        data = os.read(self.output.fileno(), PIECE)
        *whole, self._data = (self._data + data).split(b"\n")
        found = [each.decode().partition(" ") for each in whole]
        return [(kind, rest) for kind, _, rest in found] if data else None

    def end(self, *, kill: bool = True) -> tuple[str, str]:
        """End the process. Returns how it ended, and the end of its standard error."""
        if kill:
            self._process.kill()
        code = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                cast(BinaryIO, stream).close()
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - MOST_BYTES))
        said = self._errors.read().decode(errors="replace").strip()
        self._errors.close()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return how, said


class Local:
    """Carries out tasks in processes of this host, each with one thread.

    A process starts when there is a task for it, and keeps what it has imported. If it dies, or if
    its task takes too long, another one takes its place.
    """

    def __init__(self, workers: int, limits: Limits | None = None) -> None:
        self.workers = workers
        self.limits = Limits() if limits is None else limits
        self._processes: list[_Process] = []

    @property
    def name(self) -> str:
        """The text that executor_of reads."""
        return f"local:{self.workers}"

    def __enter__(self) -> Local:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all processes."""
        while self._processes:
            _ = self._processes.pop().end()

    def run(self, tasks: Iterable[Task], on_progress: OnProgress | None = None) -> Iterator[Result]:
        """Carry out tasks, as Executor says."""
        yield from results_of(_Work(self, iter(tasks), on_progress))

    def stop(self, *, kill: bool = False) -> None:
        """Stop the running tasks. Another thread than that of run may call this.

        Args:
            kill: end their processes, and do not try the tasks again.
        """
        for each in self.busy():
            if kill:
                each.kill()
            else:
                each.stop()

    def started(self) -> _Process:
        """A new process. Raises InputError if the system refuses."""
        try:
            process = _Process(self.limits)
        except OSError as error:
            raise InputError(f"{self.name}: no process can be started: {error.strerror}") from None
        self._processes.append(process)
        return process

    def idle(self) -> _Process | None:
        """A process that has nothing to do, perhaps a new one; None if all are busy."""
        for each in self._processes:
            if each.running is None:
                return each
        return self.started() if len(self._processes) < self.workers else None

    def busy(self) -> list[_Process]:
        """The processes that carry out tasks."""
        return [each for each in self._processes if each.running is not None]

    def drop(self, process: _Process, *, kill: bool = True) -> tuple[str, str]:
        """End a process, whose place another one may take. Returns as its end does."""
        self._processes.remove(process)
        return process.end(kill=kill)


class _Work:
    """One call of run."""

    def __init__(self, local: Local, tasks: Iterator[Task], on_progress: OnProgress | None) -> None:
        self._local = local
        self._tasks = tasks
        self._on_progress = on_progress
        self._again: deque[Task] = deque()

    def hand_out(self) -> bool:
        """Give each idle process a task. Returns whether any process is busy then."""
        while True:
            process = self._local.idle()
            if process is None:
                return True
            if self._again:
                process.begin(self._again.popleft(), LAST_TRY)
                continue
            task = next(self._tasks, None)
            if task is None:
                return bool(self._local.busy())
            process.begin(task, 1)

    def wait(self, until: float | None = None) -> Iterator[Result]:
        """The results that come next. Yields nothing if tasks only said how far they are.

        Args:
            until: when to come back at the latest; None for the next limit of a task.
        """
        most = self._local.limits.seconds
        busy = self._local.busy()
        ends = [] if until is None else [until]
        if most is not None:
            ends += [
                each.running.begun + most
                for each in busy
                if each.running is not None and each.is_ready
            ]
        with selectors.DefaultSelector() as selector:
            for each in busy:
                selector.register(each.output, selectors.EVENT_READ, each)
            found = selector.select(max(0.0, min(ends) - monotonic()) if ends else None)
        for key, _ in found:
            yield from self._heard(cast(_Process, key.data))
        if most is not None:
            yield from self._late(busy, most)

    def _late(self, busy: Iterable[_Process], most: float) -> Iterator[Result]:
        """End the processes whose tasks take too long."""
        for each in busy:
            running = each.running
            if running is None or not each.is_ready:
                continue
            if monotonic() - running.begun >= most:
                _ = self._local.drop(each)
                problem, worker = f"took longer than {most:g} s", self._local.name
                yield Result(running.task, End.LATE, problem=problem, worker=worker)

    def _heard(self, process: _Process) -> Iterator[Result]:
        lines = process.lines()
        if lines is None:
            yield from self._died(process)
            return
        for kind, rest in lines:
            running = process.running
            assert running is not None
            if kind == READY:
                process.is_ready = True
                running.begun = monotonic()
            elif kind == TOLD and self._on_progress is not None:
                self._on_progress(running.task, json.loads(rest))
            elif kind == ENDED:
                process.running = None
                process.ended_tasks += 1
                if process.ended_tasks == self._local.limits.tasks:
                    _ = self._local.drop(process)
                yield (
                    result_of(running.task, rest)
                    if rest
                    else Result(running.task, End.STOPPED, problem="stopped before it ended")
                )

    def _died(self, process: _Process) -> Iterator[Result]:
        """Try the task of a process that has ended again; yield its result if it was the second.

        Raises InputError if the process has never begun.
        """
        running = process.running
        assert running is not None
        how, said = self._local.drop(process, kill=False)
        if not process.is_ready:
            last = said.rpartition("\n")[2]
            raise InputError(f"{self._local.name}: a process ended at its start: {how}: {last}")
        if running.tries < LAST_TRY:
            self._again.append(running.task)
            return
        yield Result(
            running.task,
            End.LOST,
            problem=f"two workers ended while they carried it out, the last one with {how}",
            details=said,
            worker=self._local.name,
        )

    def stopped(self) -> Iterator[Result]:
        """Stop the running tasks, and yield what they still return in a while."""
        until = monotonic() + PATIENCE
        for each in self._local.busy():
            each.stop()
        while self._local.busy() and monotonic() < until:
            for result in self.wait(until):
                if result.end is End.DONE:
                    yield result

    def end(self) -> None:
        """End the processes that carry out tasks."""
        for each in self._local.busy():
            _ = self._local.drop(each)
