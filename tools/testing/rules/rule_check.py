"""Tests rewrite rules on programs made from their own left side and on near-misses of it.

A rule must fire wherever its text says that it matches, keep the meaning of the program, and fire
nowhere else. generators/rules/reading.py decides what the text says. It shares no code with the
matcher.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Unpack

from ....backends.reference.run import has_meaning
from ....dialects.onnx_level import ONNX_LEVEL
from ....ir.pass_manager import load_pass
from ....ir.rules import PythonRule, RuleSet, RulesPass, bind_python_rules
from ....ir.rules.bound_rule import BoundRule
from ....ir.rules.load import load_rules
from ....ir.support.deferred import deferred
from ....ir.support.errors import InputError
from ....ir.support.garbage import heap_frozen
from ....ir.upstream import ModulePass, VerifyException
from ....passes.pipelines import PASSES
from ...driver.extensions.load import load_extensions
from ..generators.build import Operators, default_operators
from ..generators.program import Program
from ..generators.rules.sources import SEARCHED, Sources
from ..limits import TooLong
from ..search.failures import Wrong
from ..search.report import exercised
from ..search.run import Refused
from ..search.save import Saved, save_program
from ..search.shrink import Shrunk, smallest
from .failures import NeverFired, RuleFailed, RuleWrong
from .judge import RuleJudge
from .settings import Property, RuleOptions, RuleReport, RuleSettings

with deferred(__name__):
    # It imports onnx, which the test extra brings.
    from .onnx_check import OnnxCheck

EXAMPLES = 60
"""Programs for each property of a rule, if neither examples nor seconds is set."""
TRIES = 3
"""A check generates at most this many programs for each one that can be run."""


def check_rules(
    tested: RuleSet | str | os.PathLike[str],
    *,
    load: Sequence[str | os.PathLike[str]] = (),
    only: Sequence[str] = (),
    **options: Unpack[RuleOptions],
) -> RuleReport:
    """Test every rule of a set, or of a file of rules, with check_rule.

    Raises the same errors as check_rule, for the first rule that is wrong.

    Args:
        load: files that define guards, functions or dialects for the rules.
        only: names of the rules to test; all if empty.
        options: the fields of RuleSettings.
    """
    rules, operators = (
        (tested, default_operators()) if isinstance(tested, RuleSet) else rules_of(tested, load)
    )
    report = options.get("report") or RuleReport()
    shared: RuleOptions = {
        "rules": rules,
        "operators": operators,
        "lowered_by": lowering_passes(load),
    }
    for rule in rules.chosen(only).bound:
        given: RuleOptions = {**shared, **options, "report": report}
        check_rule(rule, **given)
    return report


def lowering_passes(load: Sequence[str | os.PathLike[str]]) -> tuple[ModulePass, ...]:
    """The passes of the loaded files whose rules may give operations a meaning."""
    extensions = load_extensions(load)
    found = (load_pass(n, extensions.passes) for n in extensions.passes if n not in PASSES)
    return tuple(
        each() for each in found if issubclass(each, RulesPass) and _lowers(each.rule_set())
    )


def _lowers(rules: RuleSet) -> bool:
    """Whether a set has lowering rules, or rules that replace operations that cannot be run."""
    roots = {cls for rule in rules.bound for cls in rule.roots}
    return bool(rules.lowered) or not all(map(has_meaning, roots))


def rules_of(
    path: str | os.PathLike[str], load: Sequence[str | os.PathLike[str]] = ()
) -> tuple[RuleSet, Operators]:
    """The rules of a file, and the operators to generate programs from.

    A .py file is executed. Raises InputError.
    """
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


def check_rule(tested: BoundRule | PythonRule, **options: Unpack[RuleOptions]) -> RuleReport:
    """Test one rule on programs made from its left side, and on near-misses of it.

    Raises RuleWrong if the rule changes the meaning of a program or fires in the wrong places;
    RuleFailed if the rule itself fails; NeverFired if it matches no generated program; InputError
    if none of the programs that it matches can be run.

    Args:
        tested: a rule of a set, or a function decorated with @rewrite.
        options: the fields of RuleSettings.
    """
    begin, settings = monotonic(), RuleSettings(**options)
    rule, rules, _ = _bound(tested, settings)
    if is_about_onnx(rule):
        return _checked_on_models(rule, rules, settings, begin)
    check = _check_of(tested, settings, begin)
    if check.settings.replay is not None:
        check.replay(check.settings.replay)
        return check.report
    try:
        with heap_frozen():
            for each in check.settings.properties:
                check.run(each)
    finally:
        check.report.seconds += monotonic() - begin
    return check.report


def check_rule_on(
    tested: BoundRule | PythonRule, program: Program, **options: Unpack[RuleOptions]
) -> bool:
    """Test one rule on one program. Returns whether the rule matches it and it could be run.

    Raises RuleWrong and RuleFailed, as check_rule does, with a smaller program.

    Args:
        options: the fields of RuleSettings.
    """
    check = _check_of(tested, RuleSettings(**options), monotonic())
    if all(check.judge.fit(op, program) is None for op in program.module.walk()):
        return False
    return check.look(program, must=True)


def _check_of(tested: BoundRule | PythonRule, settings: RuleSettings, begin: float) -> _Check:
    rule, rules, operators = _bound(tested, settings)
    report = settings.report or RuleReport()
    judge = RuleJudge(rule, rules, settings.limit, report, tuple(settings.lowered_by))
    return _Check(settings, operators, judge, _end(settings, begin))


def _bound(
    tested: BoundRule | PythonRule, settings: RuleSettings
) -> tuple[BoundRule, RuleSet, Operators]:
    """A rule, the set that it is tested in, and the operators to generate programs from."""
    operators = settings.operators or default_operators()
    if isinstance(tested, PythonRule):
        rules = bind_python_rules([tested], operators.instances.vocabulary)
        (rule,) = rules.bound
        return rule, rules, operators
    return (
        tested,
        settings.rules or RuleSet((tested,), operators.instances.vocabulary),
        operators,
    )


def _end(settings: RuleSettings, begin: float) -> float:
    return float("inf") if settings.seconds is None else begin + settings.seconds


def is_about_onnx(rule: BoundRule) -> bool:
    """Whether a rule replaces operations of ONNX."""
    return all(cls.name.partition(".")[0] == ONNX_LEVEL.name for cls in rule.roots)


def _checked_on_models(
    rule: BoundRule, rules: RuleSet, settings: RuleSettings, begin: float
) -> RuleReport:
    """Test a rule about operations of ONNX on models of ONNX. Raises the errors of check_rule."""
    report = settings.report or RuleReport()
    check = OnnxCheck(rule, rules, settings, report, _end(settings, begin))
    if settings.replay is not None:
        check.replay(settings.replay)
        return report
    try:
        with heap_frozen():
            for each in settings.properties:
                check.run(each, settings.count(EXAMPLES))
    finally:
        report.seconds += monotonic() - begin
    return report


@dataclass
class _Check:
    """A search for a program on which a rule is wrong.

    Attributes:
        end: the time at which the search ends, in seconds of monotonic().
        refusal: why the last program was refused.
    """

    settings: RuleSettings
    operators: Operators
    judge: RuleJudge
    end: float
    refusal: str = ""

    def __post_init__(self) -> None:
        self.rule, self.report = self.judge.rule, self.judge.report
        self.sources = Sources(
            self.rule,
            self.judge.vocabulary,
            self.operators,
            self.settings.any_seed(),
            tuple(self.settings.data),
            self.judge.fit,
            self.settings.limit / 2,
            self.end,
        )

    def run(self, what: Property) -> None:
        """Judge as many programs as the budget allows. Raises the errors of check_rule."""
        count, judged, found = self.settings.count(EXAMPLES), 0, 0
        for program, must in self._programs(what):
            if judged >= count or found >= TRIES * count or monotonic() > self.end:
                break
            found += 1
            judged += self.look(program, must)
        if what == "keeps_the_meaning" and not found:
            raise NeverFired(
                f"rule {self.rule.source} has never fired: it matches none of the programs made "
                f"from its left side, and none of {SEARCHED} others\n\n{self.rule.text}"
            )
        if found and not judged and self.refusal:
            raise InputError(f"rule {self.rule.source}: no program could be run: {self.refusal}")

    def _programs(self, what: Property) -> Iterator[tuple[Program, bool]]:
        """Programs for testing a property, and whether each contains the rule's left side."""
        if what == "keeps_the_meaning":
            for program in self.sources.fitting():
                yield program, True
            return
        for name, program in self.sources.near_misses():
            self.report.misses[name] += 1
            yield program, False

    def look(self, program: Program, must: bool) -> bool:
        """Judge one program. Returns whether it could be run."""
        try:
            wrong = self.judge.wrong(program, must)
        except Refused as refused:
            if must:
                self.report.refused += 1
                self.refusal = str(refused)
            return False
        except RuleFailed as failed:
            raise self._small_failure(program, failed) from failed.__cause__
        self.report.examples += 1
        self.report.exercised.update(set(exercised(program.module)))
        if wrong is not None:
            raise self._small_wrong(program, wrong)
        return True

    def replay(self, folder: Path) -> None:
        """Judge the program that is saved in a folder. Raises the errors of check_rule."""
        program, _ = Program.load(folder, self.operators.context.clone())
        try:
            wrong = self.judge.wrong(program, must=True)
        except Refused as refused:
            raise InputError(f"{folder}: {refused}") from None
        self.report.examples += 1
        if wrong is not None:
            raise RuleWrong(self.rule, program, wrong, self._rewritten(program, wrong), folder)

    def _small_wrong(self, program: Program, wrong: Wrong) -> RuleWrong:
        """The error to raise for a wrong rule. The program is shrunk and saved."""
        judge = self.judge.uncounted()

        def alike(candidate: Program) -> bool:
            try:
                found = judge.wrong(candidate, must=True)
            except (Refused, RuleFailed, InputError, VerifyException):
                return False
            return found is not None and found.way == wrong.way

        seconds = self.settings.reduce_seconds
        shrunk = (
            smallest(program, judge.level.name, alike, seconds)
            if alike(program)
            else Shrunk(program)
        )
        small = shrunk.program
        wrong = judge.wrong(small, must=True) or wrong
        folder, command = self._saved(small, wrong.kind)
        rewritten = self._rewritten(small, wrong)
        return RuleWrong(
            self.rule,
            small,
            wrong,
            rewritten,
            folder,
            command,
            self.report.examples,
            note=shrunk.note,
        )

    def _rewritten(self, program: Program, wrong: Wrong) -> str:
        """The text of the program after the rule; "" for failures that it does not explain."""
        if wrong.kind not in ("value", "fault", "hang"):
            return ""
        return self.judge.uncounted().applied(program)[0].text

    def _small_failure(self, program: Program, failed: RuleFailed) -> RuleFailed:
        """The error to raise for a rule that raises or hangs. The program is shrunk and saved."""

        def alike(candidate: Program) -> bool:
            try:
                self.judge.wrong(candidate)
            except RuleFailed as other:
                return type(other.__cause__) is type(failed.__cause__)
            except (Refused, InputError, VerifyException):
                return False
            return False

        # A rule that hangs would use up the time limit at every step of shrinking.
        hangs = isinstance(failed.__cause__, TooLong)
        seconds, level = self.settings.reduce_seconds, self.judge.level.name
        shrunk = Shrunk(program) if hangs else smallest(program, level, alike, seconds)
        small = shrunk.program
        folder, command = self._saved(small, "rule")
        return RuleFailed(self.rule, small, failed.problem, folder, command, note=shrunk.note)

    def _saved(self, program: Program, kind: str) -> Saved:
        source = self.rule.source
        record = {"rule": source.name, "rules": source.file, "kind": kind}
        return save_program(program, self.settings, record, self._replay_command)

    def _replay_command(self, folder: Path) -> str:
        """The command that tests the rule on a saved program; "" if the rule is not in a file."""
        source = self.rule.source
        if not source.file.endswith(".rw") or not Path(source.file).exists():
            return ""
        words = ("pytest", "--rules", source.file, f"{source.file}::{source.name}")
        return shlex.join([*words, "--abele-replay", str(folder)])
