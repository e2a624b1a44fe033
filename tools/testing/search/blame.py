"""Finds the pass to blame for a wrong program, and the rewrite to blame within the pass."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from ....ir.provenance import origin
from ....ir.rewriting import Source, Watcher, limited, watched
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.upstream import ModulePass
from ...debug.bisect.first_rewrite import fewest_wrong
from ...debug.bisect.verdict import BlamedRewrite
from ..generators.program import Program
from ..limits import TooLong, at_most
from .failures import AtFault, Wrong
from .judge import Judge, can_run
from .report import Report
from .run import PassList, Refused, apply
from .settings import LIMIT


@dataclass(frozen=True)
class FirstWrong:
    """The first wrong pass of a pipeline.

    Attributes:
        before: the program before it, whatever its level.
        alone: a judge of that pass.
        index: its position among the passes; None if only the errors of several passes together are
            too large. Then alone judges those passes, and before is the program before all of them.
    """

    before: Program
    alone: Judge
    index: int | None

    def reached(self, program: Program, judge: Judge) -> Program:
        """Another program as it is before that pass.

        Raises Refused and PassFailed.

        Args:
            judge: judges all passes.
        """
        if not self.index:
            return program
        lead = replace(judge.passes, first=self.index)
        after = lead.compiled(program, judge.settings.limit, Report())
        after.source = program.source or program.module
        after.sketch = None
        return after

    def alone_on(self, program: Program, judge: Judge) -> Judge:
        """A judge of that pass, with its options for the machine of another program."""
        if self.index is None:
            return self.alone
        own = judge.passes.for_program(program)[self.index]
        return self.alone.only(passes=PassList((own,)), limit=judge.settings.limit)


def first_wrong_pass(program: Program, judge: Judge) -> FirstWrong:
    """The first pass after which a program is wrong."""
    before = program
    for index, each in enumerate(judge.passes.for_program(program)):
        alone = judge.only(passes=PassList((each,)), relation=None)
        try:
            found = alone.wrong(before)
        except Refused:
            found = None
        if found is not None:
            return FirstWrong(before, alone, index)
        after = before.clone()
        apply(each, after, before, judge.settings.limit)
        after.source = before.source or (before.module if can_run(before) else None)
        after.sketch = None
        before = after
    # Each pass alone stays within its bound; only their errors together exceed it.
    return FirstWrong(program, fewest_passes(program, judge.only(relation=None)), None)


def fewest_passes(program: Program, judge: Judge) -> Judge:
    """A judge of the shortest beginning of the pipeline after which the program fails."""
    count = len(judge.passes.for_program(program))
    for first in range(1, count):
        some = judge.only(passes=replace(judge.passes, first=first))
        try:
            if some.wrong(program) is not None:
                return some
        except Refused:
            continue
    return judge.only(passes=replace(judge.passes, first=count))


def wrong_rewrite(program: Program, judge: Judge, wrong: Wrong) -> str:
    """The rewrite of the last pass that makes a program wrong; "" if it is unknown."""
    # Bisection does not suit these kinds: a relation runs the passes several times, a hang takes
    # its whole limit each time, and a refusal or a kernel is not a mistake of the last pass.
    if wrong.kind in ("relation", "hang", "refused", "kernel"):
        return ""

    def is_wrong(rewrites: int) -> bool:
        some = judge.only(passes=replace(judge.passes, rewrites=rewrites))
        return some.wrong(program) is not None

    try:
        with at_most(LIMIT):
            found = bisected_rewrite(judge.passes.for_program(program)[-1], program, is_wrong)
    except (TooLong, Refused, AtFault, InputError, DoesNotFit):
        return ""
    return "" if found is None else str(found)


def interrupted_rewrite(program: Program, judge: Judge, name: str) -> str:
    """The rewrite during which the pass with this name failed; "" if it is unknown."""
    before, limit = program.clone(), judge.settings.limit
    try:
        for each in judge.passes.for_program(program):
            if each.name == name:
                with at_most(limit):
                    found = _unfinished(each, before)
                return "" if found is None else str(found)
            apply(each, before, program, limit)
    except (Refused, AtFault, TooLong):
        pass
    return ""


def bisected_rewrite(
    each: ModulePass, program: Program, is_wrong: Callable[[int], bool]
) -> BlamedRewrite | None:
    """The first rewrite of a pass after which a program is wrong, found by bisection.

    Raises any error of the pass and of is_wrong.

    None if the pass reports no rewrites, or makes its mistake outside of them.

    Args:
        is_wrong: whether the program is wrong after this many rewrites.
    """
    count = len(_rewritten(each, program).made)
    if not count or is_wrong(0):
        return None
    number = fewest_wrong(count, is_wrong)
    log = _rewritten(each, program, number)
    return log.blamed(number, count) if len(log.made) >= number else None


class _Rewrites(Watcher):
    """The rewrites of a pass in order, with their roots."""

    def __init__(self) -> None:
        self.made: list[tuple[Source, str, str | None]] = []
        self.open = False

    def begin(self, source: Source, root: Operation) -> None:
        self.made.append((source, root.name, origin(root)))
        self.open = True

    def end(self) -> None:
        self.open = False

    def blamed(self, number: int, of: int) -> BlamedRewrite:
        """The rewrite with this number, counted from 1."""
        source, root, node = self.made[number - 1]
        return BlamedRewrite(number, of, source, root, node)


def _rewritten(each: ModulePass, program: Program, most: int | None = None) -> _Rewrites:
    log, clone = _Rewrites(), program.module.clone()
    with watched(log), nullcontext() if most is None else limited(most):
        each.apply(program.context, clone)
    return log


def _unfinished(each: ModulePass, program: Program) -> BlamedRewrite | None:
    """The rewrite during which a pass raises; None if it raises outside of any rewrite."""
    log, clone = _Rewrites(), program.module.clone()
    try:
        with watched(log):
            each.apply(program.context, clone)
    # The caller already knows the error.
    except Exception:
        return log.blamed(len(log.made), len(log.made)) if log.open else None
    return None
