"""Runs a tool in a process of its own, with limits, and restarts it after a crash."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import select
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from ...driver.arrays import Array
from .worker import Limits, serve

PATIENCE = 6
"""The limit on the wall clock is this many times the limit of processor time."""

ROUNDS = 5
"""So often are the processes of a tool looked for and ended, as they may start others."""
SHOWN = 2000
"""At most so many of the last bytes that a tool printed are part of a message."""

ADAPTERS = Path(__file__).with_name("adapters")


@dataclass(frozen=True)
class Answer:
    """What a tool made of a model.

    Attributes:
        kind: "" if it gave a result, else "crash", "hang", "memory", "printed", "refused" or
            "malformed" (a result that cannot be read).
        text: the same in words.
        model: the transformed model.
        outputs: by name.
        escapes: the files outside of its folder that it wrote or tried to write.
        parts, version, made: the answers to other requests; made is "transform" or "run".
    """

    kind: str = ""
    text: str = ""
    model: onnx.ModelProto | None = None
    outputs: Mapping[str, Array] = field(default_factory=dict[str, Array])
    escapes: Sequence[str] = ()
    parts: Sequence[str] = ()
    version: str = ""
    made: str = ""


_Started = tuple[int, Callable[[], int]]
"""The number of a process, and a function that waits for its end and returns its exit code."""


@dataclass
class _Running:
    """A process that serves, and the files to talk to it.

    Attributes:
        wait: waits for its end and returns its exit code, which is negative after a signal.
    """

    pid: int
    wait: Callable[[], int]
    folder: Path
    asked: int
    answered: int
    printed: int
    rest: bytes = b""


class ToolProcess:
    """A process that applies one adapter. It starts with the first request.

    Args:
        adapter: the name of a file in the folder adapters.
        option: for the adapter.
        python: the interpreter; abele's own if None.
        function: a function that is called instead of the adapter, in a forked process.
        made: "transform" or "run", for such a function.
    """

    def __init__(
        self,
        adapter: str,
        option: str = "",
        limits: Limits | None = None,
        python: str | None = None,
        function: Callable[..., object] | None = None,
        made: str = "",
    ) -> None:
        self.adapter, self.option = adapter, option
        self.limits = limits or Limits()
        self._python = python or sys.executable
        self._function, self._made = function, made
        self._running: _Running | None = None

    def hello(self) -> Answer:
        """The tool's version, and whether it transforms models or runs them."""
        return self._ask({"do": "hello"}, None, {})

    def parts(self, model: onnx.ModelProto) -> Answer:
        """The names of the tool's parts for a model."""
        return self._ask({"do": "parts"}, model, {})

    def transform(self, model: onnx.ModelProto, without: Sequence[str] = ()) -> Answer:
        """The transformed model.

        Args:
            without: the parts of the tool to leave out.
        """
        return self._ask({"do": "transform", "without": list(without)}, model, {})

    def run(
        self, model: onnx.ModelProto, inputs: Mapping[str, Array], without: Sequence[str] = ()
    ) -> Answer:
        """The outputs of a model.

        Args:
            without: the parts of the tool to leave out.
        """
        request = {"do": "run", "without": list(without), "inputs": list(inputs)}
        return self._ask(request, model, inputs)

    def end(self) -> None:
        """End the process and remove its folder. The next request starts another one."""
        running, self._running = self._running, None
        if running is None:
            return
        for _ in range(ROUNDS):
            # A process that left the group is still a descendant of the worker.
            below = _descendants(running.pid)
            for each in below:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, signal.SIGKILL)
            if not below:
                break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        for each in (running.asked, running.answered, running.printed):
            os.close(each)
        shutil.rmtree(running.folder, ignore_errors=True)

    def __enter__(self) -> ToolProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    # Requests

    def _ask(
        self, request: dict[str, Any], model: onnx.ModelProto | None, inputs: Mapping[str, Array]
    ) -> Answer:
        running = self._running = self._running or self._started()
        # What an earlier model left could change what the tool does with this one.
        _empty(running.folder)
        if model is not None:
            (running.folder / "model.onnx").write_bytes(model.SerializeToString())
        place = running.folder / "inputs"
        place.mkdir()
        for i, (name, array) in enumerate(inputs.items()):
            tensor = numpy_helper.from_array(array, name)
            (place / f"{i}.pb").write_bytes(tensor.SerializeToString())
        line = json.dumps({**request, "option": self.option}).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            os.write(running.asked, line)
        answer = self._awaited(running)
        if isinstance(answer, Answer):
            self.end()
            return answer
        try:
            return _read(answer, running.folder)
        except (OSError, DecodeError, ValueError, TypeError) as error:
            return Answer("malformed", f"the tool's result cannot be read: {error}")

    def _awaited(self, running: _Running) -> dict[str, Any] | Answer:
        """The line that answers a request; an Answer if the process has ended or must end."""
        end = monotonic() + PATIENCE * self.limits.seconds
        shown, count = b"", 0
        with selectors.DefaultSelector() as selector:
            selector.register(running.answered, selectors.EVENT_READ)
            selector.register(running.printed, selectors.EVENT_READ)
            while True:
                there = {key.fd for key, _ in selector.select(max(0.0, end - monotonic()))}
                if running.printed in there:
                    found = os.read(running.printed, 1 << 16)
                    count += len(found)
                    shown = (shown + found)[-SHOWN:]
                    if not found:
                        selector.unregister(running.printed)
                if count > self.limits.printed:
                    return Answer("printed", f"it printed more than {self.limits.printed:,} bytes")
                if running.answered in there:
                    found = os.read(running.answered, 1 << 16)
                    running.rest += found
                    if not found:
                        return _ended(running.wait(), shown, self.limits)
                    if running.rest.endswith(b"\n"):
                        line, running.rest = running.rest, b""
                        shown = (shown + _waiting(running.printed))[-SHOWN:]
                        return {**json.loads(line), "printed": shown.decode(errors="replace")}
                if not there and monotonic() >= end:
                    patience = PATIENCE * self.limits.seconds
                    return Answer("hang", f"it gave no answer in {patience:g} s")

    def _started(self) -> _Running:
        folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="abele-tool-")))
        asked, asks = os.pipe()
        answered, answers = os.pipe()
        printed, prints = os.pipe()
        theirs = (asked, answers, prints)
        start = self._forked if self._function is not None else self._executed
        pid, wait = start(folder, theirs)
        for each in theirs:
            os.close(each)
        return _Running(pid, wait, folder, asks, answered, printed)

    def _executed(self, folder: Path, descriptors: tuple[int, int, int]) -> _Started:
        asked, answers, prints = descriptors
        adapter = self.adapter if os.sep in self.adapter else str(ADAPTERS / f"{self.adapter}.py")
        settings = {
            "adapter": adapter,
            "folder": str(folder),
            "path": str(Path.cwd()),
            "asked": asked,
            "answered": answers,
            "printed": prints,
            "limits": asdict(self.limits),
        }
        worker = str(Path(__file__).with_name("worker.py"))
        process = subprocess.Popen(
            [self._python, worker, json.dumps(settings)],
            stdin=subprocess.DEVNULL,
            stdout=prints,
            stderr=prints,
            pass_fds=descriptors,
            start_new_session=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        return process.pid, process.wait

    def _forked(self, folder: Path, descriptors: tuple[int, int, int]) -> _Started:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        pid = os.fork()
        if pid:
            return pid, lambda: _exit_code(pid)
        # The child must not run the caller's handlers, finally blocks or exit functions.
        try:
            os.setsid()
            for number in (signal.SIGPROF, signal.SIGALRM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
                signal.setitimer(timer, 0)
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
            # pytest's handler would print stack frames of abele to the terminal.
            faulthandler.disable()
            # pytest may turn warnings into errors, such as one about an infinite value.
            warnings.simplefilter("ignore")
            serve(_adapted(self._function, self._made), folder, *descriptors, self.limits)
        finally:
            os._exit(0)


def _adapted(function: Any, made: str) -> Any:
    """An adapter of a function that transforms or runs models."""

    def transform(model: onnx.ModelProto, option: str, without: Sequence[str]) -> object:
        found = function(model)
        return model if found is None else found

    def run(
        model: onnx.ModelProto, inputs: dict[str, Any], option: str, without: Sequence[str]
    ) -> object:
        found: Any = function(model, inputs)
        names = [each.name for each in model.graph.output]
        return found if hasattr(found, "items") else dict(zip(names, found, strict=True))

    def parts(model: onnx.ModelProto, option: str) -> list[str]:
        return []

    own = {"transform": transform} if made == "transform" else {"run": run}
    return SimpleNamespace(version=lambda: "", parts=parts, **own)


def _read(answer: dict[str, Any], folder: Path) -> Answer:
    """An answer with the arrays and the model that are files. Raises OSError and ValueError."""
    escapes = answer["escapes"]
    if "error" in answer:
        return Answer(*_refusal(answer), escapes=escapes)
    outputs: dict[str, Array] = {}
    for i, name in enumerate(answer.get("outputs", ())):
        written = (folder / "outputs" / f"{i}.pb").read_bytes()
        outputs[name] = numpy_helper.to_array(onnx.TensorProto.FromString(written))
    result = folder / "result.onnx"
    model = onnx.ModelProto.FromString(result.read_bytes()) if result.exists() else None
    return Answer(
        model=model,
        outputs=outputs,
        escapes=escapes,
        parts=answer.get("parts", ()),
        version=answer.get("version", ""),
        made=answer.get("kind", ""),
    )


OF_COMMANDS = {"Crashed": "crash", "NoResult": "malformed", "Refused": "refused"}
"""What the errors of adapters/command.py mean."""
NO_MEMORY = ("MemoryError", "bad_alloc")


def _refusal(answer: dict[str, Any]) -> tuple[str, str]:
    """The kind and the text of an error."""
    kind = "memory" if answer["memory"] else "refused"
    error, text, printed = answer["error"], answer["text"], answer["printed"].strip()
    if error not in OF_COMMANDS:
        return kind, f"{error}: {text}"
    if OF_COMMANDS[error] == "refused" and any(each in printed for each in NO_MEMORY):
        return "memory", f"{text}; it printed: {printed}"
    return OF_COMMANDS[error], f"{text}; it printed: {printed}" if printed else text


def _waiting(pipe: int) -> bytes:
    """What can be read from a pipe now."""
    found = b""
    while select.select([pipe], [], [], 0)[0]:
        more = os.read(pipe, 1 << 16)
        found = (found + more)[-SHOWN:]
        if not more:
            break
    return found


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have; Linux only."""
    parents: dict[int, list[int]] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of a process is in brackets, and may hold spaces.
            parent = int(each.read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(each.parent.name))
    found: list[int] = []
    pending = [pid]
    while pending:
        own = parents.get(pending.pop(), [])
        found += own
        pending += own
    return found


def _ended(code: int, shown: bytes, limits: Limits) -> Answer:
    """How a process ended, by its exit code."""
    last = shown.decode(errors="replace").strip()
    printed = f"; it printed: {last}" if last else ""
    if code >= 0:
        return Answer("crash", f"it ended with status {code}{printed}")
    if -code == signal.SIGXCPU:
        return Answer("hang", f"it used more than {limits.seconds:g} s of processor time")
    return Answer("crash", f"it ended by {signal.Signals(-code).name}{printed}")


def _exit_code(pid: int) -> int:
    """The exit code of a forked process, once it has ended; 0 if somebody else has taken it."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return 0


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink()
