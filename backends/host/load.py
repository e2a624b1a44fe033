"""Loads kernels as machine code. Kernels that are not cached are compiled in separate processes.

A process that compiles imports numba, sets it to the form and the processor of the kernels, and
crashes if LLVM fails. None of that affects the process that runs programs: it loads code of any
form, and its own numba, if it uses one, is left unchanged.

Before code is used for the first time, another process proves it (see proofs).

Numba compiles under a lock, so threads would not help. When the first kernel has to be compiled, a
second process starts to compile tasks that are needed later.
"""

from __future__ import annotations

import atexit
import base64
import errno
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from typing import IO, Any, TextIO, cast

from ...ir.support.errors import InputError
from ...ir.support.turns import Turns
from .kernel_sources import KERNELS, folder_stamp, has_changed
from .machine_code import (
    ENDING,
    FOLDER_SETTING,
    PROOF,
    UNPROVED,
    code_of,
    loaded_code,
    locked,
    path_of,
    proved_otherwise,
    remove,
    save,
    saved,
    saved_kernels,
)
from .proofs import Proof, Prover, Undecided
from .switch import VARIABLE, Choice, choice
from .tasks import NEEDS

COMPILING = "abele: compiling kernels for this host, once"

SHARES = (
    ("routes", "products", "copies"),
    ("sharing", "chains", "lookups", "functions"),
    ("bounds", "equality"),
)
"""Tasks that one process compiles. Those of the first two groups take about equally long, and are
compiled at once; only checks need the last group.
"""

INSTEAD = (
    "so NumPy computes the same without them, more slowly. Please report this line with what "
    "`abele doctor` prints"
)
"""The end of the warning that kernels are not used."""

CHILD = """
import sys
sys.path[:] = {path!r}
from {module} import compile_tasks
compile_tasks({tasks!r}, {stamp!r})
"""
"""The program of a process that compiles kernels."""

PROVES = """
import sys
sys.path[:] = {path!r}
from abele.backends.host.battery.process import main
main()
"""
"""The program of a process that proves kernels."""

COMPILED, KEPT, CODE, ENDED = "compiled", "kept", "code", "ended"
"""The first word of a line of its output: a kernel of a task has been compiled; the code of a task
is in its file; it could not be kept, and here it is; the process has ended.
"""


def kernels(task: str) -> Any:
    """The kernels of a task in the current form, with its module's constants, addresses and
    functions.

    Any number of threads may ask for a task: it is loaded once, and its code stays at its address
    until the process ends. If kernels have to be compiled, says so on stderr: in one line per
    process, or on a terminal in a line of progress, which is erased in the end.

    Raises NoKernels if they cannot be compiled, or have failed their battery.

    Args:
        task: "sharing", "copies", "chains", "functions", "routes", "products", "lookups", or for
            checks "bounds" and "equality".
    """
    chosen = choice()
    found = _loaded.get((chosen.name, task))
    return _loaded_once(chosen, task) if found is None else found


def has_kernels(task: str) -> bool:
    """Whether there are kernels of a task in the current form.

    If not, NumPy computes the same bytes. Prints the reason on stderr, once.
    """
    try:
        return kernels(task) is not None
    except NoKernels:
        return False


class NoKernels(InputError):
    """There are no kernels of a task.

    Attributes:
        problem: the reason.
    """

    def __init__(self, task: str, problem: str) -> None:
        super().__init__(f"kernels of {task} {problem}")
        self.task = task


def loaded_kernels() -> dict[str, Any]:
    """The kernels loaded so far in the current form, by task."""
    name = choice().name
    # Another thread may be loading kernels.
    return {task: each for (form, task), each in _loaded.copy().items() if form == name}


def _loaded_once(chosen: Choice, task: str) -> Any:
    """The kernels of a task that this thread has not found loaded. Waits for a thread that is
    loading them.
    """
    key = chosen.name, task
    with _LOADING:
        if key in _loaded:
            return _loaded[key]
        if key not in _problems:
            found = saved_kernels(task)
            try:
                _loaded[key] = found or loaded_code(_code_to_use(chosen, task))
                return _loaded[key]
            except NoKernels as problem:
                _problems[key] = problem
                # The needed tasks have printed their own reasons.
                if problem.task == task:
                    print(f"warning: {problem}, {INSTEAD}", file=sys.stderr, flush=True)
        raise _problems[key]


def _code_to_use(chosen: Choice, task: str) -> bytes:
    """The machine code of a task's kernels, compiled and proved if necessary. Raises NoKernels."""
    proof, code = kept_proof(task), b""
    if proof is None or not proof.problem:
        proof, code = _proved(chosen, task)
    if proof.problem:
        raise NoKernels(task, f"fail their self-test on this host ({proof.problem})")
    return code


def proof_of(task: str, again: bool = False) -> Proof:
    """The result of a task's battery in the current form.

    Kernels are compiled and proved if they have not been, or if `again` is set. Raises NoKernels if
    they cannot be.
    """
    with _LOADING:
        kept = kept_proof(task)
        if kept is None or again or not (kept.problem or saved(task)):
            kept, _ = _proved(choice(), task)
        return kept


def kept_proof(task: str) -> Proof | None:
    """The kept result of a task's battery; None if there is none."""
    kept = saved(task, PROOF)
    return None if kept is None else Proof.of(task, kept)


def _proved(chosen: Choice, task: str) -> tuple[Proof, bytes]:
    """Run the battery of a task; returns its result and the machine code, which is kept if all
    passes.

    Raises NoKernels.
    """
    for need in NEEDS[task]:
        _ = _loaded_once(chosen, need)
    # Kernels that are loaded already may have no file any more, because the cache folder may have
    # changed.
    codes = {
        each: _known_code(chosen, each) or _compiled(chosen, each) for each in (*NEEDS[task], task)
    }
    code = codes[task]
    try:
        proof = _prover(chosen).prove(task, codes)
    except Undecided as problem:
        raise NoKernels(task, f"cannot be tried: {problem}") from None
    except OSError:
        proof = _proof_here(chosen, task, code)
    if proof.problem:
        remove(task, ENDING)
    else:
        _codes[chosen.name, task] = code
        _warn(save(task, code))
    remove(task, UNPROVED)
    _warn(save(task, proof.text.encode(), PROOF))
    return proof, code


def _proof_here(chosen: Choice, task: str, code: bytes) -> Proof:
    """The result of a task's battery, run in this process because no other can be started."""
    batteries, key = import_module(".battery.batteries", __package__), (chosen.name, task)
    before = _loaded.get(key)
    _loaded[key] = loaded_code(code)
    try:
        return batteries.proved(task)
    finally:
        _loaded[key] = before
        if before is None:
            del _loaded[key]


def _known_code(chosen: Choice, task: str) -> bytes | None:
    """The machine code of a task's kernels, or None if it has not been compiled."""
    for find in (
        lambda: _codes.get((chosen.name, task)),
        lambda: saved(task, ENDING),
        lambda: saved(task, UNPROVED),
        lambda: proved_otherwise(task),
    ):
        code = find()
        if code is not None:
            return code
    return None


def _prover(chosen: Choice) -> Prover:
    """The process that proves the kernels of a form. Raises OSError if it cannot be started."""
    found = _provers.get(chosen.name)
    if found is None or found.has_ended:
        found = _provers[chosen.name] = Prover(
            lambda said: _begin_process(chosen, PROVES.format(path=_path()), PIPE, said)
        )
    return found


def use_alone(codes: Mapping[str, bytes]) -> None:
    """Use only these kernels from now on, given by machine code; nothing is compiled."""
    name = choice().name
    for task in NEEDS:
        _problems[name, task] = NoKernels(task, "have not been given")
    _loaded.update({(name, task): loaded_code(code) for task, code in codes.items()})


def _compiled(chosen: Choice, task: str) -> bytes:
    """Compile a task's kernels, and return their machine code."""
    line = _Line(task, sys.stderr)
    line.show()
    try:
        running = [each for each in _children if each.compiles(chosen, task)]
        return (running[-1] if running else _begin(chosen, task)).code(task, line)
    except _NoProcess:
        return _code_here(chosen, task, partial(line.add, task))
    finally:
        line.erase()


def compile_tasks(tasks: Sequence[str], stamp: str) -> None:
    """Compile the kernels of some tasks, and keep their machine code if possible.

    Prints a line for each kernel and for each task.

    Args:
        stamp: of the sources with which the process that started this one runs.
    """

    def tell(*line: str) -> None:
        print(json.dumps(line), flush=True)

    for task in tasks:
        with locked(task):
            # Another process may have compiled them meanwhile.
            if any(saved(task, ending) is not None for ending in (UNPROVED, ENDING)):
                tell(KEPT, task)
                continue
            code = _code_here(choice(), task, partial(tell, COMPILED, task))
            if folder_stamp(KERNELS) != stamp or has_changed(KERNELS):
                raise SystemExit("their sources have changed since this process began")
            problem = save(task, code, UNPROVED)
        if problem:
            tell(CODE, task, problem, base64.b64encode(code).decode())
        else:
            tell(KEPT, task)


def _code_here(chosen: Choice, task: str, done: Callable[[], None]) -> bytes:
    """The machine code of a task's kernels, compiled in this process.

    Raises NoKernels if this process has compiled another form.

    Args:
        done: called after each kernel.
    """
    hardware = import_module(".kernels.hardware", __package__)
    if chosen.form != hardware.FORM:
        raise NoKernels(
            task,
            f"cannot be compiled: this process has compiled those of the form "
            f"{hardware.FORM.name}, and cannot start another one, which {chosen.name} needs",
        )
    code = code_of(_imported(task, done))
    # The code must load before other processes rely on it.
    _ = loaded_code(code)
    return code


def _imported(task: str, done: Callable[[], None]) -> Any:
    """The module of a task's kernels.

    Args:
        done: called after each is compiled.
    """
    events = cast(Any, import_module("numba.core.event"))
    depth = 0

    class Listener(events.Listener):
        """Reports when the compilation of a function begins and ends, and of each function that it
        calls.
        """

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
    """The number of kernels of a task."""
    source = Path(__file__).with_name("kernels") / f"{task}.py"
    return source.read_text().count("\n@compiled(")


class _Line:
    """The line that shows how many kernels of a task have been compiled."""

    def __init__(self, task: str, stream: TextIO) -> None:
        self._task, self._stream = task, stream
        self._done = 0
        self._is_shown = False

    def show(self) -> None:
        """Show the line. Without a terminal, it is printed once per process and without numbers."""
        if not self._stream.isatty():
            if COMPILING not in _said:
                print(COMPILING, file=self._stream, flush=True)
                _said.append(COMPILING)
            return
        text = f"{COMPILING}: {self._task}, {self._done} of {kernel_count(self._task)}"
        print(f"\r{text}\x1b[K", end="", file=self._stream, flush=True)
        self._is_shown = True

    def add(self, task: str) -> None:
        """Count one more kernel, if it belongs to this task."""
        self._done += task == self._task
        self.show()

    def erase(self) -> None:
        """Erase the line."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=self._stream, flush=True)


def _begin_process(chosen: Choice, script: str, given: int, said: IO[str]) -> Popen[str]:
    """Start a Python process that works on the kernels of a form.

    Raises OSError.

    Args:
        given: its standard input, for Popen.
        said: the file for its errors.
    """
    assert chosen.processor is not None
    # Do not pass on settings of numba, or of a folder: they are for other code.
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in (FOLDER_SETTING, *chosen.processor.settings) or not name.startswith("NUMBA_")
    }
    environment |= {VARIABLE: chosen.name, **chosen.processor.settings}
    if not sys.executable:
        raise OSError(errno.ENOENT, "there is no Python to start")
    return Popen(
        [sys.executable, "-c", script],
        env=environment,
        cwd=os.path.abspath(os.sep),
        stdin=given,
        stdout=PIPE,
        stderr=said,
        text=True,
    )


def _path() -> list[str]:
    """Python's path, valid in a process with another working directory."""
    return list(map(_absolute, sys.path))


class _NoProcess(Exception):
    """No other process can be started."""


class _Child:
    """A process that compiles the kernels of some tasks in one form."""

    def __init__(self, chosen: Choice, tasks: Sequence[str]) -> None:
        self.chosen = chosen
        self.left = list(tasks)
        self._folder = path_of(tasks[0], UNPROVED).parent
        self._codes: dict[str, bytes] = {}
        script = CHILD.format(
            path=_path(), module=__name__, tasks=tuple(tasks), stamp=folder_stamp(KERNELS)
        )
        self._said = TemporaryFile("w+", errors="replace")
        try:
            self._process = _begin_process(chosen, script, DEVNULL, cast("IO[str]", self._said))
        except OSError as error:
            self._said.close()
            raise _NoProcess from error
        atexit.register(self.end)

    def compiles(self, chosen: Choice, task: str) -> bool:
        """Whether the process is still going to compile a task, in a form, into the current
        folder."""
        is_here = self._folder == path_of(task, UNPROVED).parent
        return is_here and self.chosen == chosen and task in self.left

    def code(self, task: str, line: _Line) -> bytes:
        """The code of a task's kernels. Waits until it is compiled, showing progress."""
        assert self._process.stdout is not None
        while task not in self._codes:
            kind, of, *more = json.loads(self._process.stdout.readline() or f'["{ENDED}", ""]')
            if kind == COMPILED:
                line.add(of)
            elif kind == KEPT:
                # Another process may have proved it meanwhile.
                code = saved(of, UNPROVED) or saved(of)
                if code is None:
                    raise self._failed(task, f"{path_of(of, UNPROVED)}: it cannot be read")
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

    def _failed(self, task: str, reason: str) -> NoKernels:
        """The error for missing code, with a reason. Ends the process."""
        self.end()
        return NoKernels(task, f"cannot be compiled: {reason}")

    def end(self) -> None:
        """End the process, if it is still running."""
        self._process.kill()
        self._process.wait()
        self.leave()

    def leave(self) -> None:
        """Let the process continue on its own."""
        atexit.unregister(self.end)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._said.close()
        if self in _children:
            _children.remove(self)

    def _reason(self) -> str:
        """The last line that the process printed."""
        self._said.seek(0)
        lines = [each.strip() for each in self._said if each.strip()]
        return lines[-1] if lines else f"exit code {self._process.returncode}"


_loaded: dict[tuple[str, str], Any] = {}
"""The kernels that have been loaded, by form and task. Callers hold addresses in them, so no entry
is ever replaced.
"""

_problems: dict[tuple[str, str], NoKernels] = {}
"""The reasons why there are no kernels, by form and task."""

_codes: dict[tuple[str, str], bytes] = {}
"""The machine code that this process has had compiled, by form and task."""

_provers: dict[str, Prover] = {}
"""The processes that prove kernels, by form."""

_children: list[_Child] = []
"""The processes that compile."""

_said: list[str] = []
"""The messages that have been printed, each once."""

_LOADING = Turns()
"""The turns of threads that load kernels."""


def _leave_children() -> None:
    """Leave child processes to the parent of this forked process."""
    for each in [*_children, *_provers.values()]:
        each.leave()
    _provers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_children)


def _begin(chosen: Choice, task: str) -> _Child:
    """Start a process that compiles the kernels of a task, and then further ones.

    If there is another processor, a second process begins with tasks that are needed later.
    """
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
    """The tasks among these whose kernels are neither loaded nor kept nor being compiled."""
    begun = {task for task in tasks for each in _children if each.compiles(chosen, task)}
    return [
        task
        for task in tasks
        if task not in begun
        and (chosen.name, task) not in _loaded
        and not any(path_of(task, ending).is_file() for ending in (ENDING, UNPROVED))
    ]


def _warn(problem: str) -> None:
    """Print the reason why kernels are not kept, if there is one."""
    if problem and problem not in _said:
        print(
            f"warning: {problem}, so compiled kernels are not kept, and each process compiles them "
            "again; set ABELE_CACHE to a folder that only you can write to",
            file=sys.stderr,
            flush=True,
        )
        _said.append(problem)


def _absolute(entry: str) -> str:
    """An entry of Python's path for another working directory. Entries that are no folders stay as
    they are.
    """
    return os.path.abspath(entry) if os.path.isdir(entry or os.curdir) else entry


def _processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
