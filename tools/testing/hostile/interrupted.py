"""Interrupts commands while they write: every output must be the old one or the new one.

A child process runs a writing command in a folder with the outputs of an earlier run. It is killed,
or its disk becomes full, at the n-th event: the opening of a file for writing, a renaming or a
removal. Python reports each event before it happens. A write within a file ends at a byte instead.
After that, each output must be the old or the new one, and the next run must leave only new
outputs.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, Literal, NoReturn, TypeAlias, get_args
from zipfile import BadZipFile, ZipFile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from typer.core import TyperGroup

from ....backends.executable import load
from ....ir.support import temporary_entries, whole_folder
from ....ir.support.errors import InputError
from ....ir.support.json_lines import read_json
from ....ir.support.whole_folder import EXCHANGE_EVENT, MANIFEST, difference
from ...driver.cache.model_digest import LIMIT
from ...driver.cache.store import MOST_BYTES
from ...driver.compile import compile_model
from ...driver.context import new_context
from ...driver.files import PROGRAM_FILE
from ..generators.program import Program
from .programs import program_files
from .watch_files import CHANGES, WRITING

HowInterrupted: TypeAlias = Literal[
    "killed", "killed in a write", "disk full", "disk full in a write"
]
"""How a command is interrupted."""

WAYS: tuple[HowInterrupted, ...] = get_args(HowInterrupted)

OLD, NEW = "tiny:5", "tiny:7"
"""The targets of the old outputs and of the new ones, so that they differ."""

MODEL, TEXT, SAMPLES = "m.onnx", "m.mlir", "samples.npz"

CACHE = "cache"
"""The cache folder of the writer that keeps programs. All others keep none."""

_TEXT = """\
func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %y = nn.relu %x : (tensor<8x6xf32>) -> tensor<8x6xf32>
  func.return %y : tensor<8x6xf32>
}
"""


@dataclass(frozen=True)
class Writer:
    """A command that writes files.

    Attributes:
        outputs: its files and folders.
        arguments: the command line, with TARGET for the target and TILES for its number of tiles;
            or a function of the target that writes the outputs.
        needs: libraries without which the command cannot run.
        sound: whether an output is acceptable after an interruption; None if it must be the old or
            the new one.
    """

    outputs: tuple[str, ...]
    arguments: tuple[str, ...] | Callable[[str], None]
    needs: tuple[str, ...] = ()
    sound: Callable[[Path], bool] | None = None

    @property
    def can_run(self) -> bool:
        """Whether the libraries are installed."""
        return all(find_spec(each) is not None for each in self.needs)


def _save_program(target: str) -> None:
    made = program_files("nn", 0).program
    Program(made.module, new_context(), made.inputs, made.target, plans=len(target)).save(
        Path("saved"), {"for": target}
    )


def _keep_program(target: str) -> None:
    """Compile a model and keep the program in a cache in the working folder."""
    os.environ |= {"ABELE_CACHE": CACHE, LIMIT: str(MOST_BYTES)}
    compile_model(MODEL, target)


def _is_sound_cache(path: Path) -> bool:
    """Whether each program in a cache loads. A cache without programs is sound."""
    try:
        return all(load(each) for each in path.rglob(f"*{PROGRAM_FILE}"))
    except InputError:
        return False


_FOR = (MODEL, "--target", "TARGET")
_SPLIT = 'decompose,plan-splits{target="TARGET"}'

WRITERS: dict[str, Writer] = {
    "run": Writer(("y.npz", "p.json"), ("run", *_FOR, "--outputs", "y.npz", "--profile", "p.json")),
    "compile": Writer(
        ("p.abele", "t.json"), ("compile", *_FOR, "-o", "p.abele", "--trace", "t.json")
    ),
    "dump": Writer(("dump",), ("run", *_FOR, "--dump-ir", "dump")),
    "opt": Writer(
        ("o.mlir", "tree", "stages"),
        ("opt", TEXT, "-p", _SPLIT, "-o", "o.mlir")
        + ("--dump-ir", "stages", "--mlir-print-ir-tree-dir", "tree"),
    ),
    "plan": Writer(("q.json", "q.csv"), ("plan", *_FOR, "--json", "q.json", "--csv", "q.csv")),
    "picture": Writer(
        ("q.png",), ("plan", *_FOR, "--operator", "mm", "--png", "q.png"), ("matplotlib",)
    ),
    "train": Writer(
        ("w.safetensors", "c.csv", "t.onnx"),
        ("train", *_FOR, "--loss", "mean_square", "--data", SAMPLES, "--steps", "TILES")
        + ("--checkpoint", "w.safetensors", "--curve", "c.csv", "--save-onnx", "t.onnx"),
    ),
    "memory": Writer(
        ("m.json", "m.csv"), ("memory", *_FOR, "--json", "m.json", "--over-time", "m.csv")
    ),
    "graph": Writer(
        ("graph", "g.graphml"),
        ("graph", *_FOR, "-o", "graph", "--graphml", "g.graphml"),
        ("pyarrow", "networkx"),
    ),
    "scan": Writer(
        ("s.png", "zoom"),
        ("scan", *_FOR, "-o", "s.png", "--zoom", "zoom", "--size", "256"),
        ("numba", "PIL", "scipy"),
    ),
    "report": Writer(
        ("report", "summary.md", "run.pftrace"),
        ("report", MODEL, *_FOR, "-o", "report", "--markdown", "summary.md")
        + ("--perfetto", "run.pftrace"),
        ("pyarrow", "duckdb", "perfetto"),
    ),
    "failure": Writer(("saved",), _save_program),
    "cache": Writer((CACHE,), _keep_program, sound=_is_sound_cache),
}
"""The commands that write files or folders."""


@dataclass(frozen=True)
class Interruption:
    """One interrupted run.

    Attributes:
        at: the number of the event, or the size of a file in bytes.
        had_old: whether the folder had outputs of an earlier run.
        at_once: whether the system can exchange two folders at once; if not, the folders are
            renamed one after the other.
    """

    writer: str
    way: HowInterrupted
    at: int
    had_old: bool
    at_once: bool

    def __str__(self) -> str:
        old = "with" if self.had_old else "without"
        once = "at once" if self.at_once else "in two steps"
        return f"{self.writer} {self.way} at {self.at}, {old} old outputs, exchanged {once}"


@dataclass
class Interrupted:
    """The result of all interruptions.

    Attributes:
        counts: by writer and by way.
        problems: what was lost.
    """

    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    problems: list[str] = field(default_factory=list[str])


class Harness:
    """Runs and interrupts the writers.

    Attributes:
        folder: holds all files; `close` removes it.
        events: the number of events of each writer.
    """

    def __init__(self, commands: TyperGroup, names: tuple[str, ...] = ()) -> None:
        self.commands = commands
        self.folder = Path(tempfile.mkdtemp(prefix="abele-interrupted-"))
        self.writers = {
            name: each
            for name, each in WRITERS.items()
            if each.can_run and (not names or name in names)
        }
        empty = self.folder / "empty"
        empty.mkdir()
        # Once here, instead of once in each child.
        program_files("nn", 0)
        _write_model(empty / MODEL)
        (empty / TEXT).write_text(_TEXT)
        samples = np.arange(96, dtype=np.float32).reshape(16, 6) / 96
        np.savez(empty / SAMPLES, x=samples, target=samples)
        self._olds: dict[str, Path] = {}
        self._news: dict[str, Path] = {}
        self.events: dict[str, int] = {}
        for name, each in self.writers.items():
            for target, kept in ((OLD, self._olds), (NEW, self._news)):
                kept[name] = self.folder / f"{name}-{target}"
                shutil.copytree(empty, kept[name])
                self._complete(each, kept[name], target)
            again = self.folder / f"{name}-count"
            shutil.copytree(self._olds[name], again)
            self.events[name] = self._counted(each, again)
        self._empty = empty

    def close(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def interruptions(self, number: int, seed: int) -> Iterator[Interruption]:
        """`number` interruptions: all writers and ways in turn, at random events."""
        random = Random(seed)
        names = sorted(self.writers)
        for each in range(number):
            name = names[each % len(names)]
            way = WAYS[each // len(names) % len(WAYS)]
            # Half of the events are among the last, which put outputs in their places.
            events = self.events[name]
            at = random.choice(
                [random.randrange(events), events - 1 - random.randrange(min(events, 12))]
            )
            if way.endswith("write"):
                at = random.choice([0, *(random.randrange(n + 1) for n in self._sizes(name))])
            had_old, at_once = random.random() < 0.8, random.random() < 0.7
            yield Interruption(name, way, at, had_old, at_once)

    def problems(self, each: Interruption) -> list[str]:
        """Interrupt one run, then run the command again. Returns the problems of both in words."""
        writer = self.writers[each.writer]
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self._olds[each.writer] if each.had_old else self._empty, work)
        status = _in_child(lambda: _interrupted(each, writer, work, self.commands), work)
        if each.at_once:
            found = self._lost(each, writer, work)
        else:
            # The next run begins with this cleaning.
            temporary_entries.cleaned.clear()
            temporary_entries.clean(work)
            found = self._lost(each, writer, work)
        if each.way.startswith("disk full"):
            left = _hidden(work)
            found += [f"leaves {left[0]}"] if left else []
            if status not in (0, 2):
                found.append(f"ends with {status}, not with a message")
        elif status not in (0, -signal.SIGKILL, -signal.SIGXFSZ):
            found.append(f"ends with {status}")
        again = _in_child(lambda: _run(writer, NEW, self.commands), work)
        if again:
            found.append(f"the next run ends with {again}")
        if left := _hidden(work):
            found.append(f"the next run leaves {left[0]}")
        found += [
            f"the next run does not write {output}"
            for output in writer.outputs
            if not self._is_new(each, work / output)
        ]
        return [f"{each}: {problem}" for problem in found]

    # Runs

    def _complete(self, writer: Writer, work: Path, target: str) -> None:
        status = _in_child(lambda: _run(writer, target, self.commands), work)
        if status:
            raise InputError(f"{writer.arguments}: ends with {status} on its own")

    def _counted(self, writer: Writer, work: Path) -> int:
        """The number of events of a run."""
        record = self.folder / "count"
        count = [0]

        def run() -> None:
            _on_events(work, lambda: count.__setitem__(0, count[0] + 1))
            try:
                _run(writer, NEW, self.commands)
            finally:
                record.write_text(str(count[0]))

        _in_child(run, work)
        return int(record.read_text())

    def _sizes(self, name: str) -> list[int]:
        """The sizes of the files that a writer writes."""
        root = self._news[name]
        outputs = [root / each for each in self.writers[name].outputs]
        return [
            file.stat().st_size
            for each in outputs
            for file in ([each] if each.is_file() else sorted(each.rglob("*")))
            if file.is_file()
        ]

    # Outputs

    def _lost(self, each: Interruption, writer: Writer, work: Path) -> list[str]:
        """Descriptions of outputs that are neither the old nor the new ones."""
        found: list[str] = []
        for output in writer.outputs:
            path, old = work / output, self._olds[each.writer] / output
            is_old = _same(path, old) if each.had_old else not path.exists()
            sound = writer.sound is not None and writer.sound(path)
            if not (is_old or sound or self._is_new(each, path)):
                found.append(f"{output} is neither old nor new")
        return found

    def _is_new(self, each: Interruption, path: Path) -> bool:
        """Whether an output is complete: it has all parts that a run writes, and they are whole."""
        new = self._news[each.writer] / path.name
        sound = self.writers[each.writer].sound
        if sound is not None:
            return sound(path) and _names(path) >= _names(new)
        if new.is_dir():
            return path.is_dir() and not difference(path) and _names(path) == _names(new)
        try:
            return path.is_file() and CHECKS[path.suffix](path, new)
        except (OSError, ValueError, InputError, BadZipFile, SyntaxError):
            return False


def _write_model(path: Path) -> None:
    weights = numpy_helper.from_array(np.ones((6, 6), np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="mm"),
        helper.make_node("Relu", ["a"], ["y"], name="r"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 6]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weights])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path
    )


def _names(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*")}


def _same(path: Path, other: Path) -> bool:
    """Whether two files or folders are equal."""
    return _content(path) == _content(other)


def _content(path: Path) -> dict[str, str]:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return {
        str(each.relative_to(path.parent)): sha256(each.read_bytes()).hexdigest() for each in files
    }


def _hidden(work: Path) -> list[str]:
    """The hidden files and folders that a run has left behind."""
    return [str(each.relative_to(work)) for each in work.rglob(".*") if each.name != MANIFEST]


def _is_image(path: Path, new: Path) -> bool:
    from PIL import Image  # noqa: PLC0415  an optional library

    with Image.open(path) as image, Image.open(new) as other:
        image.load()
        return image.size == other.size


def _is_zip(path: Path, new: Path) -> bool:
    with ZipFile(path) as archive, ZipFile(new) as other:
        return archive.testzip() is None and archive.namelist() == other.namelist()


def _is_trace(path: Path, new: Path) -> bool:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace  # noqa: PLC0415

    packets, others = (len(Trace.FromString(each.read_bytes()).packet) for each in (path, new))
    # Seconds of passes differ from run to run, and so does the length of the file.
    return packets == others


CHECKS: dict[str, Callable[[Path, Path], bool]] = {
    ".json": lambda path, _: bool(read_json(path)),
    ".npz": _is_zip,
    ".abele": lambda path, _: bool(load(path)),
    ".png": _is_image,
    ".csv": _same,
    ".mlir": _same,
    ".graphml": _same,
    ".onnx": _same,
    ".safetensors": _same,
    ".md": _same,
    ".pftrace": _is_trace,
}
"""Functions that tell whether a file is complete, by file name suffix. Arguments: the file, and
a complete file."""


# In the child


def _in_child(run: Callable[[], None], work: Path) -> int:
    """Run a function in a forked child, in a folder. Returns its exit code, or minus its signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        _child(run, work)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _child(run: Callable[[], None], work: Path) -> NoReturn:
    code = 99
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        sys.stdout, sys.stderr = open(os.devnull, "w"), open(os.devnull, "w")
        os.chdir(work)
        os.environ[LIMIT] = "0"
        temporary_entries.cleaned.clear()
        run()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    finally:
        os._exit(code)


def _run(writer: Writer, target: str, commands: TyperGroup) -> None:
    if callable(writer.arguments):
        try:
            writer.arguments(target)
        except InputError:
            raise SystemExit(2) from None
        return
    tiles = target.partition(":")[2]
    words = [each.replace("TARGET", target).replace("TILES", tiles) for each in writer.arguments]
    commands.main(args=words, prog_name="abele")


def _interrupted(each: Interruption, writer: Writer, work: Path, commands: TyperGroup) -> None:
    """Run a writer and interrupt it as described."""
    if not each.at_once:
        whole_folder.exchange_function = lambda: None
    if each.way.endswith("write"):
        killed = each.way.startswith("killed")
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (each.at, each.at))
    else:
        _on_events(work, _at(each))
    _run(writer, NEW, commands)


def _at(each: Interruption) -> Callable[[], None]:
    """A function to call at each event. It ends the run at the n-th event.

    It kills the process, or raises the error of a full disk, at that event and every later one.
    """
    left = [each.at]

    def act() -> None:
        left[0] -= 1
        if left[0] < 0:
            if each.way == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return act


def _on_events(work: Path, act: Callable[[], None]) -> None:
    """Call a function before each event that changes files below a folder.

    On a full disk removals still work, so an OSError of the function is passed on only when a file
    is opened or a folder is made.
    """
    lock = threading.Lock()
    root = os.path.realpath(work)

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not (isinstance(flags, int) and flags & WRITING):
                return
        elif event in CHANGES or event == EXCHANGE_EVENT:
            path = arguments[0]
        else:
            return
        name = os.fsdecode(path) if isinstance(path, str | bytes) else ""
        if name.startswith("/") and not name.startswith(f"{root}/"):
            return
        with lock:
            try:
                act()
            except OSError:
                if event in ("open", "os.mkdir"):
                    raise

    sys.addaudithook(look)


def interrupt(
    commands: TyperGroup, number: int, seed: int, names: tuple[str, ...] = ()
) -> Interrupted:
    """Run and interrupt writers `number` times.

    Args:
        names: keys of WRITERS; all if empty.
    """
    harness, found = Harness(commands, names), Interrupted()
    try:
        for each in harness.interruptions(number, seed):
            found.counts.setdefault(each.writer, Counter[str]())[each.way] += 1
            found.problems += harness.problems(each)
    finally:
        harness.close()
    return found
