"""The accesses of a program to its variables, and the phases through which each value is needed.

The analysis follows the control program backwards. A function is analysed once, however often it is
called, and a loop's body once, however often it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ...dialects import control
from ...dialects.exchange import VariableOp
from ...dialects.steps import Arrival, Copy, Departure, Output, Read, Superstep, Vertices
from ...ir.well_known import ENTRY
from ..functions import callee_of
from .in_place import is_in_place

PHASES = 2
"""Phases per superstep: exchange and compute."""

Needed: TypeAlias = dict[int, int]
"""For each variable whose value is needed, the access that needs it: a read, or END."""

END = -1
"""Stands for the end of the run, when states must hold and outputs must have been written."""


@dataclass(frozen=True)
class Access:
    """A read or write of a variable in a phase.

    Attributes:
        harmless: whether this is a read by vertices whose result may overwrite the operand in
            place.
        step: the superstep; None for a predicate that the control program reads.
    """

    variable: int
    phase: int
    op: Operation
    step: Superstep | None
    harmless: bool = False


@dataclass(frozen=True)
class Life:
    """A span of phases after each of which the value of a variable is still needed.

    Attributes:
        last: included.
        reader: the access that needs the value, or END.
    """

    variable: int
    first: int
    last: int
    reader: int


@dataclass
class _Phase:
    """The accesses of one phase. A predicate counts for the phase before which it is read."""

    phase: int
    reads: list[int] = field(default_factory=list[int])
    writes: list[int] = field(default_factory=list[int])


@dataclass
class _Region:
    """A part of the program whose accesses are summarised: a block, a control operation, a call.

    Attributes:
        first, end: its phases, end excluded.
        needs: the values that it reads before it writes them.
        makes: the variables that it writes in any case.
        touched: all variables that it reads or writes.
        calls: whether it calls functions.
        steps: its parts in order.
        op: the operation of the region.
    """

    first: int
    end: int = 0
    needs: Needed = field(default_factory=dict[int, int])
    makes: set[int] = field(default_factory=set[int])
    touched: set[int] = field(default_factory=set[int])
    calls: bool = False
    steps: list[_Phase | _Region] = field(default_factory=list["_Phase | _Region"])
    op: Operation | None = None


@dataclass
class Flow:
    """The accesses and lives of a program.

    Attributes:
        names: the names of the variables, by number; the outputs follow, as variables without
            bytes.
        reads, writes: accesses; those in a function appear once.
        lives: see Life.
        unwritten: values that a run needs although nothing has written them.
        supersteps: the number of reachable ones.
    """

    names: list[str]
    variables: Mapping[str, VariableOp]
    functions: Mapping[str, func.FuncOp]
    reads: list[Access] = field(default_factory=list[Access])
    writes: list[Access] = field(default_factory=list[Access])
    lives: list[Life] = field(default_factory=list[Life])
    unwritten: Needed = field(default_factory=dict[int, int])
    supersteps: int = 0


def flow_of(variables: Mapping[str, VariableOp], functions: Mapping[str, func.FuncOp]) -> Flow:
    """The flow of a program of exchange, from its entry function.

    The values of states and constants, and all outputs, are needed at the end.
    Raises InputError for a call of a function that does not exist or that calls itself.
    """
    outputs = [op.host_name.data for op in functions[ENTRY].walk() if isinstance(op, Output)]
    walk = _Walk(Flow([*variables, *dict.fromkeys(outputs)], variables, functions))
    walk.run(len(variables))
    return walk.flow


class _Walk:
    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.phase = 0
        self._number = {name: i for i, name in enumerate(flow.variables)}
        self._output = {name: i for i, name in enumerate(flow.names) if i >= len(flow.variables)}
        # In the order in which they end: a called function before its callers.
        self._bodies: dict[str, _Region] = {}
        self._needed_after: dict[str, Needed] = {}

    def run(self, count: int) -> None:
        """Fill in the flow.

        Args:
            count: the number of variables that have bytes.
        """
        flow = self.flow
        self._function(flow.functions[ENTRY], (ENTRY,))
        held = [i for i, v in enumerate(flow.variables.values()) if v.is_resident]
        self._needed_after[ENTRY] = dict.fromkeys([*held, *range(count, len(flow.names))], END)
        for name, body in reversed(self._bodies.items()):
            live = self._lives(body, self._needed_after[name], ())
            if name == ENTRY:
                # The first read of a value makes a better message than a later one, or than the
                # end.
                flow.unwritten = {
                    i: body.needs.get(i, reader)
                    for i, reader in live.items()
                    if i >= count or flow.variables[flow.names[i]].initial is None
                }

    # Accesses, in program order

    def _function(self, op: func.FuncOp, calling: tuple[str, ...]) -> _Region:
        body = self._block(op.body.block, calling)
        self._bodies[op.sym_name.data] = body
        return body

    def _block(self, block: Block, calling: tuple[str, ...], written: str | None = None) -> _Region:
        """The accesses of a block.

        Args:
            written: a variable that is written before it begins.
        """
        region = _Region(self.phase)
        if written is not None:
            op = block.parent_op()
            assert op is not None
            write = Access(self._number[written], self.phase, op, None)
            _add_phase(region, _Phase(self.phase, [], [self._write(write)]), self.flow)
            self.phase += 1
        for op in block.ops:
            match op:
                case Superstep():
                    for each in self._superstep(op):
                        _add_phase(region, each, self.flow)
                case Read():
                    read = Access(self._number[op.variable.string_value()], self.phase, op, None)
                    _add_phase(region, _Phase(self.phase, [self._read(read)]), self.flow)
                case func.CallOp():
                    _add(region, self._call(op, calling))
                case control.IfOp() | control.RepeatOp() | control.WhileOp():
                    _add(region, self._control(op, calling))
                case _:
                    pass
        region.end = self.phase
        return region

    def _superstep(self, step: Superstep) -> tuple[_Phase, _Phase]:
        exchange, compute = _Phase(self.phase), _Phase(self.phase + 1)
        self.phase += PHASES
        self.flow.supersteps += 1
        for op in step.body.block.ops:
            if isinstance(op, Departure):
                self._touch(exchange, op, step, [op.source], [])
                given = self._output.get(op.host_name.data) if isinstance(op, Output) else None
                if given is not None:
                    exchange.writes.append(self._write(Access(given, exchange.phase, op, step)))
            elif isinstance(op, Arrival):
                self._touch(exchange, op, step, [], [op.destination])
            elif isinstance(op, Copy | Vertices):
                phase = compute if isinstance(op, Vertices) else exchange
                self._touch(phase, op, step, op.sources, op.destinations)
        return exchange, compute

    def _touch(
        self,
        phase: _Phase,
        op: Operation,
        step: Superstep,
        sources: Sequence[str],
        destinations: Sequence[str],
    ) -> None:
        for index, name in enumerate(sources):
            harmless = isinstance(op, Vertices) and is_in_place(op, index, self.flow.variables)
            read = Access(self._number[name], phase.phase, op, step, harmless)
            phase.reads.append(self._read(read))
        for destination in destinations:
            write = Access(self._number[destination], phase.phase, op, step)
            phase.writes.append(self._write(write))

    def _read(self, access: Access) -> int:
        self.flow.reads.append(access)
        return len(self.flow.reads) - 1

    def _write(self, access: Access) -> int:
        self.flow.writes.append(access)
        return len(self.flow.writes) - 1

    def _call(self, op: func.CallOp, calling: tuple[str, ...]) -> _Region:
        callee = callee_of(op, self.flow.functions, calling)
        name = callee.sym_name.data
        # The phases of a function are those of its first call.
        first = self.phase
        body = self._bodies.get(name) or self._function(callee, (*calling, name))
        return _Region(first, self.phase, body.needs, body.makes, body.touched, calls=True, op=op)

    def _control(
        self, op: control.IfOp | control.RepeatOp | control.WhileOp, calling: tuple[str, ...]
    ) -> _Region:
        region = _Region(self.phase, self.phase, op=op)
        if isinstance(op, control.RepeatOp) and not op.iterations:
            return region
        written = op.iteration_variable if isinstance(op, control.RepeatOp) else None
        parts = [self._block(each.block, calling, written) for each in op.regions]
        region.end = self.phase
        region.steps.extend(parts)
        region.calls = any(part.calls for part in parts)
        first, *rest = parts
        region.needs = dict(first.needs)
        region.touched = set().union(*(part.touched for part in parts))
        if isinstance(op, control.IfOp):
            (other,) = rest
            region.needs |= other.needs
            region.makes = first.makes & other.makes
            return region
        region.makes = first.makes
        for part in rest:
            region.needs |= _without(part.needs, first.makes)
        return region

    # Lives, from the end

    def _lives(self, block: _Region, after: Needed, around: tuple[Needed, ...]) -> Needed:
        """Record the lives of values in a block. Returns the values needed before it.

        Args:
            after: the values needed after it, of those variables that this call records.
            around: values of other variables that are needed throughout.
        """
        live = {i: (block.end - 1, reader) for i, reader in after.items()}
        for step in reversed(block.steps):
            if isinstance(step, _Phase):
                for write in step.writes:
                    self._end(live, self.flow.writes[write].variable, step.phase)
                for read in step.reads:
                    live.setdefault(self.flow.reads[read].variable, (step.phase - 1, read))
                continue
            inside: Needed = {}
            everywhere = around
            if step.calls:
                everywhere = (
                    *around,
                    {i: r for i, (_, r) in live.items() if i not in step.touched},
                )
            for i in step.touched & live.keys():
                inside[i] = live[i][1]
                self._end(live, i, step.end)
            for i, reader in (_without(inside, step.makes) | step.needs).items():
                live[i] = (step.first - 1, reader)
            self._lives_inside(step, inside, everywhere)
        needed = {i: reader for i, (_, reader) in live.items()}
        for i in needed:
            self._end(live, i, block.first)
        return needed

    def _end(self, live: dict[int, tuple[int, int]], variable: int, first: int) -> None:
        """Record a life that begins in a phase, if the value is needed after it."""
        last, reader = live.pop(variable, (-1, END))
        if last >= first:
            self.flow.lives.append(Life(variable, first, last, reader))

    def _lives_inside(self, region: _Region, after: Needed, around: tuple[Needed, ...]) -> None:
        """Record the lives of values in a control operation, or the values that are needed after a
        call.
        """
        match region.op:
            case func.CallOp():
                needed = self._needed_after.setdefault(region.op.callee.string_value(), {})
                for each in (*around, after):
                    needed |= each
            case control.IfOp():
                for part in region.steps:
                    assert isinstance(part, _Region)
                    self._lives(part, after, around)
            case control.RepeatOp():
                for body in region.steps:
                    assert isinstance(body, _Region)
                    again = body.needs if region.op.iterations > 1 else {}
                    self._lives(body, again | after, around)
            case control.WhileOp():
                test, body = region.steps
                assert isinstance(test, _Region)
                assert isinstance(body, _Region)
                leaving = body.needs | after
                before_test = _without(leaving, test.makes) | test.needs
                self._lives(body, before_test, around)
                self._lives(test, _without(before_test, body.makes) | leaving, around)
            case _:
                raise AssertionError(region.op)


def _add_phase(region: _Region, step: _Phase, flow: Flow) -> None:
    """Add the accesses of a phase to a block, and to its summary."""
    region.steps.append(step)
    for read in step.reads:
        variable = flow.reads[read].variable
        region.touched.add(variable)
        if variable not in region.makes:
            region.needs.setdefault(variable, read)
    for write in step.writes:
        region.touched.add(flow.writes[write].variable)
        region.makes.add(flow.writes[write].variable)


def _add(region: _Region, inner: _Region) -> None:
    """Add a control operation or a call to a block, and to its summary."""
    region.steps.append(inner)
    region.calls |= inner.calls
    region.touched |= inner.touched
    for variable, reader in _without(inner.needs, region.makes).items():
        region.needs.setdefault(variable, reader)
    region.makes |= inner.makes


def _without(needed: Needed, made: set[int]) -> Needed:
    return {i: reader for i, reader in needed.items() if i not in made}
