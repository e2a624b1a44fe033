"""How many iterations of loops and calls of functions one run may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation

from ..dialects.control import IfOp, RepeatOp, WhileOp
from ..ir.provenance import place
from ..ir.support.errors import InputError
from ..ir.support.limits import ITERATIONS, NESTED_CALLS, Limit, short
from .faults import IterationLimit


@dataclass
class Iterations:
    """The iterations and calls that are left to a run.

    A loop of a known count, and a call of a function with such loops, are refused before they
    begin.

    Attributes:
        most: how many a run may take; None for as many as the limit allows.
        limit: the limit that a message names.
    """

    functions: Mapping[str, FuncOp]
    most: int | None = None
    limit: Limit = ITERATIONS
    left: int = 0
    depth: int = 0
    _least: dict[Block, int] = field(default_factory=dict[Block, int])

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin a run, which may take all iterations."""
        self.left = self.limit.most if self.most is None else self.most
        self.depth = 0
        self._deepest = NESTED_CALLS.most

    def take(self, op: Operation) -> None:
        """Count an iteration of a loop. Raises IterationLimit if none is left."""
        if self.left <= 0:
            raise self._refused(op, "still running")
        self.left -= 1

    def repeat(self, op: RepeatOp) -> int:
        """Count all iterations of a loop, and return them.

        Raises IterationLimit if too few are left.
        """
        iterations = op.iterations
        if iterations * (1 + self.least(op.body.block)) > self.left:
            raise self._refused(op, f"{short(iterations)} iterations")
        self.left -= iterations
        return iterations

    def call(self, op: Operation, callee: FuncOp) -> None:
        """Count a call, which `back` ends.

        Raises IterationLimit if the function takes more iterations than are left, and InputError
        if calls are nested too deeply.
        """
        if self.depth >= self._deepest:
            raise InputError(NESTED_CALLS.refusal(f"{op.name} at {place(op)}: nested too deeply"))
        needed = 1 + self.least(callee.body.block)
        if needed > self.left:
            raise self._refused(op, f"takes {short(needed)} iterations and calls")
        self.left -= 1
        self.depth += 1

    def back(self) -> None:
        """Return from a call."""
        self.depth -= 1

    def _refused(self, op: Operation, what: str) -> IterationLimit:
        most = self.limit.most if self.most is None else self.most
        return IterationLimit(self.limit.refusal(f"{op.name} at {place(op)}: {what}", most))

    def least(self, block: Block) -> int:
        """The iterations and calls that a block takes in every run.

        Each function is looked at once.
        """
        if block not in self._least:
            # A function that calls itself only ends if it does not always do so.
            self._least[block] = 0
            self._least[block] = sum(map(self._of, block.ops))
        return self._least[block]

    def _of(self, op: Operation) -> int:
        match op:
            case RepeatOp():
                return op.iterations * (1 + self.least(op.body.block))
            case IfOp():
                return min(self.least(op.then.block), self.least(op.otherwise.block))
            case WhileOp():
                return self.least(op.test.block)
            case CallOp():
                callee = self.functions.get(op.callee.string_value())
                return 1 if callee is None else 1 + self.least(callee.body.block)
            case _:
                return 0
