"""Decide which copies and compute sets share a superstep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation

from ..backends.prices.price import variables_of
from ..dialects import tile
from ..dialects.levels import TILE
from ..dialects.steps import OUTSIDE, Copy, Superstep
from ..ir.upstream import Context, ModuleOp, ModulePass
from .analysis.link_order import order_links
from .analysis.shared_meetings import share_meetings
from .plans.planned import TARGET, target_of

SUPERSTEP = "superstep"
"""The attribute that numbers an operation's superstep within its block."""


@dataclass
class _Step:
    """The variables that the operations of a superstep read and write so far."""

    computes: bool = False
    host: type[Operation] | None = None
    read: set[str] = field(default_factory=set[str])
    written: set[str] = field(default_factory=set[str])


@dataclass(frozen=True)
class ScheduleSupersteps(ModulePass):
    """Number the supersteps: copies, together with the compute set that follows them.

    tile -> tile. No copy reads or writes a variable that another copy of the same superstep writes.
    Inputs, outputs, loads and stores have supersteps of their own, since those sync with the host.
    Blocks with operations that are numbered already are left unchanged.

    On a machine with I/O tiles, loads from remote memory move to earlier supersteps, and stores to
    later ones, where tiles then wait less for the link.

    Other operations stay in order, except small copies between chips. Such a copy moves to a later
    one where it can, with the operations that depend on it, so that chips meet less often.
    """

    name = "schedule-supersteps"
    takes = TILE
    decided = "plain"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        target = target_of(op) if TARGET in op.attributes else None
        variables = variables_of(op)
        for block in [*scheduled_blocks(op)]:
            if any(SUPERSTEP in o.attributes for o in block.ops):
                continue
            if target is not None and target.chips > 1:
                share_meetings(block, variables, target)
            if target is not None and target.io_tiles:
                order_links(block, variables, target)
            _number(block)


def scheduled_blocks(op: Operation) -> Iterator[Block]:
    """The blocks of an operation whose own operations are put into supersteps, outermost first."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                if not isinstance(inner, tile.ComputeSetOp | Superstep):
                    yield from scheduled_blocks(inner)


def _number(block: Block) -> None:
    step, index = _Step(), 0
    for op in block.ops:
        if isinstance(op, Copy):
            reads, writes = set(op.sources), {op.destination}
            clash = writes & (step.read | step.written) or reads & step.written
            fresh = step.computes or step.host is not None or bool(clash)
        elif isinstance(op, tile.ComputeSetOp):
            reads, writes = set[str](), set[str]()
            fresh = step.computes or step.host is not None
        elif isinstance(op, OUTSIDE):
            reads, writes = set[str](), set[str]()
            fresh = step.host is not type(op)
        else:
            step, index = _Step(), index + 1
            continue
        if fresh:
            step, index = _Step(), index + 1
        step.read |= reads
        step.written |= writes
        step.computes = isinstance(op, tile.ComputeSetOp)
        step.host = type(op) if isinstance(op, OUTSIDE) else None
        op.attributes[SUPERSTEP] = IntegerAttr(index, i64)
