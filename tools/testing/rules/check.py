"""Rules, tested on programs made from their own left side, and on those that they all but fit.

A rule has to fire wherever its text says that it fits, and the program must mean the same
afterwards; where its text says that it does not fit, it must not fire. What the text says is read
by reading.py, which shares nothing with the matcher.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, Literal, TypeAlias

from xdsl.ir import Operation

from ....dialects.levels import legal_ops
from ....ir.errors import DoesNotFit, InputError
from ....ir.garbage import set_aside
from ....ir.provenance import place
from ....ir.rewriting import Source, Watcher, watched
from ....ir.rules import PythonRule, RuleSet, RulesPass, Vocabulary, bind_python_rules
from ....ir.rules.evaluate import CallFailed
from ....ir.rules.law import Law
from ....ir.rules.load import load_rules
from ....ir.rules.match import match_law
from ....ir.upstream import ModuleOp, VerifyException
from ....ir.verify import verify
from ...driver.program import level_of
from ..generators.build import Operators, default_operators
from ..generators.program import Program
from ..generators.sketch import DATA, Data
from ..oracle.oracles import Outcome, bounded_run
from ..search.checks import LIMIT, SHRINKING, Refused, Report, disagreement, exercised, invalid
from ..search.failures import Wrong
from ..search.limits import TooLong, at_most
from ..search.shrink import smallest
from .faults import NeverFired, RuleFailed, RuleWrong
from .reading import Fit, fit, misfit
from .sources import SEARCHED, Sources, way_down
from .watch import watching_rules

Property: TypeAlias = Literal["keeps_the_meaning", "fires_only_where_it_fits"]
"""What is tested of a rule: programs from its left side, or those that it all but fits."""

PROPERTIES: tuple[Property, ...] = ("keeps_the_meaning", "fires_only_where_it_fits")

EXAMPLES = 60
"""Programs for each property of a rule."""
MOST = 3
"""How many programs are tried for each that can be run."""


@dataclass
class RuleReport(Report):
    """What a check of rules has looked at.

    misses: programs that a rule all but fits, by what was changed in them.
    """

    misses: Counter[str] = field(default_factory=Counter[str])


def check_rules(
    tested: RuleSet | str | os.PathLike[str],
    *,
    load: Sequence[str | os.PathLike[str]] = (),
    only: Sequence[str] = (),
    **budget: Any,
) -> RuleReport:
    """Test every rule of a set, or of a file with rules, as check_rule does.

    load: files that the rules need, with guards, functions or dialects. only: names of rules.
    budget: what check_rule takes beside. Raises what check_rule raises, for the first rule that is
    wrong.
    """
    rules, operators = (
        (tested, default_operators()) if isinstance(tested, RuleSet) else rules_of(tested, load)
    )
    report = budget.pop("report", None) or RuleReport()
    given: dict[str, Any] = {"rules": rules, "operators": operators, **budget, "report": report}
    for law in rules.chosen(only).laws:
        check_rule(law, **given)
    return report


def rules_of(
    path: str | os.PathLike[str], load: Sequence[str | os.PathLike[str]] = ()
) -> tuple[RuleSet, Operators]:
    """The rules of a file, checked, and the operators that programs are made of.

    Loading a .py runs it. Raises InputError.
    """
    # Users' files bring importers and all else that abele can be extended by.
    from ...driver.extensions.load import load_extensions  # noqa: PLC0415

    if Path(path).suffix == ".rw":
        extensions = load_extensions(load)
        rules = load_rules(Path(path), extensions.context())
    else:
        extensions = load_extensions([*load, path])
        made = extensions.passes.get(Path(path).stem.replace("_", "-"))
        if not (isinstance(made, type) and issubclass(made, RulesPass)):
            raise InputError(f"{path}: no rules; need a .rw, or functions with @rewrite")
        rules = made.rule_set()
    if not extensions.dialects:
        return rules, default_operators()
    return rules, Operators(extensions.context())


def check_rule(
    tested: Law | PythonRule,
    *,
    rules: RuleSet | None = None,
    operators: Operators | None = None,
    properties: Sequence[Property] = PROPERTIES,
    examples: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    data: Sequence[Data] = DATA,
    limit: float = LIMIT,
    folder: Path | None = None,
    command: str = "",
    replay: Path | None = None,
    report: RuleReport | None = None,
) -> RuleReport:
    """Test one rule on programs made from its left side, and on those that it all but fits.

    tested: a rule of a set, or a function under @rewrite. rules: the set that it is of: a lower is
    applied along with all others of its set, and what they leave goes down by abele's own passes.
    operators: of a context with the rule's dialects; abele's own if None. properties: which of them
    to test. examples: programs for each. seconds: after these no more are begun. seed: of the
    programs; any if None, but 0 where the environment has CI. data: the kinds of values. limit:
    seconds for one program. folder, command, report: as in check_pass. replay: a folder with the
    one program to be looked at.
    Raises RuleWrong, which is a Miscompiled, RuleFailed, which is a PassFailed, NeverFired where no
    program is found that the rule fits, and InputError where none of them can be run.
    """
    known = operators or default_operators()
    if isinstance(tested, PythonRule):
        rules = bind_python_rules([tested], known.instances.vocabulary)
        (law,) = rules.laws
    else:
        law = tested
        rules = rules or RuleSet((law,), known.instances.vocabulary)
    if seed is None:
        seed = 0 if os.environ.get("CI") else Random().randrange(1 << 32)
    begin = monotonic()
    end = begin + seconds if seconds is not None else float("inf")
    check = _Check(law, rules, known, seed, tuple(data), limit, folder, command, end)
    check.report = report or check.report
    if replay is not None:
        check.again(replay)
        return check.report
    count = examples or (1_000_000 if seconds is not None else EXAMPLES)
    try:
        with set_aside():
            for each in properties:
                check.all(each, count)
    finally:
        check.report.seconds += monotonic() - begin
    return check.report


@dataclass
class _Firing(Watcher):
    """Counts the rewrites of one rule."""

    name: str
    count: int = 0

    def begin(self, source: Source, root: Operation) -> None:
        self.count += source.name == self.name


@dataclass
class _Check:
    law: Law
    rules: RuleSet
    operators: Operators
    seed: int
    data: tuple[Data, ...]
    limit: float
    folder: Path | None
    command: str
    end: float
    report: RuleReport = field(default_factory=RuleReport)
    refusal: str = ""

    def __post_init__(self) -> None:
        self.applied = (
            self.rules if self.law.kind == "lower" else RuleSet((self.law,), self.vocabulary)
        )
        self.sources = Sources(
            self.law,
            self.vocabulary,
            self.operators,
            self.seed,
            self.data,
            self._fit,
            self.limit / 2,
            self.end,
        )

    @property
    def vocabulary(self) -> Vocabulary:
        return self.rules.vocabulary

    # All programs

    def all(self, what: Property, count: int) -> None:
        """Look at so many programs. Raises what check_rule does."""
        looked, found = 0, 0
        for program, must in self._programs(what):
            if looked >= count or found >= MOST * count or monotonic() > self.end:
                break
            found += 1
            looked += self._look(program, must)
        if what == "keeps_the_meaning" and not found:
            raise NeverFired(
                f"rule {self.law.source} has never fired: no program was found that it fits, of "
                f"those made from its left side and {SEARCHED} others\n\n{self.law.text}"
            )
        if found and not looked and self.refusal:
            raise InputError(f"rule {self.law.source}: no program could be run: {self.refusal}")

    def _programs(self, what: Property) -> Iterator[tuple[Program, bool]]:
        if what == "keeps_the_meaning":
            for program in self.sources.fitting():
                yield program, True
            return
        for name, program in self.sources.near():
            self.report.misses[name] += 1
            yield program, False

    def _look(self, program: Program, must: bool) -> bool:
        """Look at one program; whether it could be run. must: it has the rule's left side."""
        try:
            wrong = self.wrong(program, must)
        except Refused as refused:
            if must:
                self.report.refused += 1
                self.refusal = str(refused)
            return False
        except RuleFailed as failed:
            raise self._told_failure(program, failed) from failed.__cause__
        self.report.examples += 1
        self.report.exercised.update(set(exercised(program.module)))
        if wrong is not None:
            raise self._told(program, wrong)
        return True

    # One program

    def _fit(self, op: Operation, program: Program) -> Fit | None:
        """How the rule fits an operation. Raises RuleFailed."""
        try:
            with at_most(self.limit / 2):
                return fit(self.law, op, self.vocabulary)
        except TooLong as late:
            raise self._failed(program, f"is not done after {self.limit / 2:g} s") from late
        except CallFailed as failure:
            raise self._raised(program, failure.error) from failure.error

    def wrong(self, program: Program, must: bool = False) -> Wrong | None:
        """What is wrong with the rule on a program; None if nothing is.

        Raises Refused where there is nothing to be compared, and RuleFailed.
        """
        fitting = [op for op in program.module.walk() if self._fit(op, program) is not None]
        problem = self._matched(program, fitting)
        if problem is not None:
            return problem
        if self.law.kind == "lower" and not must:
            # What is no longer lowered is refused: there is nothing to run.
            return None
        after, fired = self._after(program)
        alone = self.law.kind == "rule"
        if alone and fitting and not fired and not self._declines(fitting):
            return Wrong("unfired", f"it fits {_named(fitting[0])}, and does not fire")
        if alone and fired and not fitting:
            return Wrong("fires", "it fires, and fits no operation")
        if not fired and (alone or not must):
            # What is the same means the same.
            return None
        self.report.changed += 1
        problem = invalid(after.module)
        if problem is not None:
            return problem
        return self._means(program, after)

    def _means(self, program: Program, after: Program) -> Wrong | None:
        try:
            with at_most(self.limit):
                expected = _expected(program)
                self.report.undecided += not expected.decided
                return disagreement(expected, after)
        except TooLong as late:
            return Wrong("hang", f"the program is not done after {self.limit:g} s ({late})")

    def _matched(self, program: Program, fitting: Sequence[Operation]) -> Wrong | None:
        """Where the matcher and the text of the rule disagree."""
        for op in program.module.walk():
            if type(op) not in self.law.roots:
                continue
            try:
                found = match_law(self.law, op, self.vocabulary) is not None
            except CallFailed as failure:
                raise self._raised(program, failure.error) from failure.error
            if found and op not in fitting:
                why = misfit(self.law, op, self.vocabulary)
                return Wrong("fires", f"it fits {_named(op)}, where {why}")
            if not found and op in fitting:
                return Wrong("unfired", f"it fits {_named(op)}, and is not matched there")
        return None

    def _declines(self, fitting: Sequence[Operation]) -> bool:
        """Whether Python code has changed its mind wherever the rule fits."""
        matches = [match_law(self.law, op, self.vocabulary) for op in fitting]
        return all(match is not None and self.law.make(match) is None for match in matches)

    def _after(self, program: Program) -> tuple[Program, int]:
        """The program after the rule, and how often that has fired."""
        after = program.clone()
        firing = _Firing(self.law.name)
        try:
            with at_most(self.limit / 2), watched(firing), watching_rules(self.report):
                self.applied.apply(after.module)
        except (InputError, DoesNotFit) as error:
            if self.law.kind == "lower":
                raise Refused(str(error)) from None
            raise self._failed(program, f"cannot be applied: {error}") from error
        except TooLong as late:
            raise self._failed(program, f"is not done after {self.limit / 2:g} s") from late
        except MemoryError:
            raise
        except Exception as error:
            raise self._raised(program, error) from error
        if self.law.kind == "lower" and not _is_on_one_level(after.module):
            try:
                way_down(self.sources.level, program)[-1].apply(after.context, after.module)
            except (InputError, DoesNotFit) as error:
                raise Refused(str(error)) from None
        return after, firing.count

    def _raised(self, program: Program, error: BaseException) -> RuleFailed:
        first = str(error).partition("\n")[0]
        return self._failed(program, f"raised {type(error).__name__}: {first}")

    def _failed(self, program: Program, problem: str) -> RuleFailed:
        return RuleFailed(self.law, program, problem)

    # What is told

    def again(self, folder: Path) -> None:
        """Look at the one program that was saved in a folder. Raises as check_rule."""
        program, _ = Program.load(folder, self.operators.context.clone())
        try:
            wrong = self.wrong(program, must=True)
        except Refused as refused:
            raise InputError(f"{folder}: {refused}") from None
        self.report.examples += 1
        if wrong is not None:
            raise RuleWrong(self.law, program, wrong, self._made(program, wrong), folder)

    def _told(self, program: Program, wrong: Wrong) -> RuleWrong:
        def alike(candidate: Program) -> bool:
            try:
                found = self.wrong(candidate, must=True)
            except (Refused, RuleFailed, InputError, VerifyException):
                return False
            return found is not None and found.kind == wrong.kind

        counted, self.report = self.report, RuleReport()
        level = self.sources.level
        small = smallest(program, level, alike, SHRINKING) if alike(program) else program
        wrong = self.wrong(small, must=True) or wrong
        self.report = counted
        folder, command = self._saved(small, wrong.kind)
        made = self._made(small, wrong)
        return RuleWrong(self.law, small, wrong, made, folder, command, counted.examples)

    def _made(self, program: Program, wrong: Wrong) -> str:
        if wrong.kind not in ("value", "fault", "hang"):
            return ""
        counted, self.report = self.report, RuleReport()
        text = self._after(program)[0].text
        self.report = counted
        return text

    def _told_failure(self, program: Program, failed: RuleFailed) -> RuleFailed:
        def alike(candidate: Program) -> bool:
            try:
                self.wrong(candidate)
            except RuleFailed as other:
                return type(other.__cause__) is type(failed.__cause__)
            except (Refused, InputError, VerifyException):
                return False
            return False

        # What hangs would do so at each step.
        hangs = isinstance(failed.__cause__, TooLong)
        small = program if hangs else smallest(program, self.sources.level, alike, SHRINKING)
        folder, command = self._saved(small, "rule")
        return RuleFailed(self.law, small, failed.problem, folder, command)

    def _saved(self, program: Program, kind: str) -> tuple[Path, str]:
        folder = self.folder or Path(tempfile.mkdtemp(prefix="abele-failure-"))
        source = self.law.source
        program.save(folder, {"rule": source.name, "rules": source.file, "kind": kind})
        if self.command:
            return folder, self.command.replace("FOLDER", str(folder))
        if not source.file.endswith(".rw") or not Path(source.file).exists():
            return folder, ""
        words = ("pytest", "--rules", source.file, f"{source.file}::{source.name}")
        return folder, shlex.join([*words, "--abele-replay", str(folder)])


def _expected(program: Program) -> Outcome:
    """What a program has to compute. Raises Refused where it cannot be run."""
    source = program
    if program.source is not None:
        source = Program(program.source, program.context, program.inputs, program.target)
    try:
        return bounded_run(source)
    except MemoryError:
        raise
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from None


def _is_on_one_level(module: ModuleOp) -> bool:
    try:
        verify(module, legal_ops(level_of(module)))
    except VerifyException:
        return False
    return True


def _named(op: Operation) -> str:
    return f"{op.name} at {place(op)}"
