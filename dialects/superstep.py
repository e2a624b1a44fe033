"""The rules for operations that share a superstep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.ir import Operation

from .steps import Arrival, Copy, Departure, Load, Store, Vertices


@dataclass(frozen=True)
class Conflict:
    """Why operations cannot share a superstep.

    Attributes:
        op: the later of the two operations.
        variable: the name of the variable that both use, or "" for a transfer that comes after a
            computation.
        problem: what is wrong with op, in words.
    """

    op: Operation
    variable: str
    problem: str


def conflict(ops: Iterable[Operation]) -> Conflict | None:
    """The first reason why operations, in order, cannot share a superstep; None if they can.

    In a superstep all transfers happen at once, then all vertex sets compute at once. So a variable
    that one transfer writes is neither read nor written by another transfer, and a variable that
    one vertex set writes is neither read nor written by another vertex set.

    Args:
        ops: transfers and vertices; vertices may be in a compute set.
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
    """The variables and remote states that an operation reads and writes; None if it is neither a
    transfer nor vertices.
    """
    match op:
        case Copy() | Vertices():
            return set(op.sources), set(op.destinations)
        case Arrival():
            outside = {op.remote.string_value()} if isinstance(op, Load) else set[str]()
            return outside, {op.destination}
        case Departure():
            outside = {op.remote.string_value()} if isinstance(op, Store) else set[str]()
            return {op.source}, outside
        case _:
            return None
