"""Loads kernels, and compiles those that are not cached yet: in two processes, with progress.

Once compiled, they are loaded as machine code, without numba (see machine_code).

Numba compiles under a lock, so threads would not help. When the first kernel has to be compiled, a
second process starts to compile tasks that this one needs later, and leaves them in the cache.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, TextIO, cast

from ...ir.turns import Turns
from .array_functions import load_array_functions
from .machine_code import save_kernels, saved_kernels

COMPILING = "abele: compiling kernels for this host, once"

SHARES = ("routes", "products"), ("sharing", "chains", "lookups", "functions")
"""Tasks that take about equally long to compile, for one process each."""

CHILD = """
import sys
sys.path[:] = {path!r}
from {module} import compile_tasks
compile_tasks({tasks!r})
"""
"""The program of the second process."""


def kernels(task: str) -> Any:
    """The kernels of a task: "sharing", "copies", "chains", "functions", "routes", "products",
    "lookups", or for checks "bounds" and "equality". They are the task's module, or have its
    constants, addresses and functions.

    Any number of threads may ask for a task: it is loaded once, and its code stays where it is for
    as long as the process lives. Says on stderr if kernels have to be compiled: in one line per
    process, or on a terminal in a line of progress, which is erased in the end.
    """
    found = loaded.get(task)
    return _loaded_once(task) if found is None else found


def _loaded_once(task: str) -> Any:
    """The kernels of a task, which no thread has loaded yet, or which another one is loading."""
    with _LOADING:
        if task in loaded:
            return loaded[task]
        saved = saved_kernels(task)
        if saved is not None:
            loaded[task] = saved
            return saved
        line = _Line(task, sys.stderr)
        try:
            for child in _children:
                if task in child.tasks:
                    child.wait(line)
            module = _imported(task, partial(_begin, task, line), partial(line.add, task))
        finally:
            line.erase()
        save_kernels(task, module)
        loaded[task] = module
        return module


def compile_tasks(tasks: Sequence[str]) -> None:
    """Compile the kernels of some tasks into the cache. Prints the task of each kernel."""
    for task in tasks:
        _imported(task, lambda: None, partial(print, task, flush=True))


def _imported(task: str, begin: Callable[[], None], end: Callable[[], None]) -> Any:
    """The module of a task's kernels. begin, end: called before and after each is compiled."""
    events = cast(Any, import_module("numba.core.event"))
    depth = 0

    class Listener(events.Listener):
        """Hears when the compilation of a function begins and ends, and of each that it calls."""

        def on_start(self, event: object) -> None:
            nonlocal depth
            if not depth:
                begin()
            depth += 1

        def on_end(self, event: object) -> None:
            nonlocal depth
            depth -= 1
            if not depth:
                end()

    load_array_functions()
    with events.install_listener("numba:compile", Listener()):
        return cast(Any, import_module(f".kernels.{task}", __package__))


def kernel_count(task: str) -> int:
    """How many kernels a task has."""
    source = Path(__file__).with_name("kernels") / f"{task}.py"
    return source.read_text().count("\n@compiled(")


class _Line:
    """The line that says how many kernels of a task have been compiled."""

    def __init__(self, task: str, stream: TextIO) -> None:
        self._task, self._stream = task, stream
        self._done = 0
        self._is_shown = False

    def show(self) -> None:
        """Show the line; without a terminal, once per process and without numbers."""
        if not self._stream.isatty():
            if not _said:
                print(COMPILING, file=self._stream, flush=True)
                _said.append(self._task)
            return
        text = f"{COMPILING}: {self._task}, {self._done} of {kernel_count(self._task)}"
        print(f"\r{text}\x1b[K", end="", file=self._stream, flush=True)
        self._is_shown = True

    def add(self, task: str) -> None:
        """Count one more kernel, if it is of this task."""
        self._done += task == self._task
        self.show()

    def erase(self) -> None:
        """Erase the line."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=self._stream, flush=True)


class _Child:
    """A process that compiles the kernels of some tasks into the cache."""

    def __init__(self, tasks: Sequence[str]) -> None:
        self.tasks = tuple(tasks)
        script = CHILD.format(path=sys.path, module=__name__, tasks=self.tasks)
        command = [sys.executable, "-c", script]
        self._process = Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True)
        atexit.register(self._end)

    def wait(self, line: _Line) -> None:
        """Wait until the process ends, and show its progress."""
        assert self._process.stdout is not None
        for task in self._process.stdout:
            line.add(task.strip())
        self._end()

    def _end(self) -> None:
        """End the process, if it is still running."""
        atexit.unregister(self._end)
        self._process.kill()
        self._process.wait()


loaded: dict[str, Any] = {}
"""The kernels that have been loaded, by task. Callers have addresses in them: none is replaced."""

_LOADING = Turns()
"""The turns of threads that load kernels."""

_children: list[_Child] = []
"""The second process, once it has been started."""

_said: list[str] = []
"""The task of the message, once it has been printed."""


def _begin(task: str, line: _Line) -> None:
    """Show that a kernel is about to be compiled, and start the second process."""
    line.show()
    if not _children and _is_helpful():
        first, second = SHARES
        # Without a second process, this one compiles everything.
        with suppress(OSError):
            _children.append(_Child(first if task in second else second))


def _is_helpful() -> bool:
    """Whether a second process is of use: it needs a processor, and a cache to leave kernels in."""
    can_start = bool(sys.executable) and _processors() > 1
    return can_start and not import_module(".kernel_cache", __package__).warnings


def _processors() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
