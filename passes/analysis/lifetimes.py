"""The phases in which the variables of a program at tile are live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation

from ...backends.calls import FirstAndLastCalls
from ...dialects import control, tile
from ...dialects.steps import OUTSIDE, Arrival, Copy, Departure, Read, Superstep, Vertices
from ...dialects.variable import Variable
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..schedule_supersteps import SUPERSTEP

FOREVER = np.iinfo(np.int64).max
"""The last phase of a variable that is always live."""


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """The lifetimes of variables, by their index.

    Attributes:
        phases: the first and last phase of each, (variables, 2).
        inherits: for each variable, the variables that may share its bytes although one life ends
            in the phase in which the other begins: a result, and an operand that is read in place
            for the last time.
    """

    phases: NDArray[np.int64]
    inherits: tuple[frozenset[int], ...]


@dataclass(frozen=True)
class _Access:
    """A read or write of a variable.

    Attributes:
        enclosing: the control operations around it, outermost first.
    """

    phase: int
    writes: bool
    enclosing: tuple[Operation, ...]


@dataclass
class _Clock:
    """Walks a program in order and records when each variable is read and written.

    Only the first and the last call of a function are followed, because the first and last uses of
    every variable are in one of them.

    Attributes:
        now: the current phase.
        loops: the first and last phase of each loop, and the control operations around its body.
        overwrites: vertex sets, with their phase.
        calling: functions being called.
        enclosing: the control operations around the current operation.
    """

    functions: dict[str, func.FuncOp]
    now: int = 0
    accesses: dict[str, list[_Access]] = field(default_factory=dict[str, list[_Access]])
    loops: list[tuple[int, int, tuple[Operation, ...]]] = field(
        default_factory=list[tuple[int, int, tuple[Operation, ...]]]
    )
    overwrites: list[tuple[int, Vertices]] = field(default_factory=list[tuple[int, Vertices]])
    calling: list[str] = field(default_factory=list[str])
    enclosing: tuple[Operation, ...] = ()

    def __post_init__(self) -> None:
        self.calls = FirstAndLastCalls(self.functions)

    def touch(self, reads: Sequence[str], writes: Sequence[str], phase: int = 0) -> None:
        """Record reads and writes.

        Args:
            phase: of the current superstep.
        """
        for names, writing in ((reads, False), (writes, True)):
            for name in names:
                access = _Access(self.now + phase, writing, self.enclosing)
                self.accesses.setdefault(name, []).append(access)

    def walk(self, block: Block) -> None:
        """Record the accesses of a block, superstep by superstep."""
        step: int | None = None
        for op in block.ops:
            if isinstance(op, Superstep):
                # group-supersteps has run already.
                self.now += 2
                step = None
                for inner in op.body.block.ops:
                    self.touched(inner)
                continue
            number = op.attributes.get(SUPERSTEP)
            if not isinstance(number, IntegerAttr):
                self.now += 2
                step = None
                self.control(op)
                continue
            if number.value.data != step:
                self.now += 2
                step = number.value.data
            self.touched(op)

    def touched(self, op: Operation) -> None:
        """Record the accesses of an operation in a superstep; vertices come after copies."""
        match op:
            case Copy():
                self.touch(op.sources, [op.destination])
            case Vertices():
                self.touch(op.sources, op.destinations, phase=1)
                self.overwrites.append((self.now + 1, op))
            case tile.ComputeSetOp():
                for vertices in op.body.block.ops:
                    self.touched(vertices)
            case Arrival():
                self.touch([], [op.destination])
            case Departure():
                self.touch([op.source], [])
            case _:
                pass

    def control(self, op: Operation) -> None:
        """Record the accesses of a call, a loop, a branch or a read of a predicate."""
        if isinstance(op, func.CallOp):
            callee = op.callee.string_value()
            if callee not in self.functions:
                raise InputError(f"{op.name} at {place(op)}: no function @{callee}")
            if callee in self.calling:
                raise InputError(f"{op.name} at {place(op)}: @{callee} calls itself")
            before = self.calls.enter(op)
            if before is not None:
                self.calling.append(callee)
                self.walk(self.functions[callee].body.block)
                self.calling.pop()
                self.calls.leave(before)
        elif isinstance(op, Read):
            self.touch([op.variable.string_value()], [])
        elif isinstance(op, (Copy, tile.ComputeSetOp, *OUTSIDE)):
            raise InputError(f"{op.name} at {place(op)}: no superstep; run schedule-supersteps")
        start, outer = self.now, self.enclosing
        self.enclosing = (*outer, op)
        if isinstance(op, control.RepeatOp) and op.iteration_variable is not None:
            # The control program writes the iteration number between supersteps.
            self.now += 2
            self.touch([], [op.iteration_variable])
        for region in op.regions:
            for block in region.blocks:
                self.walk(block)
        if isinstance(op, control.RepeatOp | control.WhileOp):
            self.loops.append((start, self.now + 1, self.enclosing))
        self.enclosing = outer


def lifetimes(module: ModuleOp, variables: Sequence[Variable]) -> Lifetimes:
    """The lifetimes of the variables of a module.

    States and constants are always live. A variable is live through a whole loop if its value
    enters the loop, leaves it, or may pass from one iteration to the next. The variables of a
    function are live from its first call to its last.
    Raises InputError if the module has no @main, if a called function does not exist or calls
    itself, and for operations that are in no superstep.
    """
    functions = {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, func.FuncOp)}
    if ENTRY not in functions:
        raise InputError("the module has no function @main")
    clock = _Clock(functions)
    clock.walk(functions[ENTRY].body.block)
    phases = np.array(
        [
            (0, FOREVER)
            if variable.is_resident
            else _life(clock.accesses.get(variable.symbol, []), clock.loops)
            for variable in variables
        ],
        np.int64,
    ).reshape(-1, 2)
    return Lifetimes(phases, _inherits(clock, variables, phases))


def _inherits(
    clock: _Clock, variables: Sequence[Variable], phases: NDArray[np.int64]
) -> tuple[frozenset[int], ...]:
    """For each variable, the variables that it may inherit bytes from: see Lifetimes."""
    number = {v.symbol: i for i, v in enumerate(variables)}
    found = [set[int]() for _ in variables]
    for phase, op in clock.overwrites:
        result = number[op.destination]
        if phases[result, 0] != phase or _times(clock, op.destination, phase) > 1:
            continue
        for name in op.overwritable():
            operand = number[name]
            if (
                phases[operand, 1] == phase
                and _times(clock, name, phase) == op.sources.count(name)
                and variables[operand].dtype.itemsize == variables[result].dtype.itemsize
            ):
                found[result].add(operand)
                found[operand].add(result)
    return tuple(map(frozenset, found))


def _times(clock: _Clock, name: str, phase: int) -> int:
    """How often a variable is read or written in a phase."""
    return sum(access.phase == phase for access in clock.accesses[name])


def _life(
    accesses: Sequence[_Access], loops: Sequence[tuple[int, int, tuple[Operation, ...]]]
) -> tuple[int, int]:
    """The first and last phase in which a variable is live.

    Args:
        loops: inner loops before outer ones.
    """
    if not accesses:
        return 0, 0
    first, last = accesses[0].phase, accesses[-1].phase
    for start, end, enclosing in loops:
        if last < start or first > end:
            continue
        entering = next((a for a in accesses if start <= a.phase <= end), None)
        local = start <= first and last <= end
        # If each iteration first writes the whole variable, no value passes between iterations.
        if local and entering is not None and entering.writes and entering.enclosing == enclosing:
            continue
        first, last = min(first, start), max(last, end)
    return first, last
