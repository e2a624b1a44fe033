"""One mutant, checked in a process of its own: whatever it does, the study goes on."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic, process_time
from traceback import format_exc
from typing import Any, Literal, cast
from warnings import catch_warnings

from xdsl.dialects import func
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from ....dialects import nn, partition, tile
from ....dialects.program import HostInput, HostOutput, Variable
from ....dialects.superstep import Superstep, Sync
from ....ir.errors import InputError
from ....ir.upstream import Context, ModuleOp, ModulePass
from ....passes.pipelines import PASSES
from ..limits import TooLong
from ..search import shrink
from ..search.check import check_pass
from ..search.contracts import Refuses, acting_as, goes_on, takes_all
from ..search.failures import Miscompiled, PassFailed
from ..search.report import Report
from ..search.settings import LIMIT, CheckOptions
from .compare import Budget, Case, Spent, compared
from .mutant import Mutant

Verdict = Literal["found", "survived", "same", "refused"]
"""found: the kit says that something is wrong. survived: it makes something else of a program, and
nothing is said. same: it made the same of all programs. refused: it cannot be made, since what
reads rules has found the mistake."""

MEMORY = 4 << 30
"""Bytes that a mutant may take, beyond what its process begins with, before it gets no more."""

SIZES = Path("/proc/self/statm")
"""Where a process sees on Linux how large it is: first its address space, in pages."""

SACRIFICE = Path("/proc/self/oom_score_adj")
"""Where a process says on Linux that it goes first when there is no memory left."""

PATIENCE = 60.0
"""CPU seconds beyond the search and the shrinking, after which a process is killed."""

SLOWER = 4
"""How many times its CPU seconds a process may take by the clock: others run beside it."""


@dataclass(frozen=True)
class Trial:
    """What came of a mutant.

    how: what was wrong, as Wrong.kind says; or "raised", "refuses" a program, "memory", "killed",
    "hang"; of what is not found, how the first program that came out otherwise did.
    detail: in words. examples: programs until it was found, or all of them. seconds: of CPU time,
    until it was found, shrinking not counted; total: with everything. operators: of the smallest
    program. rewrite: the one that bisection blames. differing, compared: in how many programs, of
    how many, something else came out than of the right pass; of those not found. text: the
    program, or the first that came out otherwise, with the difference.
    """

    verdict: Verdict
    how: str = ""
    detail: str = ""
    examples: int = 0
    seconds: float = 0.0
    total: float = 0.0
    operators: int | None = None
    rewrite: str = ""
    differing: int = 0
    compared: int = 0
    text: str = ""


def operators(module: ModuleOp) -> int:
    """How many operations of a program compute, move or choose: without what only holds them."""
    return sum(not _is_frame(op) for op in module.walk())


_FRAME = (
    ModuleOp,
    func.FuncOp,
    nn.StateOp,
    nn.LoadOp,
    nn.ConstantOp,
    partition.StateOp,
    partition.LoadOp,
    partition.ConstantOp,
    tile.ComputeSetOp,
    Variable,
    Superstep,
    Sync,
    HostInput,
    HostOutput,
)


def _is_frame(op: Operation) -> bool:
    return isinstance(op, _FRAME) or op.has_trait(IsTerminator)


# In the parent


@dataclass
class Running:
    """A trial that is going on in a process. reads: what it will tell comes here."""

    mutant: Mutant
    process: int
    reads: int
    end: float
    folder: Path
    output: bytes = b""

    def feed(self) -> bool:
        """Take what has come; whether that was the last of it."""
        more = os.read(self.reads, 1 << 16)
        self.output += more
        return not more

    def kill(self) -> None:
        """End it now."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)

    def result(self) -> Trial:
        """The result of the trial, once its process has written all or was killed."""
        os.close(self.reads)
        _, status, used = os.wait4(self.process, 0)
        rmtree(self.folder, ignore_errors=True)
        total = used.ru_utime + used.ru_stime
        if self.output:
            return replace(Trial(**cast(dict[str, Any], json.loads(self.output))), total=total)
        how = "hang" if monotonic() > self.end else "killed"
        return Trial("found", how, f"its process ended with status {status}", 0, total, total)


def start(mutant: Mutant, known: Sequence[Case], level: str, budget: Budget) -> Running:
    """Begin the trial of a mutant in a process of its own.

    known: what the right pass makes of programs; where there are none, nothing is compared.
    """
    reads, writes = os.pipe()
    folder = Path(mkdtemp(prefix="abele-mutant-"))
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        _child(reads, writes, lambda: _tried(mutant, known, level, budget, folder), budget)
    os.close(writes)
    end = monotonic() + SLOWER * _most(budget)
    return Running(mutant, process, reads, end, folder)


def _most(budget: Budget) -> float:
    # The difference is looked for first, then the bug; then the program is made small.
    return 3 * budget.seconds + shrink.SHRINKING + 2 * LIMIT + PATIENCE


def _child(reads: int, writes: int, work: Callable[[], Trial], budget: Budget) -> None:
    """Never returns: what the parent goes on with is not this process's business."""
    try:
        os.close(reads)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        seconds = int(process_time() + _most(budget))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        memory = _address_space() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        with suppress(OSError):
            SACRIFICE.write_text("1000")
        try:
            trial = work()
        except BaseException:
            trial = Trial("found", "kit", format_exc())
        with os.fdopen(writes, "wb") as stream:
            stream.write(json.dumps(asdict(trial)).encode())
    finally:
        os._exit(0)


# In the child


def _address_space() -> int:
    """Bytes that this process has mapped; 0 where nothing says so."""
    try:
        pages = SIZES.read_text().split()[0]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _tried(
    mutant: Mutant, known: Sequence[Case], level: str, budget: Budget, folder: Path
) -> Trial:
    try:
        wrong = mutant.make()
    except InputError as error:
        return Trial("refused", "rules", str(error).partition("\n")[0])
    except Exception as error:
        return Trial("found", "raised", f"it cannot be loaded: {type(error).__name__}: {error}")
    looked = compared(wrong, known, budget, first=True)
    is_same = bool(known) and not looked.programs
    if is_same and looked.of == len(known):
        return Trial("same", compared=looked.of)
    trial = checked(wrong, level, budget, folder)
    if trial.verdict == "found":
        return trial
    if is_same:
        # As far as there was time to compare.
        return replace(trial, verdict="same", compared=looked.of)
    found = compared(wrong, known, budget)
    return replace(
        trial, how=found.how, differing=found.programs, compared=found.of, text=found.text
    )


_HOW: dict[type | None, str] = {TooLong: "hang", Refuses: "refuses"}
"""What it is called that a pass has failed."""


def checked(tested: ModulePass, level: str, budget: Budget, folder: Path) -> Trial:
    """What the kit says of a pass, within a budget of CPU time.

    Abele's own are held to their contracts too; a user's pass may refuse what it likes.
    """
    report = Report()
    begin = process_time()
    held = takes_all(tested) if tested.name in PASSES else tested

    def apply(ctx: Context, op: ModuleOp) -> None:
        # While a program is made small the report has its seconds already.
        if not report.seconds and process_time() - begin > budget.seconds:
            raise Spent
        held.apply(ctx, op)

    options: CheckOptions = {
        **budget.options(),
        "relation": goes_on(type(tested)),
        "folder": folder,
        "report": report,
    }
    try:
        # A mutant may change nothing.
        with catch_warnings(action="ignore"):
            check_pass(acting_as(tested, apply), level, **options)
    except Miscompiled as found:
        small = found.program.module
        detail = f"{found.wrong.kind}: {found.wrong.text}"
        trial = Trial("found", found.wrong.kind, detail, operators=operators(small))
        trial = replace(trial, text=repr(found.program), rewrite=found.rewrite)
    except PassFailed as found:
        how = _HOW.get(type(found.__cause__), "raised")
        trial = Trial("found", how, found.problem, operators=operators(found.program.module))
        trial = replace(trial, text=repr(found.program))
    except InputError as error:
        trial = Trial("found", "refuses", str(error))
    except MemoryError:
        trial = Trial("found", "memory", "there was not enough memory")
    except Spent:
        trial = Trial("survived")
    else:
        trial = Trial("survived")
    # A program that the pass has failed on is no example, but was looked at.
    examples = report.examples + (trial.how in ("raised", *_HOW.values()))
    return replace(trial, examples=examples, seconds=report.cpu_seconds)
