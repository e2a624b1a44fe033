"""The rewrite that makes a program wrong: the last of the fewest with which it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from xdsl.ir import Operation

from ....ir.provenance import origin
from ....ir.rewriting import Source, Watcher, limited, watched
from ....ir.upstream import ModulePass
from ...debug.bisect import BlamedRewrite
from ..generators.program import Program


class _Rewrites(Watcher):
    """Remembers which rewrites a pass has made, and of what."""

    def __init__(self) -> None:
        self.made: list[tuple[Source, str, str | None]] = []
        self.open = False

    def begin(self, source: Source, root: Operation) -> None:
        """Note the rewrite."""
        self.made.append((source, root.name, origin(root)))
        self.open = True

    def end(self) -> None:
        """It is complete."""
        self.open = False

    def blamed(self, number: int, of: int) -> BlamedRewrite:
        """The rewrite of a number, from 1."""
        source, root, node = self.made[number - 1]
        return BlamedRewrite(number, of, source, root, node)


def _rewritten(each: ModulePass, program: Program, most: int | None = None) -> _Rewrites:
    log, clone = _Rewrites(), program.module.clone()
    with watched(log), nullcontext() if most is None else limited(most):
        each.apply(program.context, clone)
    return log


def unfinished_rewrite(each: ModulePass, program: Program) -> BlamedRewrite | None:
    """The rewrite in which a pass raises, if it does so in one."""
    log, clone = _Rewrites(), program.module.clone()
    try:
        with watched(log):
            each.apply(program.context, clone)
    # Whatever it is, it is known already.
    except Exception:
        return log.blamed(len(log.made), len(log.made)) if log.open else None
    return None


def blamed_rewrite(
    each: ModulePass, program: Program, is_wrong: Callable[[int], bool]
) -> BlamedRewrite | None:
    """The rewrite of a pass with which a program becomes wrong.

    is_wrong: whether it is after so many rewrites. None where the pass reports none, or what is
    wrong is done outside of any. Raises what the pass and is_wrong raise.
    """
    count = len(_rewritten(each, program).made)
    if not count or is_wrong(0):
        return None
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if is_wrong(middle):
            high = middle
        else:
            low = middle
    log = _rewritten(each, program, high)
    return log.blamed(high, count) if len(log.made) >= high else None
