"""Loads kernels as machine code, and has those that are not cached yet compiled: in processes of
their own, with progress.

A process that compiles imports numba, sets it to the form and the processor of the kernels, and
ends if LLVM gives up. None of that concerns the process that runs programs: it loads code of any
form, and its own numba, if it uses one, is left as it is.

Numba compiles under a lock, so threads would not help. When the first kernel has to be compiled, a
second process starts to compile tasks that are needed later.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from typing import Any, TextIO, cast

from ...ir.errors import InputError
from ...ir.turns import Turns
from .kernel_sources import KERNELS, folder_stamp, has_changed
from .machine_code import (
    FOLDER_SETTING,
    code_of,
    loaded_code,
    path_of,
    save_code,
    saved_code,
    saved_kernels,
)
from .switch import PLAIN, VARIABLE, Choice, choice

COMPILING = "abele: compiling kernels for this host, once"

SHARES = (
    ("routes", "products", "copies"),
    ("sharing", "chains", "lookups", "functions"),
    ("bounds", "equality"),
)
"""Tasks that one process compiles. Those of the first two take about equally long, and are compiled
at once; the last ones are needed by checks alone."""

CHILD = """
import sys
sys.path[:] = {path!r}
from {module} import compile_tasks
compile_tasks({tasks!r}, {stamp!r})
"""
"""The program of a process that compiles."""

COMPILED, KEPT, CODE, ENDED = "compiled", "kept", "code", "ended"
"""What a line of its output begins with: a kernel of a task has been compiled, the code of a task
is in its file, or it could not be kept and here it is. After the last line, the process has
ended."""


def kernels(task: str) -> Any:
    """The kernels of a task, in the form that is used now: "sharing", "copies", "chains",
    "functions", "routes", "products", "lookups", or for checks "bounds" and "equality". They have
    the constants, addresses and functions of the task's module.

    Any number of threads may ask for a task: it is loaded once, and its code stays where it is for
    as long as the process lives. Says on stderr if kernels have to be compiled: in one line per
    process, or on a terminal in a line of progress, which is erased in the end.

    Raises InputError if they cannot be compiled.
    """
    chosen = choice()
    found = _loaded.get((chosen.name, task))
    return _loaded_once(chosen, task) if found is None else found


def loaded_kernels() -> dict[str, Any]:
    """The kernels that have been loaded in the form that is used now, by task."""
    name = choice().name
    # Another thread may load kernels meanwhile.
    return {task: each for (form, task), each in _loaded.copy().items() if form == name}


def _loaded_once(chosen: Choice, task: str) -> Any:
    """The kernels of a task, which no thread has loaded yet, or which another one is loading."""
    key = chosen.name, task
    with _LOADING:
        if key not in _loaded:
            _loaded[key] = saved_kernels(task) or loaded_code(_compiled(chosen, task))
        return _loaded[key]


def _compiled(chosen: Choice, task: str) -> bytes:
    """The machine code of a task's kernels, which has to be compiled first."""
    line = _Line(task, sys.stderr)
    line.show()
    try:
        running = [each for each in _children if each.chosen == chosen and task in each.left]
        return (running[-1] if running else _begin(chosen, task)).code(task, line)
    except _NoProcess:
        return _code_here(chosen, task, partial(line.add, task))
    finally:
        line.erase()


def compile_tasks(tasks: Sequence[str], stamp: str) -> None:
    """Compile the kernels of some tasks, and keep their machine code if it can be kept. Prints a
    line for each kernel and for each task.

    stamp: of the sources from which the other process was started.
    """

    def tell(*line: str) -> None:
        print(json.dumps(line), flush=True)

    for task in tasks:
        code = _code_here(choice(), task, partial(tell, COMPILED, task))
        if folder_stamp(KERNELS) != stamp or has_changed(KERNELS):
            raise SystemExit("their sources have changed since this process began")
        problem = save_code(task, code)
        if problem:
            tell(CODE, task, problem, base64.b64encode(code).decode())
        else:
            tell(KEPT, task)


def _code_here(chosen: Choice, task: str, done: Callable[[], None]) -> bytes:
    """The machine code of a task's kernels, compiled in this process.

    done: called after each kernel. Raises InputError if this process has compiled another form.
    """
    hardware = import_module(".kernels.hardware", __package__)
    if chosen.form != hardware.FORM:
        raise InputError(
            f"{VARIABLE}: this process has compiled kernels of the form {hardware.FORM.name}, and "
            f"cannot start another one, which {chosen.name} needs"
        )
    code = code_of(_imported(task, done))
    # It must load before others rely on it.
    _ = loaded_code(code)
    return code


def _imported(task: str, done: Callable[[], None]) -> Any:
    """The module of a task's kernels. done: called after each is compiled."""
    events = cast(Any, import_module("numba.core.event"))
    depth = 0

    class Listener(events.Listener):
        """Hears when the compilation of a function begins and ends, and of each that it calls."""

        def on_start(self, event: object) -> None:
            nonlocal depth
            depth += 1

        def on_end(self, event: object) -> None:
            nonlocal depth
            depth -= 1
            if not depth:
                done()

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
            if COMPILING not in _said:
                print(COMPILING, file=self._stream, flush=True)
                _said.append(COMPILING)
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


class _NoProcess(Exception):
    """No other process can be started."""


class _Child:
    """A process that compiles the kernels of some tasks in one form."""

    def __init__(self, chosen: Choice, tasks: Sequence[str]) -> None:
        assert chosen.processor is not None
        self.chosen = chosen
        self.left = list(tasks)
        self._codes: dict[str, bytes] = {}
        # Settings of numba, and of a folder, are for other code.
        environment = {
            name: value
            for name, value in os.environ.items()
            if name in (FOLDER_SETTING, *chosen.processor.settings) or not name.startswith("NUMBA_")
        }
        environment |= {VARIABLE: chosen.name, **chosen.processor.settings}
        script = CHILD.format(
            path=list(map(_absolute, sys.path)),
            module=__name__,
            tasks=tuple(tasks),
            stamp=folder_stamp(KERNELS),
        )
        self._said = TemporaryFile("w+", errors="replace")
        try:
            self._process = Popen(
                [sys.executable, "-c", script],
                env=environment,
                cwd=os.path.abspath(os.sep),
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=self._said,
                text=True,
            )
        except OSError as error:
            self._said.close()
            raise _NoProcess from error
        atexit.register(self.end)

    def code(self, task: str, line: _Line) -> bytes:
        """The code of a task's kernels, once it is compiled. Shows progress until then."""
        assert self._process.stdout is not None
        while task not in self._codes:
            kind, of, *more = json.loads(self._process.stdout.readline() or f'["{ENDED}", ""]')
            if kind == COMPILED:
                line.add(of)
            elif kind == KEPT:
                code = saved_code(of)
                if code is None:
                    raise self._failed(task, f"{path_of(of)}: it cannot be read")
                self._codes[of] = code
            elif kind == CODE:
                problem, code = more
                self._codes[of] = base64.b64decode(code)
                _warn(problem)
            else:
                self._process.wait()
                raise self._failed(task, self._reason())
        self.left.remove(task)
        if not self.left:
            self.end()
        return self._codes.pop(task)

    def _failed(self, task: str, reason: str) -> InputError:
        """The error that says why there is no code. Ends the process."""
        self.end()
        return InputError(
            f"kernels for {task} cannot be compiled: {reason}; {VARIABLE}={PLAIN} computes the "
            "same with NumPy"
        )

    def end(self) -> None:
        """End the process, if it is still running."""
        self._process.kill()
        self._process.wait()
        self.leave()

    def leave(self) -> None:
        """Let the process run on its own."""
        atexit.unregister(self.end)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._said.close()
        if self in _children:
            _children.remove(self)

    def _reason(self) -> str:
        """The last thing that the process said."""
        self._said.seek(0)
        lines = [each.strip() for each in self._said if each.strip()]
        return lines[-1] if lines else f"exit code {self._process.returncode}"


_loaded: dict[tuple[str, str], Any] = {}
"""The kernels that have been loaded, by form and task. Callers have addresses in them: none is
replaced."""

_children: list[_Child] = []
"""The processes that compile."""

_said: list[str] = []
"""The messages that have been printed, each once."""

_LOADING = Turns()
"""The turns of threads that load kernels."""


def _leave_children() -> None:
    """Leave the other processes to the process that has forked this one."""
    for each in list(_children):
        each.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_children)


def _begin(chosen: Choice, task: str) -> _Child:
    """A process that compiles the kernels of a task, and then further ones.

    With another processor, a second one begins with what is needed later.
    """
    if not sys.executable:
        raise _NoProcess
    (share,) = (each for each in SHARES if task in each)
    begun = _Child(chosen, [task, *(each for each in _missing(chosen, share) if each != task)])
    _children.append(begun)
    others = SHARES[:2] if _processors() > 1 and share in SHARES[:2] else ()
    for other in others:
        missing = _missing(chosen, other)
        if missing:
            with suppress(_NoProcess):
                _children.append(_Child(chosen, missing))
    return begun


def _missing(chosen: Choice, tasks: Sequence[str]) -> list[str]:
    """Those of some tasks whose kernels are neither loaded nor kept, and that nobody compiles."""
    begun = {task for each in _children if each.chosen == chosen for task in each.left}
    return [
        task
        for task in tasks
        if task not in begun and (chosen.name, task) not in _loaded and not path_of(task).is_file()
    ]


def _warn(problem: str) -> None:
    """Say why kernels are not kept."""
    if problem not in _said:
        print(
            f"warning: {problem}, so compiled kernels are not kept, and each process compiles them "
            "again; set ABELE_CACHE to a folder that only you can write to",
            file=sys.stderr,
            flush=True,
        )
        _said.append(problem)


def _absolute(entry: str) -> str:
    """An entry of Python's path for another working directory. Some name what finds modules, and no
    folder."""
    return os.path.abspath(entry) if os.path.isdir(entry or os.curdir) else entry


def _processors() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
