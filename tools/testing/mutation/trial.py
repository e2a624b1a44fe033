"""A trial: the check of one mutant, in a process of its own so that it cannot end the study."""

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
from ....dialects.tile import InputOp, OutputOp, SuperstepOp, SyncOp
from ....dialects.variable import Variable
from ....ir.errors import InputError
from ....ir.upstream import Context, ModuleOp, ModulePass
from ....passes.pipelines import PASSES
from ..limits import TooLong
from ..search import shrink
from ..search.check import check_pass
from ..search.contracts import WronglyRefused, contracts_of, must_accept_all, with_apply
from ..search.failures import Miscompiled, PassFailed
from ..search.report import Report
from ..search.settings import LIMIT, CheckOptions
from .compare import Budget, Case, OutOfTime, compare
from .mutant import Mutant

Verdict = Literal["found", "survived", "same", "refused"]
"""found: the kit reports a failure. survived: the mutant changes the result of some program, and
the kit reports nothing. same: all programs compile to the same result. refused: the mutant cannot
be made, because the rule language rejects the mistake."""

MEMORY = 4 << 30
"""Bytes that a mutant may allocate, in addition to the memory that its process starts with."""

MEMORY_SIZES = Path("/proc/self/statm")
"""The file in which Linux shows the memory sizes of a process, in pages. The address space is
first."""

OUT_OF_MEMORY_SCORE = Path("/proc/self/oom_score_adj")
"""The file in which a process tells Linux to kill it first when memory runs out."""

EXTRA_SECONDS = 60.0
"""CPU seconds that a process may use in addition to the search and the shrinking."""

CLOCK_PER_CPU = 4
"""Clock seconds that a process may take for each of its CPU seconds, since others run beside it."""


@dataclass(frozen=True)
class Trial:
    """The result of a trial.

    how: how the mutant was found: a kind of Wrong, or "raised", "refuses", "memory", "killed",
    "hang", "rules" or "kit". If it was not found, how the first program differs (see compare).
    detail: what is wrong, in words.
    examples: number of programs until it was found, or of all programs.
    seconds: CPU time until it was found, without shrinking.
    total: CPU time of the whole trial.
    operators: number of operators of the smallest failing program.
    rewrite: the rewrite that bisection blames.
    differing, compared: number of programs whose result differs from that of the original pass, and
    number of programs compared. Only for mutants that were not found.
    text: the failing program, or the first program that differs, with the difference.
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
    """Number of operations of a program that compute, move or select.

    Functions, variables, supersteps, constants and other operations that only hold them or their
    data are not counted.
    """
    return sum(not _only_holds_others(op) for op in module.walk())


_NOT_COUNTED = (
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
    SuperstepOp,
    SyncOp,
    InputOp,
    OutputOp,
)


def _only_holds_others(op: Operation) -> bool:
    return isinstance(op, _NOT_COUNTED) or op.has_trait(IsTerminator)


# In the parent


@dataclass
class Running:
    """A trial that runs in a process.

    process: its id. pipe: the file descriptor that its result is read from. end: when to kill it,
    in seconds of monotonic(). folder: for its files. output: the bytes that have been read.
    """

    mutant: Mutant
    process: int
    pipe: int
    end: float
    folder: Path
    output: bytes = b""

    def read_output(self) -> bool:
        """Read the available output. Returns whether it is complete."""
        more = os.read(self.pipe, 1 << 16)
        self.output += more
        return not more

    def kill(self) -> None:
        """Kill the process."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)

    def result(self) -> Trial:
        """The result of the trial. Call it once the output is complete or the process is killed."""
        os.close(self.pipe)
        _, status, used = os.wait4(self.process, 0)
        rmtree(self.folder, ignore_errors=True)
        total = used.ru_utime + used.ru_stime
        if self.output:
            return replace(Trial(**cast(dict[str, Any], json.loads(self.output))), total=total)
        how = "hang" if monotonic() > self.end else "killed"
        return Trial("found", how, f"its process ended with status {status}", 0, total, total)


def start(mutant: Mutant, known: Sequence[Case], level: str, budget: Budget) -> Running:
    """Start the trial of a mutant in a process of its own.

    known: programs with the results of the original pass; if empty, nothing is compared.
    """
    reads, writes = os.pipe()
    folder = Path(mkdtemp(prefix="abele-mutant-"))
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        _run_child(reads, writes, lambda: _trial(mutant, known, level, budget, folder), budget)
    os.close(writes)
    end = monotonic() + CLOCK_PER_CPU * _most_cpu_seconds(budget)
    return Running(mutant, process, reads, end, folder)


def _most_cpu_seconds(budget: Budget) -> float:
    # A trial may use the budget three times: for a first difference, for the bug, and for counting
    # all differences. In addition, it shrinks the program.
    return 3 * budget.seconds + shrink.SHRINKING + 2 * LIMIT + EXTRA_SECONDS


def _run_child(reads: int, writes: int, work: Callable[[], Trial], budget: Budget) -> None:
    """Run a trial in the child process, write its result to the pipe, and exit.

    Never returns, so that the child does not continue with the parent's work.
    """
    try:
        os.close(reads)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        seconds = int(process_time() + _most_cpu_seconds(budget))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        memory = _address_space() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        with suppress(OSError):
            OUT_OF_MEMORY_SCORE.write_text("1000")
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
    """Bytes that this process has mapped; 0 if the system does not tell."""
    try:
        pages = MEMORY_SIZES.read_text().split()[0]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _trial(
    mutant: Mutant, known: Sequence[Case], level: str, budget: Budget, folder: Path
) -> Trial:
    """Compare a mutant with the original pass, and check it unless all its results are the same."""
    try:
        wrong = mutant.make()
    except InputError as error:
        return Trial("refused", "rules", str(error).partition("\n")[0])
    except Exception as error:
        return Trial("found", "raised", f"it cannot be loaded: {type(error).__name__}: {error}")
    first = compare(wrong, known, budget, first=True)
    is_same = bool(known) and not first.programs
    if is_same and first.of == len(known):
        return Trial("same", compared=first.of)
    trial = check_mutant(wrong, level, budget, folder)
    if trial.verdict == "found":
        return trial
    if is_same:
        # Only as many programs as there was time to compare.
        return replace(trial, verdict="same", compared=first.of)
    found = compare(wrong, known, budget)
    return replace(
        trial, how=found.how, differing=found.programs, compared=found.of, text=found.text
    )


_HOW: dict[type | None, str] = {TooLong: "hang", WronglyRefused: "refuses"}
"""How a pass has failed, by the error it has raised; "raised" for any other error."""


def check_mutant(tested: ModulePass, level: str, budget: Budget, folder: Path) -> Trial:
    """Check a pass with the kit, within a budget of CPU time.

    A pass of abele's must accept all programs of its level. A user's pass may refuse some.
    """
    report = Report()
    begin = process_time()
    insistent = must_accept_all(tested) if tested.name in PASSES else tested

    def apply(ctx: Context, op: ModuleOp) -> None:
        # The report has its seconds once the search ends. Shrinking has a limit of its own.
        if not report.seconds and process_time() - begin > budget.seconds:
            raise OutOfTime
        insistent.apply(ctx, op)

    options: CheckOptions = {
        **budget.options(),
        "relation": contracts_of(type(tested)),
        "folder": folder,
        "report": report,
    }
    try:
        # A mutant that changes nothing causes a warning.
        with catch_warnings(action="ignore"):
            check_pass(with_apply(tested, apply), level, **options)
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
    except OutOfTime:
        trial = Trial("survived")
    else:
        trial = Trial("survived")
    # The report does not count the program on which the pass itself failed.
    examples = report.examples + (trial.how in ("raised", *_HOW.values()))
    return replace(trial, examples=examples, seconds=report.cpu_seconds)
