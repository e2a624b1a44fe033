"""Apply a pass and record its rewrites."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation

from ....ir.rewriting import Source, Watcher, watched
from ....ir.support.errors import DoesNotFit, InputError, one_line_with_notes
from ....ir.upstream import Context, ModuleOp, ModulePass
from ...driver.frames import place_of
from .judge import Problem
from .made_from import node_of
from .verdict import BlamedRewrite, WrongValue


@dataclass
class _Begun:
    source: Source
    root: str
    node: str | None
    inserted: list[Operation] = field(default_factory=list[Operation])


class RewriteLog(Watcher):
    """Records the rewrites of a pass."""

    def __init__(self) -> None:
        self.begun: list[_Begun] = []
        self._open = False

    def begin(self, source: Source, root: Operation) -> None:
        """Record the start of a rewrite."""
        self.begun.append(_Begun(source, root.name, node_of(root)))
        self._open = True

    def inserted(self, op: Operation) -> None:
        """Record an operation made by the rewrite."""
        self.begun[-1].inserted.append(op)

    def end(self) -> None:
        """Record that the rewrite is complete."""
        self._open = False

    def blamed(self, row: int, of: int, searched: bool) -> BlamedRewrite:
        """The rewrite of a row. Its number is the row plus 1."""
        each = self.begun[min(row, len(self.begun) - 1)]
        return BlamedRewrite(row + 1, of, each.source, each.root, each.node, searched)

    def unfinished(self) -> BlamedRewrite | None:
        """The rewrite during which the pass raised, if any."""
        last = len(self.begun) - 1
        return self.blamed(last, last + 1, searched=True) if self._open else None

    def made(self, value: WrongValue) -> BlamedRewrite | None:
        """The last rewrite that made the operation with a wrong value."""
        for row in reversed(range(len(self.begun))):
            made = self.begun[row].inserted
            if any(op.name == value.op and node_of(op) == value.node for op in made):
                return self.blamed(row, len(self.begun), searched=False)
        return None


def apply_recorded(
    each: ModulePass, context: Context, module: ModuleOp, log: RewriteLog
) -> Problem | None:
    """Run a pass on a module in place. Returns the problem if the pass raises an error not for the
    user.
    """
    try:
        with watched(log):
            each.apply(context, module)
    except (InputError, DoesNotFit, MemoryError):
        raise
    except Exception as error:
        return Problem("crash", f"{one_line_with_notes(error)}{place_of(error)}")
    return None
