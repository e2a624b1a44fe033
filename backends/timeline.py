"""When each superstep of a program runs, on each chip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ..dialects import control
from ..dialects.steps import Read, Superstep
from ..ir.support.arrays import Integers
from ..ir.upstream import ModuleOp
from ..ir.well_known import ENTRY
from .clocks.advance import Advance
from .clocks.executions import Executions
from .clocks.program import ProgramClocks
from .clocks.section import Power, Section
from .clocks.zones import zones_of
from .functions import callee_of, functions_of
from .target import Target


@dataclass(frozen=True, eq=False)
class OnZones:
    """What happens in some clock zones. A chip is a zone, and so are its I/O tiles.

    Each array is (zones,).

    Attributes:
        zones: those that take part, in order.
        arrives: the cycle in which each of them is done with everything before.
        starts: the cycle in which those that it meets are, too: it waits from arrives to starts.
        ends: the cycle in which it is done.
    """

    zones: Integers
    arrives: Integers
    starts: Integers
    ends: Integers

    @property
    def start(self) -> int:
        """The cycle in which the first zone starts."""
        return int(self.starts.min())

    @property
    def end(self) -> int:
        """The cycle in which the last zone is done."""
        return int(self.ends.max())

    @property
    def cycles(self) -> int:
        """The cycles from the start of the first zone to the end of the last one."""
        return self.end - self.start


@dataclass(frozen=True, eq=False)
class Execution(OnZones):
    """One execution of a superstep.

    Attributes:
        iterations: the current iteration of each loop around it, counted from 0.
    """

    step: Superstep
    iterations: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Skipped(OnZones):
    """Iterations of a loop, or a call, that are not listed. Zones wait within them, not before."""

    loop: control.RepeatOp | func.CallOp
    iterations: int


def timeline(
    module: ModuleOp, advances: Mapping[Superstep, Advance], target: Target, most: int
) -> Iterator[Execution | Skipped]:
    """The executions of one run in order, as the price of a program counts them.

    A while's test and body run once, and of an if, the dearer branch. The order is that in which
    one chip would run them. On several chips, an execution may start before one that is listed
    before it.

    Args:
        advances: what one execution of each superstep does to the clocks.
        most: the most executions to list. Beyond it, the last iterations of loops are skipped, but
            never the first one, and so are further calls of a function.
    """
    zones = zones_of(target, target.tiles).count
    clocks = ProgramClocks(functions_of(module), advances, zones)
    walk = _Walk(clocks, Executions(clocks), most, np.zeros(zones, np.int64))
    yield from walk.block(clocks.functions[ENTRY].body.block, (ENTRY,), ())


@dataclass
class _Walk:
    program: ProgramClocks
    executions: Executions
    left: int
    clocks: Integers
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
            case Superstep():
                yield self._execution(op, iterations)
            case control.RepeatOp():
                yield from self._repeat(op, calling, iterations)
            case control.IfOp():
                branch = self.program.dearer_branch(op, calling)
                yield from self.block(branch, calling, iterations)
            case control.WhileOp():
                yield from self.block(op.test.block, calling, iterations)
                yield from self.block(op.body.block, calling, iterations)
            case func.CallOp():
                yield from self._call(op, calling, iterations)
            case Read():
                self.clocks = self.program.after_read(self.clocks)
            case _:
                return

    def _execution(self, step: Superstep, iterations: tuple[int, ...]) -> Execution:
        advance, arrives = self.program.advances[step], self.clocks
        starts = advance.starts(arrives)
        self.clocks = starts + advance.cycles
        self.left -= 1
        zones = np.flatnonzero(advance.takes_part)
        return Execution(zones, arrives[zones], starts[zones], self.clocks[zones], step, iterations)

    def _skipped(
        self, op: control.RepeatOp | func.CallOp, section: Section, iterations: int
    ) -> Skipped:
        before = self.clocks
        self._pass(section)
        zones = np.flatnonzero(self.clocks != before)
        zones = zones if len(zones) else np.arange(len(before))
        begin = before[zones]
        return Skipped(zones, begin, begin, self.clocks[zones], op, iterations)

    def _pass(self, section: Section) -> None:
        """Run a section of which nothing is listed."""
        self.clocks = section.ways.after(self.clocks[:, None])[0][:, 0]

    def _call(
        self, op: func.CallOp, calling: tuple[str, ...], iterations: tuple[int, ...]
    ) -> Iterator[Execution | Skipped]:
        callee = callee_of(op, self.program.functions, calling)
        name = callee.sym_name.data
        inside = (*calling, name)
        once = self.executions.block(callee.body.block, inside)
        if not once:
            self._pass(self.program.block(callee.body.block, inside))
        elif sum(once.values()) > max(self.left, 0) and name in self.called:
            yield self._skipped(op, self.program.block(callee.body.block, inside), 1)
        else:
            self.called.add(name)
            yield from self.block(callee.body.block, inside, iterations)

    def _repeat(
        self, op: control.RepeatOp, calling: tuple[str, ...], iterations: tuple[int, ...]
    ) -> Iterator[Execution | Skipped]:
        once = self.executions.block(op.body.block, calling)
        body = self.program.block(op.body.block, calling)
        if not once:
            # No superstep takes time in any of its iterations, which may be very many.
            if op.iterations:
                self._pass(Power(body, op.iterations))
            return
        each = max(sum(once.values()), 1)
        for iteration in range(op.iterations):
            if iteration and self.left < each:
                rest = op.iterations - iteration
                yield self._skipped(op, Power(body, rest), rest)
                return
            yield from self.block(op.body.block, calling, (*iterations, iteration))
