"""How often the supersteps of a program run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ...dialects import control
from ...dialects.steps import Superstep
from ...ir.well_known import ENTRY
from ..functions import callee_of
from .program import ProgramClocks
from .section import MOST_TIMES


@dataclass(frozen=True)
class Executions:
    """How often the supersteps of a program run.

    Attributes:
        clocks: which decide between the branches of an if.
    """

    clocks: ProgramClocks
    _known: dict[Block, dict[Superstep, int]] = field(
        default_factory=dict[Block, dict[Superstep, int]], repr=False, compare=False
    )

    @property
    def functions(self) -> Mapping[str, func.FuncOp]:
        """The functions of the program by name."""
        return self.clocks.functions

    def entry(self) -> dict[Superstep, int]:
        """How often a run executes each superstep."""
        return self.block(self.functions[ENTRY].body.block, (ENTRY,))

    def block(self, block: Block, calling: tuple[str, ...]) -> dict[Superstep, int]:
        """How often each superstep runs while a block runs once, at most MOST_TIMES.

        Each block is looked at once.

        Args:
            calling: as for callee_of.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        times: dict[Superstep, int] = {}
        for op in block.ops:
            for step, count in self._operation(op, calling).items():
                times[step] = min(times.get(step, 0) + count, MOST_TIMES)
        self._known[block] = times
        return times

    def _operation(self, op: Operation, calling: tuple[str, ...]) -> dict[Superstep, int]:
        match op:
            case Superstep():
                return {op: 1}
            case control.RepeatOp():
                once = self.block(op.body.block, calling)
                return {step: count * op.iterations for step, count in once.items()}
            case control.IfOp():
                return self.block(self.clocks.dearer_branch(op, calling), calling)
            case control.WhileOp():
                test = dict(self.block(op.test.block, calling))
                for step, count in self.block(op.body.block, calling).items():
                    test[step] = test.get(step, 0) + count
                return test
            case func.CallOp():
                callee = callee_of(op, self.functions, calling)
                return self.block(callee.body.block, (*calling, callee.sym_name.data))
            case _:
                return {}
