"""The calls that show when the variables of a program are first and last used.

Functions that call each other repeatedly are called exponentially often. The first call of a
function has the first uses of its variables and of those that it reaches, and the last call has the
last uses. All other calls lie between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block

from ..ir.well_known import ENTRY


@dataclass
class FirstAndLastCalls:
    """Says which calls to follow when a program is walked in order.

    Each function is followed twice at most.

    Attributes:
        last: the operation that calls each function last, in the last call of the function around
            it.
        within_last: whether the walk is in the last call of the current function.
    """

    functions: Mapping[str, FuncOp]
    last: dict[str, CallOp] = field(default_factory=dict[str, CallOp])
    seen: set[str] = field(default_factory=set[str])
    within_last: bool = True

    def __post_init__(self) -> None:
        if ENTRY in self.functions:
            self._find(self.functions[ENTRY].body.block)

    def _find(self, block: Block) -> None:
        for op in reversed(tuple(block.ops)):
            for region in reversed(op.regions):
                for inner in reversed(region.blocks):
                    self._find(inner)
            if isinstance(op, CallOp):
                callee = op.callee.string_value()
                if callee in self.functions and callee not in self.last:
                    self.last[callee] = op
                    self._find(self.functions[callee].body.block)

    def enter(self, call: CallOp) -> bool | None:
        """Begin to follow a call. Returns what `leave` takes, or None for a call not to follow."""
        callee, before = call.callee.string_value(), self.within_last
        last = before and self.last.get(callee) is call
        if callee in self.seen and not last:
            return None
        self.seen.add(callee)
        self.within_last = last
        return before

    def leave(self, before: bool) -> None:
        """End a call that was followed."""
        self.within_last = before
