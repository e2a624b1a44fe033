"""Supersteps: sync, then exchange, then compute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import IRDLOperation, prop_def, region_def
from xdsl.utils.exceptions import VerifyException

from .program import Copy, HostInput, HostOutput, Vertices

SYNC_ZONES = ("internal", "external")
"""internal: the tiles of one chip; external: the host takes part."""


class Sync(IRDLOperation):
    """All tiles of a zone wait for each other.

    zone: internal, the tiles alone, or external, the host too.
    """

    zone = prop_def(StringAttr)

    def __init__(self, zone: str):
        super().__init__(properties={"zone": StringAttr(zone)})

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if self.zone.data not in SYNC_ZONES:
            raise VerifyException(
                f'sync zone "{self.zone.data}"; need one of {", ".join(SYNC_ZONES)}'
            )


PHASES: tuple[tuple[type[Operation], ...], ...] = (
    (Sync,),
    (HostInput, Copy, HostOutput),
    (Vertices,),
)
"""What may stand in each phase of a superstep, in order."""

IN_A_SUPERSTEP = tuple(kind for phase in PHASES for kind in phase)
"""The operations of a superstep. Once variables have addresses, they stand nowhere else."""


class Superstep(IRDLOperation):
    """Sync, then exchange, then compute.

    sym_name: what reports call it. body: one sync, then copies and host traffic, then vertices.
    """

    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")

    def __init__(self, name: str, ops: Sequence[Operation]):
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[Region(Block(ops))])

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        phases = [_phase(op) for op in self.body.block.ops]
        if -1 in phases or phases != sorted(phases) or phases[:1] != [0] or phases.count(0) != 1:
            raise VerifyException(
                "a superstep is one sync, then moves and host traffic, then compute"
            )
        sync = self.body.block.first_op
        host = any(isinstance(op, HostInput | HostOutput) for op in self.body.block.ops)
        if isinstance(sync, Sync) and sync.zone.data != zone_of(host=host):
            takes = "takes part" if host else "takes no part"
            raise VerifyException(
                f'sync zone "{sync.zone.data}", but the host {takes}; need "{zone_of(host=host)}"'
            )


def zone_of(*, host: bool) -> str:
    """The zone of a superstep's sync. host: whether it takes part."""
    return SYNC_ZONES[host]


def _phase(op: Operation) -> int:
    """The phase of an operation; -1 if no phase of a superstep has it."""
    return next((i for i, kinds in enumerate(PHASES) if isinstance(op, kinds)), -1)


@dataclass(frozen=True)
class Conflict:
    """Why operations cannot share a superstep.

    op: the later of the two operations. variable: the name of the variable that both use, or "" for
    a transfer that comes after a computation. problem: what is wrong with op, in words.
    """

    op: Operation
    variable: str
    problem: str


def conflict(ops: Iterable[Operation]) -> Conflict | None:
    """The first reason why operations, in order, cannot share a superstep; None if they can.

    ops: transfers and vertices; vertices may be in a compute set. In a superstep all transfers
    happen at once, then all vertex sets compute at once. So no transfer reads or writes a variable
    that another one writes, or writes one that another reads. No vertices read or write a variable
    that others write.
    """
    read, moved, computed = set[str](), set[str](), set[str]()
    for op in (inner for each in ops for inner in each.walk()):
        touched = _touched(op)
        if touched is None:
            continue
        sources, destinations = touched
        computes = isinstance(op, Vertices)
        for name in sorted(sources & (computed if computes else computed | moved)):
            return Conflict(op, name, f"reads @{name}, which is only being made")
        for name in sorted(destinations & (computed if computes else read | moved)):
            return Conflict(op, name, f"writes @{name}, which is in use")
        if computes:
            computed |= destinations
        elif computed:
            return Conflict(op, "", "moves data behind what computes")
        else:
            moved |= destinations
            read |= sources
    return None


def _touched(op: Operation) -> tuple[set[str], set[str]] | None:
    """The variables that an operation reads and writes; None if it is no step of a program."""
    match op:
        case Copy() | Vertices():
            return set(op.sources), {op.destination}
        case HostInput():
            return set(), {op.writes.string_value()}
        case HostOutput():
            return {op.reads.string_value()}, set()
        case _:
            return None
