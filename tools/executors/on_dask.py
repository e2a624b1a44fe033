"""The executors that carry out tasks on workers of Dask.

What travels is text: the message of a task, and the line of its result. Dask wraps these in its own
messages, which it pickles, together with the name of the function of `dask_worker.py` that it
calls. So a scheduler and its workers are as trusted as this process.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Self, cast
from uuid import uuid4

from ...ir.support.errors import InputError, one_line
from . import dask_worker
from .carry_out import check_version, message_for, result_of
from .executor import OnProgress, results_of
from .limits import Limits, one_thread
from .local import PATIENCE, paths_of_modules
from .task import End, Json, Result, Task

CONNECTING = 5.0
"""Seconds that a scheduler has to answer."""

WITHOUT_WORKERS = 30.0
"""Seconds in which the first worker, or one that takes the place of the last, must come."""

BRIEFLY = 0.05
"""Seconds after which a run without workers looks whether one has come."""

LOOK = 0.5
"""Seconds after which a run looks at its scheduler and workers again."""

WORKER = "distributed.cli.dask_worker"
"""The program of a worker."""


def dask() -> Any:
    """The package distributed. Raises InputError if it is not installed."""
    try:
        package = import_module("distributed")
    except ModuleNotFoundError:
        raise InputError(
            "executors of Dask need distributed, which is not installed: pip install 'abele[dask]'"
        ) from None
    # What Dask would write to standard error, our messages say. It has levels of its own for these.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return package


class OnDask:
    """Carries out tasks on the workers of a scheduler of Dask, as many at once as they have
    threads. Workers may come and go.

    If a worker ends, Dask gives its task to another one. How often is a setting of the scheduler,
    `distributed.scheduler.allowed-failures`; after that, the task is LOST.
    """

    def __init__(self, host: str, port: int, limits: Limits) -> None:
        self.name = f"dask://{host}:{port}"
        self.limits = limits
        self._address = f"tcp://{host}:{port}"
        self._client: Any = None

    @property
    def workers(self) -> int:
        """The threads of all workers, now. Raises InputError if the scheduler is not there."""
        threads: dict[str, int] = self.call("nthreads")
        return sum(threads.values())

    @property
    def client(self) -> Any:
        """The connection to the scheduler. Raises InputError if it is not there."""
        if self._client is None:
            package = dask()
            try:
                self._client = package.Client(
                    self._address, timeout=CONNECTING, set_as_default=False
                )
            except OSError:
                raise InputError(
                    f"{self.name}: no scheduler of Dask answers there; start one with: dask "
                    "scheduler"
                ) from None
        return self._client

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """What a method of the client returns. Raises InputError if the scheduler is gone."""
        client = self.client
        try:
            return getattr(client, method)(*arguments, **options)
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            raise self.gone(type(error).__name__) from None

    def gone(self, why: str) -> InputError:
        """The error for a scheduler that does not answer any more."""
        return InputError(
            f"{self.name}: the connection to the scheduler is lost ({why}); results that have come "
            "are kept; start it again and repeat the command"
        )

    def __enter__(self) -> Self:
        """Connect. Raises InputError if the scheduler is not there."""
        _ = self.client
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect. The workers are not ours and go on."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(OSError, TimeoutError, RuntimeError):
                client.close(timeout=LOOK)

    def run(self, tasks: Iterable[Task], on_progress: OnProgress | None = None) -> Iterator[Result]:
        """Carry out tasks, as Executor says.

        Raises InputError also if the scheduler ends, and if it has no workers for a while.
        """
        yield from results_of(_Work(self, iter(tasks), on_progress))

    def look_after_workers(self) -> None:
        """Start workers in place of those that have ended. Those of others are not ours."""


class DaskLocal(OnDask):
    """Carries out tasks on a scheduler and workers of Dask on this host, as one would on a cluster.

    A worker that ends is replaced.
    """

    def __init__(self, workers: int, limits: Limits) -> None:
        super().__init__("127.0.0.1", 0, limits)
        self.name = f"dask-local:{workers}"
        self._count = workers
        self._cluster: Any = None
        self._folder: TemporaryDirectory[str] | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def workers(self) -> int:
        """The number of workers."""
        return self._count

    @property
    def processes(self) -> list[int]:
        """The processes of the workers."""
        return [each.pid for each in self._processes]

    @property
    def client(self) -> Any:
        """The connection to the scheduler, which is started if it is not there."""
        if self._client is None:
            package = dask()
            self._cluster = package.LocalCluster(
                n_workers=0,
                processes=True,
                threads_per_worker=1,
                host="127.0.0.1",
                # A free port, of this host alone: None stands for a port that others may have.
                dashboard_address="127.0.0.1:0",
                silence_logs=False,
                scheduler_kwargs={"allowed_failures": 1},
            )
            self._address = str(self._cluster.scheduler_address)
            self._client = package.Client(self._address, timeout=CONNECTING, set_as_default=False)
            self._folder = TemporaryDirectory()
            self._processes = [self._started() for _ in range(self._count)]
        return self._client

    def _started(self) -> subprocess.Popen[bytes]:
        """A new worker. Raises InputError if the system refuses."""
        assert self._folder is not None
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
        places = ["--local-directory", self._folder.name, "--death-timeout", "10"]
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", WORKER, self._address, *options, *places],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=one_thread(paths_of_modules()),
                # Ctrl-C is for the process that the user started, which then stops tasks.
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(f"{self.name}: no worker can be started: {error.strerror}") from None

    def _end_workers(self) -> None:
        for each in self._processes:
            each.kill()
            _ = each.wait()
        self._processes.clear()

    def look_after_workers(self) -> None:
        """Start workers in place of those that have ended."""
        for number, each in enumerate(self._processes):
            if each.poll() is not None:
                self._processes[number] = self._started()

    def __exit__(self, *_: object) -> None:
        """End the workers and the scheduler."""
        self._end_workers()
        super().__exit__()
        if self._cluster is not None:
            with suppress(OSError, TimeoutError, RuntimeError):
                self._cluster.close(timeout=PATIENCE)
        if self._folder is not None:
            self._folder.cleanup()
        self._cluster = self._folder = None


class _Work:
    """One call of run."""

    def __init__(
        self, executor: OnDask, tasks: Iterator[Task], on_progress: OnProgress | None
    ) -> None:
        self._executor = executor
        self._tasks = tasks
        self._on_progress = on_progress
        self._name = f"abele-{uuid4().hex}"
        self._count = 0
        self._running: dict[str, tuple[Any, Task]] = {}
        # What the threads of Dask hear: a future that has ended, or a line with progress.
        self._heard: SimpleQueue[tuple[Any, str]] = SimpleQueue()
        self._waiting: Task | None = None
        self._known: set[str] = set()
        self._threads = 0
        self._looked = 0.0
        self._alone_since = monotonic()
        executor.call("subscribe_topic", self._name, self._told)

    def _told(self, event: tuple[float, str]) -> None:
        self._heard.put((None, event[1]))

    def _ended(self, future: Any) -> None:
        self._heard.put((future, ""))

    def hand_out(self) -> bool:
        """Give a task to each idle thread. Returns whether any task runs or waits for a worker."""
        self._look()
        idle = self._threads - len(self._running)
        while idle > 0 or not self._running:
            task, self._waiting = self._waiting or next(self._tasks, None), None
            if task is None:
                break
            if idle <= 0:
                self._waiting = task
                break
            self._begin(task)
            idle -= 1
        return bool(self._running) or self._waiting is not None

    def _begin(self, task: Task) -> None:
        limits = self._executor.limits
        key = f"{self._name}-{self._count}"
        self._count += 1
        future = self._executor.call(
            "submit",
            dask_worker.carry_out,
            message_for(task),
            self._name,
            vars(limits),
            key=key,
            pure=False,
            workers=sorted(self._known),
            # Another one takes over if these end.
            allow_other_workers=True,
        )
        self._running[key] = future, task
        future.add_done_callback(self._ended)

    def _look(self) -> None:
        """Count the threads of all workers, if that was not done just now.

        Raises InputError if there are none for too long, and if a new one has not the same abele.
        """
        now = monotonic()
        if self._threads and now - self._looked < LOOK:
            return
        self._executor.look_after_workers()
        threads: dict[str, int] = self._executor.call("nthreads")
        self._meet(threads.keys() - self._known)
        self._known &= threads.keys()
        self._threads = sum(threads[each] for each in self._known)
        self._looked = now
        if self._threads:
            self._alone_since = now
        elif now - self._alone_since > WITHOUT_WORKERS:
            raise InputError(
                f"{self._executor.name}: the scheduler has no workers; start one with: dask worker "
                f"{self._executor.name.removeprefix('dask://')} --nthreads 1"
            )

    def _meet(self, workers: Set[str]) -> None:
        """Ask new workers what they are. Raises InputError for a worker that is not as this process
        is: Dask would end it, and give its task to the next one."""
        if not workers:
            return
        said: dict[str, object] = self._executor.call(
            "run", dask_worker.greet, workers=sorted(workers), on_error="return"
        )
        for worker, answer in said.items():
            if isinstance(answer, str):
                check_version(worker, answer)
                self._known.add(worker)
            elif not isinstance(answer, OSError):
                # It has not ended, and cannot even find the function.
                raise InputError(
                    f"{self._executor.name}: worker {worker} cannot carry out tasks: {answer}; "
                    "need the same version of abele everywhere"
                )

    def wait(self) -> Iterator[Result]:
        """The results that come next; none if nothing is heard for a while."""
        try:
            heard = self._heard.get(timeout=LOOK if self._threads else BRIEFLY)
        except Empty:
            return
        while True:
            future, line = heard
            if future is None:
                self._say(line)
            elif future.key in self._running:
                yield self._result(future)
            try:
                heard = self._heard.get_nowait()
            except Empty:
                return

    def _say(self, line: str) -> None:
        if self._on_progress is None:
            return
        key, progress = cast("tuple[str, Json]", json.loads(line))
        if key in self._running:
            self._on_progress(self._running[key][1], progress)

    def _result(self, future: Any) -> Result:
        """The result of a task that has ended.

        Raises InputError if its worker refused it or cannot carry out tasks, or if the scheduler is
        gone.
        """
        _, task = self._running.pop(future.key)
        if future.status == "finished":
            line: str = self._executor.call("gather", future)
            return result_of(task, line)
        if future.status != "error":
            raise self._executor.gone(str(future.status))
        error: BaseException = future.exception()
        if type(error).__name__ == "KilledWorker":
            problem = "its workers ended while they carried it out"
            return Result(task, End.LOST, problem=problem, worker=self._executor.name)
        raise InputError(
            f"{self._executor.name}: cannot carry out tasks: {one_line(error)}; need the same "
            "version of abele on the scheduler and all workers"
        ) from None

    def stopped(self) -> Iterator[Result]:
        """Stop the running tasks, and yield what they still return in a while."""
        self._stop(kill=False)
        until = monotonic() + PATIENCE
        while self._running and monotonic() < until:
            for result in self.wait():
                if result.end is End.DONE:
                    yield result

    def _stop(self, *, kill: bool) -> None:
        with suppress(InputError):
            self._executor.call("run", dask_worker.stop, self._name, kill, on_error="ignore")

    def end(self) -> None:
        """End the tasks that nobody waits for any more."""
        if self._running:
            self._stop(kill=True)
            with suppress(InputError):
                self._executor.call("cancel", [future for future, _ in self._running.values()])
        with suppress(InputError):
            self._executor.call("unsubscribe_topic", self._name)
