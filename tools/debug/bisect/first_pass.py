"""Find the first pass after which a program is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....backends.target import Target
from ....ir.equal import same_program
from ....ir.upstream import Context, ModuleOp, ModulePass
from ...driver.arrays import Array
from ...driver.on_step import OnStep, ignore_step
from .first_rewrite import first_wrong_rewrite
from .first_value import first_wrong_value
from .judge import CannotRun, Judge, Problem
from .rewrite_log import RewriteLog, apply_recorded
from .verdict import BlamedRewrite, Verdict, WrongValue


def bisect_module(
    module: ModuleOp,
    context: Context,
    passes: Sequence[ModulePass],
    inputs: Mapping[str, Array],
    target: Target,
    on_step: OnStep = ignore_step,
) -> Verdict:
    """Run a module after every pass, until it is wrong. The module itself does not change.

    The given module defines the right results: the float64 reference computes them for nn, the
    level's own evaluator for any other level. A program is wrong if an output, or a state that it
    leaves, differs by more than `check.tolerance` allows (2e-3 of its largest value); if the strict
    machine or another evaluator rejects it; if it does not verify; or if the pass raises.
    InputError and DoesNotFit are for the user, so they are raised again.
    """
    on_step("run the program before all passes")
    judge = Judge.of(module, inputs, target)
    names = tuple(each.name for each in passes)
    right, since, not_run = module, 0, list[str]()
    current = module
    for index, each in enumerate(passes):
        on_step(f"{each.name} ({index + 1} of {len(names)})")
        before, current = current, current.clone()
        log = RewriteLog()
        problem = apply_recorded(each, context, current, log)
        if problem is None and same_program(current, before):
            # If the program before could not run, this equal one cannot either.
            if before is right:
                right, since = current, index + 1
            continue
        try:
            problem = problem or judge.problem(current)
        except CannotRun:
            not_run.append(each.name)
            continue
        if problem is not None:
            wrong = _WrongPass(context, each, right, current, since == index, log, problem)
            rewrite, value = wrong.blamed(judge, on_step)
            return Verdict(
                names,
                judge.worst,
                index,
                since,
                problem.kind,
                problem.text,
                rewrite,
                len(log.begun),
                value,
                tuple(not_run),
            )
        right, since = current, index + 1
    return Verdict(names, judge.worst, not_run=tuple(not_run))


@dataclass(frozen=True)
class _WrongPass:
    """The first pass after which the program is wrong.

    right: the last module known to be right. wrong: the module after the pass. alone: whether right
    is the module just before the pass. log: the rewrites that led to wrong.
    """

    context: Context
    tested: ModulePass
    right: ModuleOp
    wrong: ModuleOp
    alone: bool
    log: RewriteLog
    problem: Problem

    def blamed(
        self, judge: Judge, on_step: OnStep
    ) -> tuple[BlamedRewrite | None, WrongValue | None]:
        """The wrong rewrite and the wrong value, where known."""
        if self.problem.kind == "crash":
            return self.log.unfinished(), None
        rewrite, right, wrong = None, self.right, self.wrong
        made, name = len(self.log.begun), self.tested.name
        if self.alone and made:
            on_step(f"{name}: which of {made} rewrite{'s' * (made != 1)}")
            found = first_wrong_rewrite(judge, self.tested, self.context, right, made)
            if found is not None:
                rewrite, right, wrong = found
        on_step(f"{name}: which value")
        value = self.problem.value or first_wrong_value(judge, right, wrong)
        # The operation at which the machine faults need not be the one to blame.
        if rewrite is None and value is not None and self.problem.kind == "value":
            rewrite = self.log.made(value)
        return rewrite, value
