"""Moves small copies between chips to later ones, so that chips meet less often.

The sums of several small gradients take one meeting instead of one each, and so do the new weights
that go out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from xdsl.ir import Block, Operation

from ...backends.meetings import joined_by
from ...backends.target import Target
from ...dialects import tile
from ...dialects.home import ADDRESS
from ...dialects.superstep import conflict
from ...dialects.tile import ComputeSetOp, CopyOp
from ...dialects.variable import Variable

SHARE = 1 / 64
"""The part of a tile's memory for what lives longer because it moves later."""

Movable: TypeAlias = CopyOp | ComputeSetOp


def share_meetings(block: Block, variables: Mapping[str, Variable], target: Target) -> None:
    """Move small copies between chips to later ones of a block, where nothing in between needs
    their order, together with the operations that follow from what they bring.

    What is moved, and so lives longer, takes a small part of the memory. Nothing moves past a call,
    a loop, a branch or the host, and nothing whose variables have addresses.
    """
    own = _Mover(variables, target, round(target.usable_bytes_per_tile * SHARE))
    for is_movable, run in groupby(tuple(block.ops), lambda op: isinstance(op, Movable)):
        ops = [op for op in run if isinstance(op, Movable)]
        if not is_movable or sum(map(own.is_between_chips, ops)) < 2:
            continue
        after = ops[-1].next_op
        for op in own.moved(ops):
            op.detach()
            if after is None:
                block.add_op(op)
            else:
                block.insert_op_before(op, after)


@dataclass
class _Uses:
    """The variables that an operation reads and writes."""

    read: frozenset[str]
    written: frozenset[str]

    @staticmethod
    def of(op: Operation) -> _Uses:
        used = [o for o in op.walk() if isinstance(o, CopyOp | tile.VerticesOp)]
        return _Uses(
            frozenset(name for o in used for name in o.sources),
            frozenset(name for o in used for name in o.destinations),
        )

    def needs_order(self, other: _Uses) -> bool:
        """Whether two operations have to stay in their order."""
        return bool(self.written & (other.read | other.written) or self.read & other.written)


@dataclass
class _Mover:
    """Moves operations of blocks.

    Attributes:
        room: the bytes of a tile that may still live longer.
        brought: the variables that follow from small copies between chips.
        longer: the variables that live longer already.
    """

    variables: Mapping[str, Variable]
    target: Target
    room: int
    brought: set[str] = field(default_factory=set[str])
    longer: set[str] = field(default_factory=set[str])
    uses: dict[Operation, _Uses] = field(default_factory=dict[Operation, _Uses])
    between: dict[Operation, bool] = field(default_factory=dict[Operation, bool])

    def is_between_chips(self, op: Operation) -> bool:
        """Whether an operation is a copy between chips."""
        if op not in self.between:
            self.between[op] = isinstance(op, CopyOp) and bool(
                len(joined_by(op, self.variables, self.target.tiles_per_chip))
            )
        return self.between[op]

    def moved(self, ops: Sequence[Movable]) -> list[Movable]:
        """The operations in their new order."""
        self.uses = {op: _Uses.of(op) for op in ops}
        small = [op for op in ops if self.is_between_chips(op) and self._bytes(op) <= self.room]
        self.brought = {name for op in small for name in self.uses[op].written}
        for op in ops:
            if self.uses[op].read & self.brought:
                self.brought |= self.uses[op].written
        found: list[Movable] = []
        # Later operations find their places first, so that earlier ones join them there.
        for op in reversed(ops):
            at, more = self._place(op, found), self._bytes(op)
            if at and more <= self.room:
                self.room -= more
                self.longer |= self.uses[op].read
                found.insert(at, op)
            else:
                found.insert(0, op)
        return found

    def _place(self, op: Movable, later: Sequence[Movable]) -> int:
        """How many of the later operations an operation moves behind."""
        uses = self.uses[op]
        brings = self.is_between_chips(op)
        if (not brings and not uses.read & self.brought) or self._has_addresses(uses):
            return 0
        ordered = (i for i, each in enumerate(later) if uses.needs_order(self.uses[each]))
        end = next(ordered, len(later))
        if not brings:
            return _start_of_copies(later, end)
        last = 0
        for i in range(end):
            start = _start_of_copies(later, i)
            if self.is_between_chips(later[i]) and start != last:
                copies = _copies_from(later, start)
                last = start if conflict([op, *copies]) is None else last
        return last

    def _bytes(self, op: Movable) -> int:
        """Bytes of a tile that live longer when an operation moves later."""
        every = (self.variables[name] for name in self.uses[op].read - self.longer)
        return sum(each.bytes_per_tile for each in every if not each.is_resident)

    def _has_addresses(self, uses: _Uses) -> bool:
        names: Iterable[str] = uses.read | uses.written
        return any(ADDRESS in self.variables[name].attributes for name in names)


def _start_of_copies(ops: Sequence[Movable], at: int) -> int:
    """Where the copies begin that share a superstep with the operation at a place."""
    while at and isinstance(ops[at - 1], CopyOp):
        at -= 1
    return at


def _copies_from(ops: Sequence[Movable], start: int) -> list[Movable]:
    copies: list[Movable] = []
    for op in ops[start:]:
        if not isinstance(op, CopyOp):
            break
        copies.append(op)
    return copies
