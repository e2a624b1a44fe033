"""The rewrite that makes a program wrong: the last of the fewest with which it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from xdsl.ir import Operation

from ...ir.provenance import origin
from ...ir.rewriting import Source, Watcher, limited, watched
from ...ir.upstream import ModulePass
from ..bisect import BlamedRewrite
from .program import Program


class _Rewrites(Watcher):
    """Remembers which rewrites a pass has made, and of what."""

    def __init__(self) -> None:
        self.made: list[tuple[Source, str, str | None]] = []

    def begin(self, source: Source, root: Operation) -> None:
        """Note the rewrite."""
        self.made.append((source, root.name, origin(root)))


def rewrites_of(
    each: ModulePass, program: Program, most: int | None = None
) -> list[tuple[Source, str, str | None]]:
    """The rewrites that a pass makes of a program, or the first of them: where each is written, the
    name of the operation it began at, and the node that came from. Raises what the pass raises."""
    log, clone = _Rewrites(), program.module.clone()
    with watched(log), nullcontext() if most is None else limited(most):
        each.apply(program.context, clone)
    return log.made


def blamed_rewrite(
    each: ModulePass, program: Program, is_wrong: Callable[[int], bool]
) -> BlamedRewrite | None:
    """The rewrite of a pass with which a program becomes wrong.

    is_wrong: whether it is after so many rewrites. None where the pass reports none, or what is
    wrong is done outside of any. Raises what the pass and is_wrong raise.
    """
    count = len(rewrites_of(each, program))
    if not count or is_wrong(0):
        return None
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if is_wrong(middle):
            high = middle
        else:
            low = middle
    made = rewrites_of(each, program, high)
    if len(made) < high:
        return None
    source, root, node = made[high - 1]
    return BlamedRewrite(high, count, source, root, node)
