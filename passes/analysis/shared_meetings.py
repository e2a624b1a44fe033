"""Moves small copies between chips to later ones, so that chips meet less often.

The sums of several small gradients take one meeting instead of one each, and so do the new weights
that go out.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import TypeAlias

from xdsl.ir import Block, Operation

from ...backends.meetings import joined_by
from ...backends.target import Target
from ...dialects.home import ADDRESS
from ...dialects.steps import Copy, Vertices
from ...dialects.superstep import conflict
from ...dialects.tile import ComputeSetOp
from ...dialects.variable import Variable

SHARE = 1 / 64
"""The part of a tile's memory for what lives longer because it moves later."""

Movable: TypeAlias = Copy | ComputeSetOp


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
        used = [o for o in op.walk() if isinstance(o, Copy | Vertices)]
        return _Uses(
            frozenset(name for o in used for name in o.sources),
            frozenset(name for o in used for name in o.destinations),
        )


@dataclass
class _Later:
    """Operations in their new order. Operations are added in front of others, or between them.

    Attributes:
        ops: the operations.
        labels: a number for each, which grows with the place, and stays when others come between.
        meetings: the labels of the copies between chips.
        read, written: for each variable, the label of the first operation that reads or writes it.
    """

    ops: list[Movable] = field(default_factory=list[Movable])
    labels: list[Fraction] = field(default_factory=list[Fraction])
    meetings: list[Fraction] = field(default_factory=list[Fraction])
    read: dict[str, Fraction] = field(default_factory=dict[str, Fraction])
    written: dict[str, Fraction] = field(default_factory=dict[str, Fraction])

    def insert(self, at: int, op: Movable, uses: _Uses, *, meets: bool) -> None:
        """Insert an operation at a place.

        Args:
            at: how many of the others come before it.
            meets: whether it is a copy between chips.
        """
        ends = self.labels[at - 1 : at] or [self.labels[0] - 2 if self.labels else Fraction(0)]
        ends += self.labels[at : at + 1] or [ends[0] + 2]
        label = sum(ends, Fraction(0)) / 2
        self.ops.insert(at, op)
        self.labels.insert(at, label)
        if meets:
            insort(self.meetings, label)
        for first, names in ((self.read, uses.read), (self.written, uses.written)):
            first.update((name, min(first.get(name, label), label)) for name in names)

    def end(self, uses: _Uses) -> int:
        """The place of the first operation that has to stay behind one with these uses."""
        ordered = (
            *((self.written, name) for name in uses.read | uses.written),
            *((self.read, name) for name in uses.written),
        )
        labels = [first[name] for first, name in ordered if name in first]
        return bisect_left(self.labels, min(labels)) if labels else len(self.ops)

    def copies_at(self, place: int) -> tuple[int, int]:
        """Where the copies around a place begin and end, which share a superstep."""
        start = stop = place
        while start and isinstance(self.ops[start - 1], Copy):
            start -= 1
        while stop < len(self.ops) and isinstance(self.ops[stop], Copy):
            stop += 1
        return start, stop

    def last_meeting(self, end: int) -> int:
        """Where the last copies before a place begin among which is one between chips, and which
        another one may join; 0 if there are none."""
        stop = len(self.meetings)
        if end < len(self.labels):
            stop = bisect_left(self.meetings, self.labels[end])
        while stop:
            first, behind = self.copies_at(bisect_left(self.labels, self.meetings[stop - 1]))
            # An operation at the end that needs its order may be one of these copies.
            if behind <= end and conflict(self.ops[first:behind]) is None:
                return first
            stop = bisect_left(self.meetings, self.labels[first])
        return 0


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
            self.between[op] = isinstance(op, Copy) and bool(
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
        found = _Later()
        # Later operations find their places first, so that earlier ones join them there.
        for op in reversed(ops):
            at, more = self._place(op, found), self._bytes(op)
            if at and more <= self.room:
                self.room -= more
                self.longer |= self.uses[op].read
            else:
                at = 0
            found.insert(at, op, self.uses[op], meets=self.is_between_chips(op))
        return found.ops

    def _place(self, op: Movable, later: _Later) -> int:
        """How many of the later operations an operation moves behind."""
        uses = self.uses[op]
        brings = self.is_between_chips(op)
        if (not brings and not uses.read & self.brought) or self._has_addresses(uses):
            return 0
        end = later.end(uses)
        return later.last_meeting(end) if brings else later.copies_at(end)[0]

    def _bytes(self, op: Movable) -> int:
        """Bytes of a tile that live longer when an operation moves later."""
        every = (self.variables[name] for name in self.uses[op].read - self.longer)
        return sum(each.bytes_per_tile for each in every if not each.is_resident)

    def _has_addresses(self, uses: _Uses) -> bool:
        names: Iterable[str] = uses.read | uses.written
        return any(ADDRESS in self.variables[name].attributes for name in names)
