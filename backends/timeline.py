"""When each superstep of a program runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ..dialects import control
from ..dialects.tile import SuperstepOp
from ..ir.upstream import ModuleOp
from ..ir.well_known import ENTRY
from .prices.price import Executions, callee_of, functions_of


@dataclass(frozen=True)
class Execution:
    """One execution of a superstep.

    Attributes:
        start: the cycle in which it begins.
        iterations: the current iteration of each loop around it, counted from 0.
    """

    step: SuperstepOp
    start: int
    iterations: tuple[int, ...]


@dataclass(frozen=True)
class Skipped:
    """Iterations of a loop, or a call, that are not listed.

    Attributes:
        start: the cycle in which the first of them begins.
        cycles: how long all of them take.
    """

    loop: control.RepeatOp | func.CallOp
    start: int
    cycles: int
    iterations: int


def timeline(
    module: ModuleOp, cycles: Mapping[SuperstepOp, int], most: int
) -> Iterator[Execution | Skipped]:
    """The executions of one run in order, as the price of a program counts them.

    A while's test and body run once, and of an if, the dearer branch.

    Args:
        cycles: the cycles of one execution of each superstep.
        most: the most executions to list. Beyond it, the last iterations of loops are skipped, but
            never the first one, and so are further calls of a function.
    """
    functions = functions_of(module)
    walk = _Walk(functions, Executions(functions, cycles), most)
    yield from walk.block(functions[ENTRY].body.block, (ENTRY,), ())


@dataclass
class _Walk:
    functions: Mapping[str, func.FuncOp]
    executions: Executions
    left: int
    clock: int = field(default=0)
    called: set[str] = field(default_factory=set[str])

    def block(
        self, block: Block, calling: tuple[str, ...], iterations: tuple[int, ...]
    ) -> Iterator[Execution | Skipped]:
        for op in block.ops:
            yield from self._operation(op, calling, iterations)

    def _operation(
        self, op: Operation, calling: tuple[str, ...], iterations: tuple[int, ...]
    ) -> Iterator[Execution | Skipped]:
        match op:
            case SuperstepOp():
                yield Execution(op, self.clock, iterations)
                self.clock += self.executions.cycles[op]
                self.left -= 1
            case control.RepeatOp():
                yield from self._repeat(op, calling, iterations)
            case control.IfOp():
                branch = self.executions.dearer_branch(op, calling)
                yield from self.block(branch, calling, iterations)
            case control.WhileOp():
                yield from self.block(op.test.block, calling, iterations)
                yield from self.block(op.body.block, calling, iterations)
            case func.CallOp():
                callee = callee_of(op, self.functions, calling)
                inside = (*calling, callee.sym_name.data)
                once = self.executions.block(callee.body.block, inside)
                if not once:
                    return
                if sum(once.values()) > max(self.left, 0) and callee.sym_name.data in self.called:
                    skipped = Skipped(op, self.clock, self.executions.cost(once), 1)
                    self.clock += skipped.cycles
                    yield skipped
                    return
                self.called.add(callee.sym_name.data)
                yield from self.block(callee.body.block, inside, iterations)
            case _:
                return

    def _repeat(
        self, op: control.RepeatOp, calling: tuple[str, ...], iterations: tuple[int, ...]
    ) -> Iterator[Execution | Skipped]:
        once = self.executions.block(op.body.block, calling)
        if not once:
            # No superstep takes time in any of its iterations, which may be very many.
            return
        each = max(sum(once.values()), 1)
        for iteration in range(op.iterations):
            if iteration and self.left < each:
                rest = op.iterations - iteration
                skipped = Skipped(op, self.clock, rest * self.executions.cost(once), rest)
                self.clock += skipped.cycles
                yield skipped
                return
            yield from self.block(op.body.block, calling, (*iterations, iteration))
