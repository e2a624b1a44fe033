"""Cells whose operands are read in their first replicas only, while all replicas are equal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from ..codelets.calls import Array, Call
from ..codelets.cells import Cells
from ..codelets.stamps import Stamp
from .calls import WhileEqual


@dataclass(frozen=True)
class HostCells(Cells):
    """Cells that also know the first replicas of their operands.

    Attributes:
        first_replicas: the operands with every replica replaced by the first; an operand that
            shares bytes with the result is left unchanged.
        equal: the operands whose replicas are equal whenever cells are computed.
        read_once: the operands among them of which only the first replica is read; calls add to it
            while they are bound.
    """

    first_replicas: tuple[Array, ...] = ()
    equal: Collection[int] = ()
    read_once: set[int] = field(default_factory=set[int])

    @property
    def operands_read(self) -> tuple[Array, ...]:
        """The operands as they are read: in the first replica if replicas are always equal."""
        return tuple(
            self.first_replicas[i] if i in self.equal else a for i, a in enumerate(self.operands)
        )


def replica_calls(
    cells: Cells, which: Sequence[int], bind: Callable[[Sequence[Array]], Call | None]
) -> list[Call]:
    """A call that reads the first replicas of some operands as long as their replicas are equal.

    Args:
        bind: makes the call on operands, viewed either way; it returns None if it cannot, and then
            no call is returned.
    """
    if not isinstance(cells, HostCells):
        call = bind(cells.operands)
        return [] if call is None else [call]
    operands = list(cells.operands_read)
    call = bind(operands)
    if call is None:
        return []
    cells.read_once.update(i for i in which if i in cells.equal)
    stamps: list[Stamp] = []
    for i in which:
        stamp = cells.stamps[i] if cells.stamps else None
        if stamp is not None and cells.first_replicas[i] is not operands[i]:
            operands[i] = cells.first_replicas[i]
            stamps.append(stamp)
    once = bind(operands) if stamps else None
    return [call if once is None else (WhileEqual(stamps, once, call), ())]
