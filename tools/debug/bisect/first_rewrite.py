"""Find the first rewrite of a pass that makes a program wrong."""

from __future__ import annotations

from collections.abc import Callable

from ....ir.rewriting import limited
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.upstream import Context, ModuleOp, ModulePass
from .judge import CannotRun, Judge
from .rewrite_log import RewriteLog, apply_recorded
from .verdict import BlamedRewrite


def first_wrong_rewrite(
    judge: Judge, each: ModulePass, context: Context, module: ModuleOp, made: int
) -> tuple[BlamedRewrite, ModuleOp, ModuleOp] | None:
    """The first wrong rewrite, the module just before it, and the module just after it.

    Returns None if no search is possible: the module is on two levels in between, or the pass goes
    wrong outside of its rewrites.

    Args:
        made: the number of rewrites of the whole pass.
    """
    modules: dict[int, ModuleOp] = {}
    logs: dict[int, RewriteLog] = {}

    def is_wrong(rewrites: int) -> bool:
        clone, log = module.clone(), RewriteLog()
        with limited(rewrites):
            crashed = apply_recorded(each, context, clone, log)
        modules[rewrites], logs[rewrites] = clone, log
        return crashed is not None or judge.problem(clone) is not None

    try:
        if is_wrong(0) or not is_wrong(made):
            return None
        number = fewest_wrong(made, is_wrong)
    except (CannotRun, InputError, DoesNotFit):
        return None
    rewrite = logs[number].blamed(number - 1, made, searched=True)
    return rewrite, modules[number - 1], modules[number]


def fewest_wrong(count: int, is_wrong: Callable[[int], bool]) -> int:
    """The number of the first wrong rewrite, by bisection.

    Args:
        is_wrong: whether the program is wrong after this many rewrites. It has to be right after
            none and wrong after count.
    """
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if is_wrong(middle):
            high = middle
        else:
            low = middle
    return high
