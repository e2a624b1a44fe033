"""The phases of a program in which each variable is live."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ..dialects import control
from ..dialects.exchange import VariableOp
from ..dialects.steps import Arrival, Copy, Departure, Read, Superstep, Vertices
from ..ir.support.limits import LISTED_SUPERSTEPS
from ..ir.well_known import ENTRY
from .calls import FirstAndLastCalls
from .functions import callee_of

EXCHANGE, BEFORE, AFTER = range(3)
"""The phases of a superstep.

A result that overwrites an operand is live AFTER the computation, and that operand BEFORE it. Other
results and operands are live in both phases.
"""

PHASES = 3
"""Phases per superstep."""


@dataclass(frozen=True, order=True)
class _Access:
    """A read or write of a variable in a phase. In sorted order, reads come before writes.

    Attributes:
        certain: whether the access happens in every run, so that a write ends the life of the bytes
            before it.
    """

    phase: int
    writes: bool
    certain: bool


@dataclass
class Timeline:
    """The accesses to all variables, in order of execution.

    A loop's body appears once, and a function once per call. If that makes more supersteps than
    LISTED_SUPERSTEPS allows, a function appears in its first and last call only, and each variable
    is live from its first access to its last.

    Attributes:
        names: the names of the supersteps.
        loops: the first and last phase of each loop.
    """

    functions: Mapping[str, func.FuncOp]
    variables: Mapping[str, VariableOp]
    accesses: dict[str, list[_Access]] = field(default_factory=dict[str, list[_Access]])
    loops: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    names: list[str] = field(default_factory=list[str])
    brief: FirstAndLastCalls | None = None

    def run(self) -> None:
        """Record the accesses of the whole program."""
        if self._steps((ENTRY,), {}) > LISTED_SUPERSTEPS.most:
            self.brief = FirstAndLastCalls(self.functions)
        self._block(self.functions[ENTRY].body.block, (ENTRY,), True)

    def _steps(self, calling: tuple[str, ...], known: dict[str, int]) -> int:
        """The number of supersteps in a call of a function, with those of its own calls.

        Args:
            calling: the function, behind those that call it.
            known: the numbers of functions that were counted before.
        """
        name = calling[-1]
        if name not in known:
            count = 0
            for op in self.functions[name].walk():
                count += isinstance(op, Superstep)
                if isinstance(op, func.CallOp):
                    callee = callee_of(op, self.functions, calling)
                    count += self._steps((*calling, callee.sym_name.data), known)
            known[name] = count
        return known[name]

    def lives(self) -> Iterator[tuple[VariableOp, int, int]]:
        """The first and last phase of each life of each variable that is not resident."""
        for name, accesses in self.accesses.items():
            v = self.variables.get(name)
            if v is not None and not v.is_resident:
                for first, last in _segments(accesses, self.loops):
                    yield v, first, last

    def live(self, phase: int) -> set[str]:
        """The names of the variables that are live in a phase, without resident ones."""
        return {v.symbol for v, first, last in self.lives() if first <= phase <= last}

    def touched(self, step: int) -> set[str]:
        """The names of the variables that a superstep reads or writes."""
        return {
            name
            for name, accesses in self.accesses.items()
            if any(access.phase // PHASES == step for access in accesses)
        }

    def _touch(self, name: str, phase: int, writes: bool, certain: bool) -> None:
        # A predicate may be read before the first superstep.
        certain = certain and self.brief is None
        access = _Access(max(PHASES * (len(self.names) - 1) + phase, 0), writes, certain)
        self.accesses.setdefault(name, []).append(access)

    def _touch_all(self, names: Sequence[str], phase: int, writes: bool, certain: bool) -> None:
        for name in names:
            self._touch(name, phase, writes, certain)

    def _lies_on(self, op: Vertices, source: str) -> bool:
        """Whether the result of a vertex set overwrites a variable that it reads."""
        own, other = self.variables.get(op.destination), self.variables.get(source)
        return (
            own is not None
            and other is not None
            and own.start == other.start
            and not own.is_resident
            and source in op.overwritable()
        )

    def _block(self, block: Block, calling: tuple[str, ...], certain: bool) -> None:
        for op in block.ops:
            self._operation(op, calling, certain)

    def _operation(self, op: Operation, calling: tuple[str, ...], certain: bool) -> None:
        match op:
            case Superstep():
                self.names.append(op.sym_name.data)
                self._block(op.body.block, calling, certain)
            case Copy():
                self._touch_all(op.sources, EXCHANGE, False, certain)
                self._touch(op.destination, EXCHANGE, True, certain)
            case Vertices():
                # The result replaces the operand that it overwrites: they are never live together.
                under = [name for name in op.sources if self._lies_on(op, name)]
                elsewhere = [name for name in op.sources if name not in under]
                self._touch_all(under, BEFORE, False, certain)
                self._touch_all(elsewhere, AFTER, False, certain)
                self._touch_all(op.destinations, AFTER if under else BEFORE, True, certain)
            case Arrival():
                self._touch(op.destination, EXCHANGE, True, certain)
            case Departure():
                self._touch(op.source, EXCHANGE, False, certain)
            case Read():
                self._touch(op.variable.string_value(), AFTER, False, certain)
            case func.CallOp():
                callee = callee_of(op, self.functions, calling)
                before = True if self.brief is None else self.brief.enter(op)
                if before is None:
                    return
                self._block(callee.body.block, (*calling, callee.sym_name.data), certain)
                if self.brief is not None:
                    self.brief.leave(before)
            case control.IfOp():
                for region in op.regions:
                    self._block(region.block, calling, False)
            case control.RepeatOp() | control.WhileOp():
                start = PHASES * len(self.names)
                if isinstance(op, control.RepeatOp) and op.iteration_variable is not None:
                    # The body may read the number in its first phase, and reads are sorted first.
                    self._touch(op.iteration_variable, AFTER, True, certain)
                for region in op.regions:
                    self._block(region.block, calling, certain)
                self.loops.append((start, PHASES * len(self.names) - 1))
            case _:
                pass


def _segments(accesses: Sequence[_Access], loops: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The first and last phases in which a variable's bytes are needed, disjoint and in order."""
    found: list[list[int]] = []
    ordered = sorted(accesses)
    for access in ordered:
        if not found:
            found.append([access.phase if access.writes else 0, access.phase])
        elif access.writes and access.certain:
            found.append([access.phase, access.phase])
        else:
            found[-1][1] = access.phase
    for start, end in loops:
        inside = [a for a in ordered if start <= a.phase <= end]
        # A value that an iteration reads before writing it comes from the iteration before, or from
        # outside the loop.
        if inside and not (inside[0].writes and inside[0].certain):
            found.append([start, end])
    merged: list[list[int]] = []
    for first, last in sorted(found):
        if merged and first <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], last)
        else:
            merged.append([first, last])
    return merged
