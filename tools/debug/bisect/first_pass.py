"""Find the first pass after which a program is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....backends.reference import Meaningless, first_meaningless
from ....backends.target import Target
from ....dialects.levels import NN, level_of
from ....ir.equal import same_program
from ....ir.support.errors import InputError
from ....ir.support.on_step import OnStep, ignore_step
from ....ir.upstream import Context, ModuleOp, ModulePass
from ....passes.pipelines import level_after_all
from ...driver.arrays import Array
from ...driver.verifiers import refused
from .first_rewrite import first_wrong_rewrite
from .first_value import first_wrong_value
from .judge import CannotRun, Judge, Problem, can_run, invalid
from .made_from import node_of
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
    level's own evaluator for any other level. If some of its operations get a meaning only from
    passes, the module after these passes defines the right results. A program is wrong if an output
    or a final state differs by more than `check.tolerance` allows (2e-3 of its largest value); if
    the strict machine or another evaluator rejects it; if it does not verify; or if the pass
    raises. All these runs make NumPy's calls. If no pass is wrong and the last module is of the
    exchange level, it also runs with the kernels of this host, and must give the same bits. If not,
    the verdict blames a kernel, and no pass.
    Raises the InputError and DoesNotFit of passes, since they are for the user.
    """
    start = _start(module, context, passes, on_step)
    if isinstance(start, Verdict):
        return start
    on_step("run the program before all passes" if start.index == 0 else "run the program")
    return _first_wrong(start, Judge.of(start.module, inputs, target), context, passes, on_step)


@dataclass(frozen=True)
class _Start:
    """The module that defines the right results.

    Attributes:
        index: the number of passes before it.
    """

    module: ModuleOp
    index: int = 0


def _start(
    module: ModuleOp, context: Context, passes: Sequence[ModulePass], on_step: OnStep
) -> _Start | Verdict:
    """Run passes until the program can run. Returns a verdict if one of these passes is already
    wrong.

    Raises Meaningless if the program cannot run after any pass.
    """
    unknown = first_meaningless(module) if level_of(module) == NN else None
    if unknown is None:
        return _Start(module)
    names = tuple(each.name for each in passes)
    for index, each in enumerate(passes):
        on_step(f"{each.name} ({index + 1} of {len(names)})")
        module, log = module.clone(), RewriteLog()
        problem = apply_recorded(each, context, module, log) or invalid(module)
        if problem is not None:
            rewrite = log.unfinished() if problem.kind == "crash" else None
            kind, text, made = problem.kind, problem.text, len(log.begun)
            return Verdict(names, 0.0, index, index, kind, text, rewrite, made, problem.value)
        if can_run(module):
            return _Start(module, index + 1)
        unknown = first_meaningless(module) or unknown
    raise Meaningless(unknown)


def _first_wrong(
    start: _Start, judge: Judge, context: Context, passes: Sequence[ModulePass], on_step: OnStep
) -> Verdict:
    """Run the passes after the start, until the program is wrong."""
    names = tuple(each.name for each in passes)
    right, since, not_run = start.module, start.index, list[str]()
    current = start.module
    first = refused(passes[start.index], current) if start.index < len(passes) else None
    if first is not None:
        raise InputError(first.text)
    for index, each in enumerate(passes[start.index :], start.index):
        on_step(f"{each.name} ({index + 1} of {len(names)})")
        before, current = current, current.clone()
        log = RewriteLog()
        problem = apply_recorded(each, context, current, log)
        problem = problem or _left(passes, index, start.module, current)
        if problem is None and same_program(current, before):
            # An equal program could not run, so this program cannot either.
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
                start.index,
            )
        right, since = current, index + 1
    on_step("run the compiled kernels")
    kernel = judge.kernel_problem(right)
    return Verdict(names, judge.worst, not_run=tuple(not_run), started=start.index, kernel=kernel)


def _left(
    passes: Sequence[ModulePass], index: int, start: ModuleOp, module: ModuleOp
) -> Problem | None:
    """The operation that a pass leaves, although the next pass takes none of its level.

    Raises InputError if no pass before the next one declares that it leads to that level.
    """
    found = refused(passes[index + 1], module) if index + 1 < len(passes) else None
    if found is None:
        return None
    reached = level_after_all(passes[: index + 1], level_of(start))
    # What is left of a user's level, once its own operations are gone, is a module like abele's.
    if reached is None or found.level not in (reached, reached.form):
        raise InputError(found.text)
    value = WrongValue(found.op.name, node_of(found.op))
    return Problem("invalid", f"leaves {found.text}", value)


@dataclass(frozen=True)
class _WrongPass:
    """The first pass after which the program is wrong.

    Attributes:
        right: the last module known to be right.
        wrong: the module after the pass.
        alone: whether right is the module just before the pass.
        log: the rewrites from right to wrong.
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
        # The operation at which the machine faults is not always to blame.
        if rewrite is None and value is not None and self.problem.kind == "value":
            rewrite = self.log.made(value)
        return rewrite, value
