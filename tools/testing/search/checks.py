"""Passes and pipelines, tested on generated programs.

Each program is run before and after. What it computed before, and how far a right program may be
from that, is the oracle's business; here it is decided what is run, for how long, and what is
told when something is wrong: the pass, the program made small, and how to see it again.
"""

from __future__ import annotations

import os
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from random import Random
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from ....backends.target import DEFAULT_TARGET
from ....dialects.levels import legal_ops
from ....dialects.partition import PartitionTensor
from ....dialects.program import verify_symbols
from ....ir.equal import same_program
from ....ir.errors import DoesNotFit, InputError
from ....ir.garbage import set_aside
from ....ir.pass_manager import parse_pipeline
from ....ir.rewriting import limited
from ....ir.text import blobs_of, parse_module, print_module
from ....ir.upstream import ModuleOp, ModulePass, VerifyException
from ....ir.verify import verify, verify_legal
from ....passes.pipelines import PASSES, ROUNDS, expand
from ...driver.program import level_of
from ..generators.build import build, default_operators
from ..generators.levels import at_level
from ..generators.program import Program
from ..generators.sketch import Sketch, Step, random_sketch
from ..oracle.oracles import Outcome, apart, coarseness, difference, narrowed_run, run
from ..oracle.relations import NotApplicable, Relation, expected_of, name_of
from ..rules.watch import Counts, watching_rules
from .blame import blamed_rewrite, unfinished_rewrite
from .failures import AtFault, Miscompiled, PassFailed, RelationFailed, StrategyFailed, Wrong
from .failures import said as said_of
from .failures import told as told_of
from .focus import about, named_operators, programs_of_rules
from .limits import TooLong, at_most, guarded
from .record import recorded_passes, recorded_relations, replay_command, replay_record
from .shrink import Fails, smallest

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Passes: TypeAlias = "ModulePass | str | Sequence[ModulePass | str]"
"""A pass, a pipeline as abele opt -p takes it, or some of both: ("nn", MyPass(), "partition")."""

Relations: TypeAlias = "Relation | Sequence[Relation] | None"
"""What must hold beside the results: see relations."""

EXAMPLES = 100
LIMIT = 20.0
"""Seconds that one program may take, all in all."""
STUCK = 3
"""How many of these limits until the process is ended, where it cannot be cut off."""
SHRINKING = 20.0
"""Seconds that a failing program is made smaller for."""
HURRIED, SLOWER = 0.25, 4
"""A smaller program may take so many seconds, and so many times what the failing one took."""
LOOK_TWICE = 8
"""Of so many programs, one is compiled and run twice, to see whether the same comes out."""
READ_BACK = 6
"""Of so many programs, one is printed and read again, which takes as long as all else."""
FEW_PASSES = 3
"""What so many passes speak of is looked for in programs."""
REFUSALS = 50
"""If a pass has refused so many programs and taken none, it cannot be tested by them."""


@dataclass
class Report:
    """What a check has looked at.

    examples: programs that were run. refused: those that a pass would not take, or that did not fit
    the machine. changed: those that it made something else of. undecided: those of which nothing
    follows, since a branch hung on rounding. seconds, cpu_seconds: until the end, or until
    something wrong was found: making that small is not counted. exercised: how many programs had an
    operation, by its name, level and element type. fired, guards: how often each rule has, and each
    guard was answered so, by the rule's name, the guard's text and the answer. held, skipped: by
    the name of a relation, the programs of which it held, and those of which it says nothing.
    """

    examples: int = 0
    refused: int = 0
    changed: int = 0
    undecided: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    exercised: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    fired: Counter[str] = field(default_factory=Counter[str])
    guards: Counter[tuple[str, str, bool]] = field(default_factory=Counter[tuple[str, str, bool]])
    held: Counter[str] = field(default_factory=Counter[str])
    skipped: Counter[str] = field(default_factory=Counter[str])

    def __str__(self) -> str:
        related = "".join(
            f", {name} held of {self.held[name]} and skipped {self.skipped[name]}"
            for name in dict.fromkeys((*self.held, *self.skipped))
        )
        return (
            f"{self.examples} programs in {self.seconds:.1f} s, {self.changed} changed, "
            f"{self.refused} refused, {self.undecided} undecided{related}"
        )


def check_pass(
    tested: Passes,
    level: str = "nn",
    *,
    examples: int | None = None,
    seconds: float | None = None,
    programs: SearchStrategy[Program] | None = None,
    relation: Relations = None,
    results: bool = True,
    rounded_once: bool = True,
    seed: int | None = None,
    limit: float = LIMIT,
    folder: Path | None = None,
    command: str = "",
    report: Report | None = None,
) -> Report:
    """Run generated programs of a level before and after a pass; all results must be the same.

    tested: the pass, or its name. examples: how many programs. seconds: after these no more are
    begun. programs: a strategy of programs; any of the level if None. relation: what must hold
    beside, one or several (see relations). results: whether results are compared at all; with False
    a relation stands alone. rounded_once: whether a result of fewer than 32 bits must be as near as
    what is computed in 32 bits and rounded once; False allows passes to round on the way. seed: of
    the programs; any if None, but 0 where the environment has CI. limit: seconds for one program.
    folder: where a failing program is saved; a new temporary folder if None. command: what replays
    it, FOLDER standing for that; found out if "". report: filled in as the check goes on, and there
    also where it raises; a new one if None.
    A pass of ROUNDS may move results by as much as the casts of what it leaves do, and may round on
    the way; elsewhere results move no further than the program's own operations allow.
    Raises Miscompiled if a program means something else afterwards, does not verify, cannot be
    run, or cannot be printed and read again, or if a relation does not hold; PassFailed if the pass
    raises or hangs, RelationFailed and StrategyFailed if a relation or what makes the programs
    does; InputError if it refuses every program.
    """
    plan = _Check(
        _passes(tested),
        level,
        _relations(relation),
        results,
        rounded_once,
        limit,
        folder,
        command,
        report or Report(),
    )
    return plan.all(programs, examples, seconds, seed)


def check_pipeline(
    tested: Passes = "nn,partition,tile,exchange",
    level: str = "nn",
    *,
    examples: int | None = None,
    seconds: float | None = None,
    programs: SearchStrategy[Program] | None = None,
    relation: Relations = None,
    results: bool = True,
    rounded_once: bool = True,
    seed: int | None = None,
    limit: float = LIMIT,
    folder: Path | None = None,
    command: str = "",
) -> Report:
    """Run generated programs before and after a whole pipeline, and name the pass that is wrong.

    tested: passes, or their names as abele opt -p takes them; a level stands for the passes that
    end there, each program being compiled for its own machine. Otherwise as check_pass.
    """
    plan = _Check(
        _passes(tested), level, _relations(relation), results, rounded_once, limit, folder, command
    )
    return plan.all(programs, examples, seconds, seed)


def _passes(tested: Passes) -> tuple[ModulePass | str, ...]:
    """What is tested, one by one. Raises InputError for a text that is no pipeline."""
    given = (tested,) if isinstance(tested, ModulePass | str) else tuple(tested)
    for each in given:
        if isinstance(each, str):
            _parsed(each, DEFAULT_TARGET)
    return given


@lru_cache(maxsize=256)
def _parsed(text: str, target: str) -> tuple[ModulePass, ...]:
    return parse_pipeline(expand(text, target), PASSES)


def _relations(given: Relations) -> tuple[Relation, ...]:
    if given is None:
        return ()
    return (given,) if callable(given) else tuple(given)


class _Found(BaseException):
    """Ends a search: no Exception, so that Hypothesis hands it on at once."""

    def __init__(self, program: Program, wrong: Wrong | AtFault) -> None:
        super().__init__()
        self.program = program
        self.wrong = wrong


class _Enough(BaseException):
    """The time for a search is over."""


class Refused(Exception):
    """A pass does not take a program, and says why: there is nothing to be compared."""


@dataclass
class _Check:
    """What is checked, and how. first: of the passes, how many; rewrites: of each pass, how many;
    all if None. doing: what takes so long, if something does."""

    tested: tuple[ModulePass | str, ...]
    level: str
    relations: tuple[Relation, ...] = ()
    results: bool = True
    rounded_once: bool = True
    limit: float = LIMIT
    folder: Path | None = None
    command: str = ""
    report: Report = field(default_factory=Report)
    refusal: str = ""
    first: int | None = None
    rewrites: int | None = None
    doing: str = ""

    def passes(self, program: Program) -> tuple[ModulePass, ...]:
        """The passes for one program, which has a target of its own."""
        target = program.target.spelling()
        passes = ((e,) if isinstance(e, ModulePass) else _parsed(e, target) for e in self.tested)
        return tuple(chain.from_iterable(passes))[: self.first]

    def only(self, **what: Any) -> _Check:
        """A check of something less, which counts for itself and saves nothing."""
        return replace(self, **{"report": Report(), "folder": None, "command": "", **what})

    # All programs

    def all(
        self,
        programs: SearchStrategy[Program] | None,
        examples: int | None,
        seconds: float | None,
        seed: int | None,
    ) -> Report:
        """Look at so many programs, or for so long."""
        count = examples or (1_000_000 if seconds is not None else EXAMPLES)
        begin, cpu = monotonic(), process_time()
        end = None if seconds is None else begin + seconds
        found: _Found | None = None
        try:
            with set_aside():
                _generate(
                    programs, self.level, count, seed, self._focus(), lambda p: self._one(p, end)
                )
        except _Enough:
            pass
        except _Found as wrong:
            found = wrong
        finally:
            self.report.seconds = monotonic() - begin
            self.report.cpu_seconds = process_time() - cpu
        if found is not None:
            self._tell(found.program, found.wrong)
        if self.report.examples == 0 and self.report.refused:
            raise InputError(f"no program was taken, of {self.report.refused}: {self.refusal}")
        if self.report.examples and not self.report.changed:
            warnings.warn(
                f"none of {self.report.examples} programs was changed, so that little was tested; "
                "name what is looked for, as in programs=programs(operators=[nn.ReluOp, ...])",
                stacklevel=3,
            )
        return self.report

    def _focus(self) -> tuple[ModulePass, ...]:
        """The passes that programs are to be about; a long pipeline speaks of all there is."""
        passes = (
            (e,) if isinstance(e, ModulePass) else _parsed(e, DEFAULT_TARGET) for e in self.tested
        )
        known = tuple(chain.from_iterable(passes))
        return known if self.level == "nn" and len(known) <= FEW_PASSES else ()

    def _one(self, program: Program, end: float | None) -> bool:
        """Look at one program; whether the passes have changed it."""
        if end is not None and monotonic() > end:
            raise _Enough
        changed = self.report.changed
        try:
            wrong = self.wrong(program)
        except Refused as refused:
            self.report.refused += 1
            self.refusal = str(refused)
            if self.report.refused >= REFUSALS and not self.report.examples:
                raise _Enough from None
            return False
        except AtFault as failed:
            raise _Found(program, failed) from None
        self.report.examples += 1
        self.report.exercised.update(set(exercised(program.module)))
        if wrong is not None:
            raise _Found(program, wrong)
        return self.report.changed > changed

    # One program

    def wrong(self, program: Program) -> Wrong | None:
        """What is wrong with a program after the passes; None if nothing is.

        Raises Refused, AtFault, and StrategyFailed for a program that cannot be run as it is.
        """
        try:
            with (
                guarded(STUCK * self.limit, lambda: self._last_words(program)),
                at_most(self.limit),
            ):
                return self._looked_at(program)
        except TooLong as late:
            return Wrong("hang", f"{self.doing} is not done after {self.limit:g} s ({late})")

    def _last_words(self, program: Program) -> str:
        """What is said where the process has to end."""
        folder, command = self._saved(program, self, "hang")
        late = f"{self.doing} is not done after {STUCK * self.limit:g} s, and does not come back"
        names = ", ".join(each.name for each in self.passes(program))
        return "\n".join([f"passes {names}: {late}", "", *told_of(program, folder, command)])

    def _looked_at(self, program: Program) -> Wrong | None:
        twice = _is_nth(program, LOOK_TWICE)
        self.doing = "compiling the program"
        after = self._compiled(program)
        self.doing = "printing and reading the program"
        problem = invalid(after.module)
        if problem is None and _is_nth(program, READ_BACK):
            problem = unreadable(after)
        if problem is not None:
            return problem
        # What is the same means the same.
        looked = twice
        if not same_program(after.module, program.module):
            self.report.changed += 1
            looked = True
        if twice:
            self.doing = "compiling the program again"
            again = self._compiled(program)
            if print_module(again.module) != print_module(after.module):
                return Wrong("random", "two runs of the pass have given different programs")
        problem = self._differs(program, after, twice) if looked and self.results else None
        return problem or self._unrelated(program, after)

    def _differs(self, program: Program, after: Program, twice: bool) -> Wrong | None:
        self.doing = "running the program as it was before"
        expected = self._expected(program)
        rounds = any(each.name in ROUNDS for each in self.passes(program))
        if rounds:
            self.doing = "bounding what it has become"
            expected = apart(expected, narrowed_run(after))
        self.report.undecided += not expected.decided
        self.doing = "running the program"
        return disagreement(expected, after, twice, self.rounded_once and not rounds)

    def _unrelated(self, program: Program, after: Program) -> Wrong | None:
        """The first relation that does not hold."""
        for relation in self.relations:
            name = name_of(relation)
            self.doing = f"asking {name}"
            try:
                said = relation(program, after, self._compiled)
            except (NotApplicable, Refused):
                self.report.skipped[name] += 1
                continue
            except (AtFault, MemoryError):
                raise
            except Exception as error:
                raise RelationFailed(program, name, f"raised {said_of(error)}") from error
            if said is not None:
                return Wrong("relation", f"{name} does not hold: {said}", name)
            self.report.held[name] += 1
        return None

    def _expected(self, program: Program) -> Outcome:
        source = program if program.source is None else _of_source(program)
        try:
            return expected_of(source)
        except (InputError, DoesNotFit) as error:
            raise Refused(str(error)) from None
        except MemoryError:
            raise
        except Exception as error:
            problem = f"has made a program that cannot be run before any pass ({said_of(error)})"
            raise StrategyFailed(problem, source) from error

    def _compiled(self, program: Program) -> Program:
        """The program after all passes. Raises Refused and PassFailed."""
        after = program.clone()
        for each in self.passes(program):
            with nullcontext() if self.rewrites is None else limited(self.rewrites):
                apply(each, after, program, self.limit, self.report)
        return after

    # What is told

    def _tell(self, program: Program, wrong: Wrong | AtFault) -> None:
        """Make a failing program small, find out who did it, save it, and raise."""
        if isinstance(wrong, AtFault):
            raise self._at_fault(program, wrong)
        if wrong.kind == "relation":
            wanted = tuple(r for r in self.relations if name_of(r) == wrong.relation)
            before, alone = (
                program,
                self._first_that(program, self.only(relations=wanted, results=False)),
            )
        else:
            before, alone = self._first_wrong(program)
        begin = process_time()
        wrong = alone.wrong(before) or wrong
        small = _smallest(before, self.level, _fails_like(alone._hurried(begin, wrong), wrong))
        wrong = alone.wrong(small) or wrong
        blamed = alone.passes(small)[-1]
        folder, command = self._saved(small, alone, wrong.kind)
        raise Miscompiled(
            small,
            wrong,
            tuple(each.name for each in self.passes(program)),
            blamed.name,
            _rewrite(alone, small, blamed, wrong),
            folder,
            command,
            self.report.examples,
        )

    def _hurried(self, begin: float, wrong: Wrong) -> _Check:
        """This check for smaller programs, which should take no longer than the one looked at since
        then: what is left out of a loop may make it endless."""
        if wrong.kind == "hang":
            return self
        return self.only(limit=min(self.limit, HURRIED + SLOWER * (process_time() - begin)))

    def _saved(self, program: Program, check: _Check, kind: str) -> tuple[Path, str]:
        folder = self.folder or Path(tempfile.mkdtemp(prefix="abele-failure-"))
        record = replay_record(check.tested, kind, check.relations) | {"first": check.first}
        program.save(folder, record)
        command = replay_command(folder, record)
        return folder, self.command.replace("FOLDER", str(folder)) if self.command else command

    def _first_wrong(self, program: Program) -> tuple[Program, _Check]:
        """The first of the passes after which something is wrong: the program before it, of
        whatever level the passes have led to, and a check of that pass alone."""
        passes = self.passes(program)
        before = program
        for each in passes:
            alone = self.only(tested=(each,), level=before.level, relations=(), first=None)
            try:
                found = alone.wrong(before)
            except Refused:
                found = None
            if found is not None:
                return before, alone
            after = before.clone()
            apply(each, after, before, self.limit)
            after.source = before.source or program.module
            after.sketch = None
            before = after
        # Each alone is right: it is only from the beginning that it is too far away.
        return program, self._first_that(program, self.only(relations=()))

    def _first_that(self, program: Program, check: _Check) -> _Check:
        """The check of the fewest passes, from the first on, after which something is wrong."""
        count = len(self.passes(program))
        for first in range(1, count):
            some = check.only(first=first)
            try:
                if some.wrong(program) is not None:
                    return some
            except Refused:
                continue
        return check.only(first=count)

    def _at_fault(self, program: Program, failed: AtFault) -> AtFault:
        check = self.only()

        def alike(candidate: Program) -> bool:
            try:
                check.wrong(candidate)
            except AtFault as other:
                return (type(other), type(other.__cause__)) == (
                    type(failed),
                    type(failed.__cause__),
                )
            except (Refused, StrategyFailed):
                return False
            return False

        small = _smallest(program, self.level, alike)
        if not alike(small):
            return failed
        rewrite = self._unfinished(small, failed.name)
        folder, command = self._saved(small, check, failed.what)
        told = type(failed)(small, failed.name, failed.problem, folder, command, rewrite)
        told.__cause__ = failed.__cause__
        return told

    def _unfinished(self, program: Program, name: str) -> str:
        """The rewrite that a pass of that name was at when it failed; "" if that is not known."""
        before = program.clone()
        try:
            for each in self.passes(program):
                if each.name == name:
                    with at_most(self.limit):
                        found = unfinished_rewrite(each, before)
                    return "" if found is None else str(found)
                apply(each, before, program, self.limit)
        except (Refused, AtFault, TooLong):
            pass
        return ""


def replay(
    folder: Path,
    tested: Passes,
    level: str = "nn",
    *,
    relation: Relations = None,
    results: bool = True,
    rounded_once: bool = True,
    limit: float = LIMIT,
    **budget: object,
) -> None:
    """Check passes on the one program that was saved in a folder.

    budget: what check_pass takes beside, which is of no use here. Raises as check_pass, and
    InputError.
    """
    program, _ = Program.load(folder)
    check = _Check(
        _passes(tested), level, _relations(relation), results, rounded_once, limit, folder
    )
    try:
        wrong = check.wrong(program)
    except Refused as refused:
        raise InputError(f"{folder}: {refused}") from None
    if wrong is not None:
        passes = check.passes(program)
        names = tuple(each.name for each in passes)
        raise Miscompiled(program, wrong, names, names[-1], "", folder)


def replayed(program: Program, record: Mapping[str, object]) -> Wrong | None:
    """What is wrong with a saved program, as its record says; None if nothing is.

    Raises InputError for a record that cannot be read, and AtFault.
    """
    relations = recorded_relations(record)
    first = record.get("first")
    check = _Check(
        recorded_passes(record),
        program.level,
        relations,
        results=not relations,
        first=first if isinstance(first, int) else None,
    )
    try:
        return check.wrong(program)
    except Refused:
        return None


def _smallest(program: Program, level: str, fails: Fails) -> Program:
    try:
        return smallest(program, level, fails, SHRINKING)
    except ValueError:
        # What fails now and then may not fail when it is looked at again.
        return program


def _fails_like(check: _Check, wrong: Wrong) -> Fails:
    def fails(program: Program) -> bool:
        try:
            found = check.wrong(program)
        # A smaller program that fails in another way is another one.
        except (Refused, AtFault, StrategyFailed, InputError, VerifyException):
            return False
        return found is not None and found.kind == wrong.kind

    return fails


def _rewrite(alone: _Check, program: Program, blamed: ModulePass, wrong: Wrong) -> str:
    """The rewrite that does it; "" where that cannot be told."""
    # A relation runs the passes more than once; a hang takes as long each time.
    if wrong.kind in ("relation", "hang"):
        return ""

    def is_wrong(rewrites: int) -> bool:
        return alone.only(rewrites=rewrites).wrong(program) is not None

    try:
        with at_most(LIMIT):
            found = blamed_rewrite(blamed, program, is_wrong)
    except (TooLong, Refused, AtFault, InputError, DoesNotFit):
        return ""
    return "" if found is None else str(found)


# One program


def apply(
    each: ModulePass, after: Program, before: Program, limit: float, counts: Counts | None = None
) -> None:
    """Run a pass on a program in place. before: what it is told of if that fails. counts: of what
    its rules do.

    Raises Refused where it does not take the program, and PassFailed.
    """
    try:
        with at_most(limit / 2), nullcontext() if counts is None else watching_rules(counts):
            each.apply(after.context, after.module)
    except (InputError, DoesNotFit) as error:
        raise Refused(f"{each.name}: {error}") from None
    except TooLong as late:
        raise PassFailed(before, each.name, f"is not done after {limit / 2:g} s") from late
    except MemoryError:
        raise
    except Exception as error:
        raise PassFailed(before, each.name, f"raised {said_of(error)}") from error


def invalid(module: ModuleOp) -> Wrong | None:
    """Why a module does not verify; None if it does."""
    try:
        verify(module)
        verify_symbols(module)
    except VerifyException as error:
        return Wrong("invalid", f"the program does not verify: {error}")
    return None


def unreadable(program: Program) -> Wrong | None:
    """Why a program's text does not read as the program; None if it does."""
    text = print_module(program.module)
    for blob in blobs_of(program.module):
        program.context.blobs.add(blob)
    try:
        again = print_module(parse_module(text, program.context))
    except InputError as error:
        return Wrong("text", f"its text cannot be read: {error}")
    if again == text:
        return None
    pairs = zip(text.splitlines(), again.splitlines(), strict=False)
    line = next((f"{a!r} is read as {b!r}" for a, b in pairs if a != b), "lines are missing")
    return Wrong("text", f"its text reads as another program: {line}")


def disagreement(
    expected: Outcome, after: Program, twice: bool = False, rounded_once: bool = True
) -> Wrong | None:
    """What is wrong with the results of a program; None if they are what they have to be.

    twice: run it again, and want the same bits. rounded_once: want of narrow results what is
    computed in 32 bits. Raises Refused for one that is on several levels.
    """
    try:
        verify_legal(after.module, legal_ops(level_of(after.module)))
    except VerifyException as error:
        raise Refused(f"left on several levels: {error}") from None
    try:
        found = run(after, expected.known)
        again = run(after) if twice else found
    except MemoryError:
        raise
    except Exception as error:
        return Wrong("fault", f"the program cannot be run: {type(error).__name__}: {error}")
    differs = difference(expected, found)
    if differs is not None:
        return Wrong("value", str(differs))
    coarse = coarseness(expected, found) if rounded_once else None
    if coarse is not None:
        return Wrong("narrow", str(coarse))
    for name, array in found.outputs.items():
        if array.tobytes() != again.outputs[name].tobytes():
            return Wrong("random", f"{name}: two runs differ")
    return None


def _of_source(program: Program) -> Program:
    assert program.source is not None
    return Program(program.source, program.context, program.inputs, program.target)


def _is_nth(program: Program, n: int) -> bool:
    """Whether it is one of every n, whatever came before; any that is not generated is."""
    key = program.key if program.sketch is None else repr(program.sketch)
    return not key or zlib.crc32(key.encode()) % n == 0


def exercised(module: ModuleOp) -> Iterator[tuple[str, str, str]]:
    """Each operation of a module that computes: its name, its level and its element type."""
    for op in module.walk():
        level, _, _ = op.name.partition(".")
        if level in ("builtin", "func"):
            continue
        yield op.name, level, _element(op)


def _element(op: Operation) -> str:
    for value in (*op.results, *op.operands):
        type_ = value.type.tensor if isinstance(value.type, PartitionTensor) else value.type
        if isinstance(type_, TensorType):
            return _element_name(cast("TensorType[Attribute]", type_).element_type)
    return ""


@lru_cache(maxsize=256)
def _element_name(element: Attribute) -> str:
    return str(element)


# All programs


def _generate(
    programs: SearchStrategy[Program] | None,
    level: str,
    count: int,
    seed: int | None,
    passes: Sequence[ModulePass],
    look: Callable[[Program], bool],
) -> None:
    """Show so many programs to a function; what it raises comes out.

    passes: half of the programs are about them: have the left sides of their rules, or are of the
    operators that they name. look: tells whether the passes have changed the program.
    """
    if seed is None:
        seed = 0 if os.environ.get("CI") else Random().randrange(1 << 32)
    if programs is not None:
        _from_strategy(programs, count, seed, look)
        return
    operators = default_operators()
    steps: list[Step] = []
    spoken_of = named_operators(passes, operators)
    fitting = programs_of_rules(passes, operators, seed, LIMIT)
    for number in range(count):
        random = Random(f"{seed} {number}")
        made = next(fitting, None) if number % 4 == 3 else None
        if made is not None:
            made.key = f"{seed} {number}"
            look(made)
            continue
        sketch = random_sketch(random)
        if spoken_of and number % 2:
            sketch = about(sketch, spoken_of)
        elif steps and number % 4 in ((0,) if spoken_of else (1, 3)):
            sketch = _like(sketch, steps, random)
        program = at_level(build(sketch, operators), level)
        # Few programs may have what a pass looks for; those that it has changed did.
        if program is not None and look(program):
            steps += sketch.steps


def _like(sketch: Sketch, steps: Sequence[Step], random: Random) -> Sketch:
    """A sketch with some of the operators that others had."""
    mixed = (
        replace(random.choice(steps), seed=each.seed) if random.random() < 0.5 else each
        for each in sketch.steps
    )
    return replace(sketch, steps=tuple(mixed))


def _from_strategy(
    programs: SearchStrategy[Program], count: int, seed: int, look: Callable[[Program], bool]
) -> None:
    # A strategy is there, so Hypothesis is, which is an extra.
    import hypothesis  # noqa: PLC0415

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=[
            hypothesis.HealthCheck.too_slow,
            hypothesis.HealthCheck.filter_too_much,
            hypothesis.HealthCheck.data_too_large,
        ],
    )
    @hypothesis.given(programs)
    def each(program: object) -> None:
        try:
            look(_given(program))
        except Exception as error:
            raise _OfLook(error) from None

    try:
        each()
    except _OfLook as inner:
        raise inner.error from None
    # What is not of a look is of whoever has drawn the program.
    except Exception as error:
        raise StrategyFailed(f"raised {said_of(error)}") from error


class _OfLook(BaseException):
    """Takes an error through Hypothesis, which would hold it for the strategy's."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def _given(program: object) -> Program:
    """What a strategy has made, if that is a program. Raises StrategyFailed."""
    if not isinstance(program, Program):
        raise StrategyFailed(f"has made a {type(program).__name__}; need a Program")
    problem = invalid(program.module)
    if problem is not None:
        raise StrategyFailed(f"has made a program that is none: {problem.text}", program)
    return program
