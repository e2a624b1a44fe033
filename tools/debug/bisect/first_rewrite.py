"""Find the first rewrite of a pass that makes a program wrong."""

from __future__ import annotations

from ....ir.errors import DoesNotFit, InputError
from ....ir.rewriting import limited
from ....ir.upstream import Context, ModuleOp, ModulePass
from .judge import CannotRun, Judge
from .rewrite_log import RewriteLog, apply_recorded
from .verdict import BlamedRewrite


def first_wrong_rewrite(
    judge: Judge, each: ModulePass, context: Context, module: ModuleOp, made: int
) -> tuple[BlamedRewrite, ModuleOp, ModuleOp] | None:
    """The first wrong rewrite, the module just before it, and the module just after it.

    made: how many rewrites the pass makes in all. Returns None if no search is possible: the module
    is on two levels in between, or the pass goes wrong outside of its rewrites.
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
        low, high = 0, made
        while high - low > 1:
            middle = (low + high) // 2
            if is_wrong(middle):
                high = middle
            else:
                low = middle
    except (CannotRun, InputError, DoesNotFit):
        return None
    return logs[high].blamed(high - 1, made, searched=True), modules[low], modules[high]
