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
from selectors import EVENT_READ, DefaultSelector
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic, process_time
from traceback import format_exc
from typing import Any, Literal, cast

from xdsl.dialects import func
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from ....dialects import nn, partition, tile
from ....dialects.levels import NN, OWN_LEVELS, PARTITION
from ....dialects.steps import Input, Output, Superstep, Sync
from ....dialects.variable import Variable
from ....ir.pass_manager import load_pass
from ....ir.support.errors import InputError
from ....ir.upstream import Context, ModuleOp, ModulePass
from ....passes.pipelines import DOWN, PASSES, STAGE
from ..generators.levels import level_before
from ..limits import TooLong
from ..oracle.relations import Relation
from ..search import shrink
from ..search.contracts import WronglyRefused, contracts_of, must_accept_all, with_apply
from ..search.failures import Miscompiled, PassFailed
from ..search.pass_check import check_pass
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

    Attributes:
        how: how the mutant was found: a kind of Wrong, or "raised", "refuses", "memory", "killed",
            "hang", "rules" or "kit". If it was not found, how the first program differs (see
            compare).
        detail: what is wrong, in words.
        examples: number of programs until it was found, or of all programs.
        seconds: CPU time until it was found, without shrinking.
        total: CPU time of the whole trial.
        operators: number of operators of the smallest failing program.
        blamed: the pass that the kit names.
        rewrite: the rewrite that bisection blames.
        clean: what is wrong with the reproducer on the passes without the bug; "" if nothing is.
        differing, compared: number of programs whose result differs from that of the original pass,
            and number of programs compared. Only for mutants that were not found.
        text: the failing program, or the first program that differs, with the difference.
    """

    verdict: Verdict
    how: str = ""
    detail: str = ""
    examples: int = 0
    seconds: float = 0.0
    total: float = 0.0
    operators: int | None = None
    blamed: str = ""
    rewrite: str = ""
    clean: str = ""
    differing: int = 0
    compared: int = 0
    text: str = ""


def operators(module: ModuleOp) -> int:
    """The number of operations of a program that compute, move or select.

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
    Superstep,
    Sync,
    Input,
    Output,
)


def _only_holds_others(op: Operation) -> bool:
    return isinstance(op, _NOT_COUNTED) or op.has_trait(IsTerminator)


# In the parent


@dataclass
class Running:
    """A trial that runs in a process.

    Attributes:
        process: its id.
        pipe: the file descriptor of its result.
        end: the time of killing it, in seconds of monotonic().
        folder: the folder of its files.
        inspect: returns the failure of the saved reproducer on the passes without the bug, or "".
        output: the bytes read so far.
    """

    mutant: Mutant
    process: int
    pipe: int
    end: float
    folder: Path
    inspect: Inspect
    output: bytes = b""

    def read_output(self) -> bool:
        """Read the available output. Returns whether it is complete."""
        more = os.read(self.pipe, 1 << 16)
        self.output += more
        return not more

    def finished(self) -> Trial:
        """The result of the trial, once it has ended or is late."""
        try:
            with DefaultSelector() as selector:
                selector.register(self.pipe, EVENT_READ)
                while selector.select(max(0.0, self.end - monotonic())):
                    if self.read_output():
                        break
                else:
                    self.kill()
        except BaseException:
            self.kill()
            self.output = b""
            _ = self.result()
            raise
        return self.result()

    def kill(self) -> None:
        """Kill the process."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)

    def result(self) -> Trial:
        """The result of the trial. Call it once the output is complete or the process is killed."""
        os.close(self.pipe)
        _, status, used = os.wait4(self.process, 0)
        total = used.ru_utime + used.ru_stime
        try:
            if self.output:
                trial = Trial(**cast(dict[str, Any], json.loads(self.output)))
                clean = self.inspect(self.folder) if trial.operators is not None else ""
                return replace(trial, total=total, clean=clean)
        finally:
            rmtree(self.folder, ignore_errors=True)
        how = "hang" if monotonic() > self.end else "killed"
        return Trial("found", how, f"its process ended with status {status}", 0, total, total)


Check = Callable[[ModulePass, str, Budget, Path], Trial]
"""Checks a pass on programs of a level within a budget, and saves a failure in a folder."""

Inspect = Callable[[Path], str]
"""Returns the failure of a saved reproducer in words, or ""."""


def _nothing_wrong(folder: Path) -> str:
    return ""


def start(
    mutant: Mutant,
    known: Sequence[Case],
    level: str,
    budget: Budget,
    check: Check | None = None,
    inspect: Inspect = _nothing_wrong,
) -> Running:
    """Start the trial of a mutant in a process of its own.

    Args:
        known: programs with the results of the original pass; if empty, nothing is compared.
        check: the function that tests the mutant; check_mutant if None.
        inspect: runs in this process on the saved reproducer.
    """
    check = check or check_mutant
    reads, writes = os.pipe()
    folder = Path(mkdtemp(prefix="abele-mutant-"))
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        _run_child(
            reads, writes, lambda: _trial(mutant, known, level, budget, folder, check), budget
        )
    os.close(writes)
    end = monotonic() + CLOCK_PER_CPU * _most_cpu_seconds(budget)
    return Running(mutant, process, reads, end, folder, inspect)


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
    """The number of bytes that this process has mapped; 0 if the system does not report it."""
    try:
        pages = MEMORY_SIZES.read_text().split()[0]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _trial(
    mutant: Mutant,
    known: Sequence[Case],
    level: str,
    budget: Budget,
    folder: Path,
    check: Check,
) -> Trial:
    """Compare a mutant with the original pass, and check it unless all its outputs are the same."""
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
    trial = check(wrong, level, budget, folder)
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
"""The way in which a pass failed, by the type of its error; "raised" for any other error."""


def check_mutant(tested: ModulePass, level: str, budget: Budget, folder: Path) -> Trial:
    """Check a pass with the kit, within a budget of CPU time.

    A pass of abele must accept all programs of its level. A user's pass may refuse some.
    """
    insistent = must_accept_all(tested) if tested.name in PASSES else tested
    relations = contracts_of(type(tested))
    return _checked(insistent, lambda wrong: [wrong], level, relations, budget, folder)


def check_among(tested: ModulePass, level: str, budget: Budget, folder: Path) -> Trial:
    """Check the default pipeline with the tested pass in its place, within a budget of CPU time.

    The pipeline begins with the part that the pass belongs to, on random programs. The other passes
    are correct.
    """
    stage = STAGE.get(tested.name, NN)
    own = [] if stage == PARTITION else [each.partition("{")[0] for each in DOWN[stage]]
    at = own.index(tested.name) if tested.name in own else 0
    later = [str(each) for each in OWN_LEVELS[OWN_LEVELS.index(stage) + 1 :]]

    def passes(wrong: ModulePass) -> list[ModulePass | str]:
        return [*own[:at], wrong, *own[at + (tested.name in own) :], *later]

    first = load_pass(own[0], PASSES) if own else type(tested)
    return _checked(tested, passes, level_before(first), (), budget, folder)


def _checked(
    tested: ModulePass,
    among: Callable[[ModulePass], Sequence[ModulePass | str]],
    level: str,
    relations: Sequence[Relation],
    budget: Budget,
    folder: Path,
) -> Trial:
    report = Report()
    begin = process_time()

    def apply(ctx: Context, op: ModuleOp) -> None:
        # The report has its seconds once the search ends. Shrinking has a limit of its own.
        if not report.seconds and process_time() - begin > budget.seconds:
            raise OutOfTime
        tested.apply(ctx, op)

    options: CheckOptions = {
        **budget.options(),
        "relation": relations,
        # A mutant may change nothing.
        "expect_changes": False,
        "folder": folder,
        "report": report,
    }
    try:
        check_pass(among(with_apply(tested, apply)), level, **options)
    except Miscompiled as found:
        small = found.program.module
        detail = f"{found.wrong.kind}: {found.wrong.text}"
        trial = Trial("found", found.wrong.kind, detail, operators=operators(small))
        trial = replace(trial, text=repr(found.program), rewrite=found.rewrite, blamed=found.blamed)
    except PassFailed as found:
        how = _HOW.get(type(found.__cause__), "raised")
        trial = Trial("found", how, found.problem, operators=operators(found.program.module))
        trial = replace(trial, text=repr(found.program), blamed=found.name)
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
