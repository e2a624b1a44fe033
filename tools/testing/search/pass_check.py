"""Checks passes and pipelines: runs generated programs before and after them.

The oracle gives the expected results of a program with error bounds. A check draws programs, judges
each, and reports the first failure: the wrong pass, the shrunk program, and the command that runs
it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import monotonic, process_time
from typing import Unpack

from ....dialects.levels import NN
from ....ir.level import Level
from ....ir.support.errors import InputError
from ....ir.support.garbage import collected_seldom, heap_frozen
from ....passes.pipelines import shorthand_from
from ..generators.levels import level_before
from ..generators.program import Program
from ..generators.training import is_step
from ..oracle.relations import name_of
from . import shrink
from .aim import Aim
from .blame import (
    FirstWrong,
    fewest_passes,
    first_wrong_pass,
    interrupted_rewrite,
    wrong_rewrite,
)
from .culprit import culprit
from .draw import drawn, generated
from .failures import AtFault, Miscompiled, PassFailed, StrategyFailed, Wrong
from .judge import Judge
from .pass_level import FoundLevel, level_for, level_given
from .progress import Progress
from .reached import Reached
from .report import Report, exercised
from .run import Passes, PassList, Refused, is_abeles
from .save import Saved, save_failure
from .settings import UNLIMITED, CheckOptions, CheckSettings
from .shrink import SHARE, Fails, Shrunk, fails_alike, fails_with, smallest
from .untested import refuse_untested
from .valid import valid_like

HURRIED, SLOWER = 0.1, 4
"""A smaller program may take the first number in CPU seconds, plus the second number times the
seconds of the smallest failing program."""
LEAD = 2.0
"""The least CPU seconds that the passes before the wrong pass may take."""
MOST_LINES = 60
"""The most lines of a program after the passes that a message shows."""
OF_RESULTS = ("value", "narrow", "fault")
"""Kinds of failures for which a codelet or a layout may be to blame."""
REFUSALS = 50
"""A check ends once this many programs are refused and none has run."""


def check_pass(
    tested: Passes, level: Level | str | None = None, **options: Unpack[CheckOptions]
) -> Report:
    """Run generated programs of a level before and after a pass, and compare the results.

    Raises Miscompiled if a program means something else afterwards, does not verify, cannot be run
    or cannot be printed and read again, or if a relation does not hold; PassFailed if the pass
    raises or hangs; RelationFailed or StrategyFailed if a relation or the strategy of programs
    fails; Untested if the passes change no program or fewer than 1 % of at least 100, unless
    expect_changes is False; InputError if every program is refused, or for an unknown level.

    If neither examples nor seconds is given, the check runs for 10 s. A pass that declares `rounds
    = True` may change results by as much as the casts that it adds, and may round intermediate
    values. All other passes may change results only within the error bound of the program's own
    operations.

    Args:
        tested: the pass or its name, or several.
        level: the level of the programs, or a stage between levels (see programs); if None, the
            level that the first pass declares to take, or else the level whose operations its code
            names, or else a level at which it changes programs.
        options: the fields of CheckSettings, among them examples, seconds, seed, operators,
            decisions, programs, relation, results, expect_changes, rounded_once, limit, folder and
            report.
    """
    return _Check.of(tested, level, options).run()


def check_pipeline(
    tested: Passes | None = None,
    level: Level | str | None = None,
    **options: Unpack[CheckOptions],
) -> Report:
    """Run generated programs before and after a whole pipeline, and name the wrong pass.

    A level stands for the passes that end there, and each program is compiled for its own machine.
    Three programs in ten get random legal plans in place of those of plan-splits, with splits that
    the planner seldom chooses; with a relation, all programs are planned. Everything else as
    check_pass.

    Args:
        tested: passes, or their names as abele opt -p takes them; if None, the default pipeline,
            with the levels that extensions have added.
    """
    passes = shorthand_from(NN) if tested is None else tested
    return _Check.of(passes, level, options, at_random=True).run()


class _Found(BaseException):
    """Ends the search with a failure. Not an Exception, so that Hypothesis passes it on at once."""

    def __init__(self, program: Program, wrong: Wrong | AtFault) -> None:
        super().__init__()
        self.program = program
        self.wrong = wrong


class _Enough(BaseException):
    """Ends the search when the time is over or every program is refused."""


@dataclass
class _Check:
    """A search for a program on which passes fail.

    Attributes:
        found_level: the level of the programs.
        refusal: the message of the last refusal.
        _place: the settings with the folder in which a failure has been saved.
        _counted: the number of rules and of guard results seen so far.
        _end: when the time is over; None before the first program.
    """

    found_level: FoundLevel
    settings: CheckSettings
    judge: Judge
    report: Report
    refusal: str = ""
    _place: CheckSettings | None = None
    _counted: int = 0
    _end: float | None = None

    @property
    def level(self) -> str:
        """The level, or stage, of the programs."""
        return self.found_level.level

    @staticmethod
    def of(
        tested: Passes, level: Level | str | None, options: CheckOptions, at_random: bool = False
    ) -> _Check:
        settings = CheckSettings(**options)
        report = settings.report or Report()
        # Relations compare plans of the same planner.
        at_random = at_random and not settings.relations
        passes = replace(PassList.of(tested), at_random=at_random)
        found = _level_for(passes, settings) if level is None else level_given(level)
        report.level = found.level
        return _Check(found, settings, Judge(passes, settings, report), report)

    def run(self) -> Report:
        """Judge as many programs as the budget allows. Raises as check_pass."""
        if self.settings.replay is not None:
            self._replay(self.settings.replay)
            return self.report
        found: _Found | None = None
        begin, cpu = monotonic(), process_time()
        try:
            with heap_frozen(), collected_seldom():
                self._draw(self._look)
        except _Enough:
            pass
        except _Found as wrong:
            found = wrong
        finally:
            self.report.seconds = monotonic() - begin
            self.report.cpu_seconds = process_time() - cpu
        if found is not None:
            if isinstance(found.wrong, AtFault):
                raise self._fault(found.program, found.wrong)
            raise self._miscompiled(found.program, found.wrong)
        refused = self.report.refused + self.report.unfit
        if self.report.examples == 0 and refused:
            raise InputError(f"all {refused} programs were refused, the last one by {self.refusal}")
        if self.settings.expect_changes:
            refuse_untested(self.judge.passes.on(), self.report, self.settings, self.found_level)
        return self.report

    def _draw(self, look: Callable[[Program], bool]) -> None:
        settings = self.settings
        count, seed = settings.count(UNLIMITED), settings.any_seed()
        passes = self.judge.passes.on()
        if settings.programs is not None:
            if settings.operators or settings.decisions or settings.training:
                raise InputError(
                    "give programs, or operators, decisions and training, but not both"
                )
            drawn(settings.programs, count, seed, look)
            return
        aim = Aim.of(passes, self.level, settings.operators, settings.decisions)
        if not settings.guided:
            generated(self.level, count, seed, aim, look, training=settings.training)
            return
        users = [each for each in passes if not is_abeles(each)]
        reached = Reached(users or passes)
        self.judge.watching = reached.watching

        def has_news() -> bool:
            counts = len(self.report.fired) + len(self.report.guards)
            news = reached.has_news() or counts > self._counted
            self._counted = counts
            return news

        with reached.session():
            generated(self.level, count, seed, aim, look, has_news, settings.training)

    def _look(self, program: Program) -> bool:
        """Judge one program. Returns whether the passes change it."""
        if self._end is None:
            # What comes before the first program is slow in a new process on a busy host.
            self._end = monotonic() + (inf if self.settings.time is None else self.settings.time)
        if monotonic() > self._end:
            raise _Enough
        changed = self.report.changed
        try:
            wrong = self.judge.wrong(program)
        except Refused as refused:
            self.report.refused += refused.fits
            self.report.unfit += not refused.fits
            self.refusal = str(refused)
            if self.report.refused + self.report.unfit >= REFUSALS and not self.report.examples:
                raise _Enough from None
            return False
        except AtFault as failed:
            raise _Found(program, failed) from None
        self.report.examples += 1
        self.report.steps += is_step(program.module)
        self.report.exercised.update(set(exercised(program.module)))
        if wrong is not None:
            raise _Found(program, wrong)
        return self.report.changed > changed

    def _miscompiled(self, program: Program, wrong: Wrong) -> Miscompiled:
        """The error to raise for a failing program: blamed on one pass, shrunk and saved."""
        if wrong.kind == "relation":
            broken = [r for r in self.settings.relations if name_of(r) == wrong.relation]
            alone = fewest_passes(program, self.judge.only(relation=broken, results=False))
            first = FirstWrong(program, alone, None)
        elif wrong.kind == "refused":
            # Only all passes together show this failure.
            first = FirstWrong(program, self.judge.only(relation=None), None)
        elif wrong.kind == "kernel":
            # No pass is wrong, and every smaller program must run with kernels.
            judge = self.judge.only(relation=None, kernels=1, parts=0)
            first = FirstWrong(program, judge, None)
        else:
            first = first_wrong_pass(program, self.judge)
        shrunk, alone = self._small(program, first, wrong)
        small = shrunk.program
        wrong = alone.wrong(small) or wrong
        folder, command = self._saved(small, alone, wrong.kind)
        return Miscompiled(
            small,
            wrong,
            tuple(each.name for each in self.judge.passes.for_program(program)),
            wrong.blamed or alone.passes.for_program(small)[-1].name,
            wrong_rewrite(small, alone, wrong),
            folder,
            command,
            self.report.examples,
            note=shrunk.note,
            culprit=culprit(small, alone.compiled) if wrong.kind in OF_RESULTS else "",
            after="" if wrong.kind == "hang" else self._after(small, alone),
        )

    def _after(self, program: Program, alone: Judge) -> str:
        """The text of a program after a judge's passes; "" if it is long or the passes fail."""
        try:
            text = alone.compiled(program).text.rstrip()
        except (Refused, AtFault):
            return ""
        return text if text.count("\n") < MOST_LINES else ""

    @property
    def _reducing(self) -> float:
        """The CPU seconds for shrinking a failing program."""
        given = self.settings.reduce_seconds
        return shrink.SHRINKING if given is None else given

    def _small(self, program: Program, first: FirstWrong, wrong: Wrong) -> tuple[Shrunk, Judge]:
        """The shrunk program before the first wrong pass, and a judge of that pass.

        A program that further passes come before is shrunk before them, and then after them.
        """
        end = process_time() + self._reducing
        begin = process_time()
        wrong = first.alone.wrong(first.before) or wrong
        kind = "" if wrong.kind == "hang" else wrong.kind
        limit = self.settings.limit
        limit = _limit_for(limit, wrong, process_time() - begin, limit)
        valid = valid_like(first.before, self.settings.limit)

        def hurried(least: float = 0.0) -> Judge:
            return self.judge.only(limit=max(limit, least), looks_for=kind)

        def fails(before: Program) -> bool:
            nonlocal limit
            progress.pause()
            alone = first.alone_on(before, hurried()).only(limit=limit, looks_for=kind)
            begin = process_time()
            found = fails_with(alone, wrong)(before)
            if found:
                limit = _limit_for(self.settings.limit, wrong, process_time() - begin, limit)
            return found

        def reached(program: Program) -> Program | None:
            try:
                return first.reached(program, hurried(LEAD))
            except (Refused, AtFault):
                return None

        def both_below(holds: Fails) -> Fails:
            def below(candidate: Program) -> bool:
                before = reached(candidate)
                return before is not None and holds(before)

            return below

        def save(before: Program) -> str:
            return str(self._saved(before, first.alone_on(before, self.judge), wrong.kind).folder)

        progress = Progress(
            lambda each: save(each) if valid(each) else "", self.settings.tell, self._reducing
        )
        before, complete, stopped = first.before, True, False
        if first.index:
            above = smallest(
                program,
                self.level,
                both_below(fails),
                SHARE * self._reducing,
                valid=both_below(valid),
                better=lambda each: progress.better(reached(each) or first.before),
            )
            before, complete = first.reached(above.program, self.judge), above.complete
            stopped = above.stopped
        left = 0.0 if stopped else max(0.0, end - process_time())
        found = smallest(before, self.level, fails, left, valid=valid, better=progress.better)
        shrunk = replace(
            found,
            complete=found.complete and complete,
            stopped=found.stopped or stopped,
            seconds=self._reducing,
        )
        return shrunk, first.alone_on(shrunk.program, self.judge)

    def _saved(self, program: Program, judge: Judge, kind: str) -> Saved:
        """Save a failing program, always in the same folder."""
        saved = save_failure(
            program, judge.passes, judge.settings.relations, kind, self._place or self.settings
        )
        self._place = replace(self.settings, folder=saved.folder)
        return saved

    def _fault(self, program: Program, failed: AtFault) -> AtFault | Miscompiled:
        """The error to raise for a failing pass or relation, with the program shrunk and saved.

        If an earlier pass left a wrong program, that pass is to blame.
        """
        earlier = self._wrong_earlier(program)
        if earlier is not None:
            return self._miscompiled(program, earlier)
        judge = self.judge.only()
        if isinstance(failed, PassFailed):
            # A pass raises before any results are compared.
            judge = self.judge.only(looks_for="raised", relation=None, results=False)
        alike = fails_alike(judge, failed)
        valid = valid_like(program, self.settings.limit)

        def fails(candidate: Program) -> bool:
            progress.pause()
            return alike(candidate)

        progress = Progress(
            lambda each: str(self._saved(each, judge, failed.what).folder) if valid(each) else "",
            self.settings.tell,
            self._reducing,
        )
        shrunk = smallest(
            program, self.level, fails, self._reducing, valid=valid, better=progress.better
        )
        small = shrunk.program
        if not alike(small):
            return failed
        rewrite = interrupted_rewrite(small, judge, failed.name)
        folder, command = self._saved(small, self.judge, failed.what)
        found = type(failed)(
            small, failed.name, failed.problem, folder, command, rewrite, note=shrunk.note
        )
        found.__cause__ = failed.__cause__
        return found

    def _wrong_earlier(self, program: Program) -> Wrong | None:
        """The failure of an earlier pass on a program; None if there is none."""
        try:
            first = first_wrong_pass(program, self.judge.only())
            return None if first.index is None else first.alone.wrong(first.before)
        except (Refused, AtFault, StrategyFailed):
            return None

    def _replay(self, folder: Path) -> None:
        """Judge the saved program in a folder. Raises as check_pass."""
        program, _ = Program.load(folder)
        try:
            wrong = self.judge.wrong(program)
        except Refused as refused:
            raise InputError(f"{folder}: {refused}") from None
        if wrong is not None:
            names = tuple(each.name for each in self.judge.passes.for_program(program))
            raise Miscompiled(program, wrong, names, names[-1], "", folder)


def _level_for(tested: PassList, settings: CheckSettings) -> FoundLevel:
    """The level, or stage, of the first tested pass."""
    passes = tested.on()
    if not passes or settings.programs is not None or settings.replay is not None:
        return FoundLevel(level_before(type(passes[0])) if passes else NN.name, "")
    return level_for(passes[0], settings)


def _limit_for(limit: float, wrong: Wrong, seconds: float, before: float) -> float:
    """The CPU seconds for a smaller program, from the seconds that the failing program took.

    A change that makes a program smaller can make a loop endless, so the limit is low.

    Args:
        before: the limit for the failing program.
    """
    return limit if wrong.kind == "hang" else min(before, HURRIED + SLOWER * seconds)
