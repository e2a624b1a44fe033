"""The moves of a superstep, as the timetable reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...dialects.message_order import LONGEST_MESSAGE, MessageOrder
from ...dialects.steps import Copy, Superstep
from ...dialects.variable import Variable
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import overlap
from ...ir.geometry.space import Space
from ...ir.geometry.streams import Streams, count_deliveries, streams_of
from ...ir.support.errors import InputError

MOST_DELIVERIES = 1 << 23
"""Deliveries of an exchange that has a timetable. Chosen by judgement: about a gigabyte with all
that is computed from them."""


@dataclass(frozen=True)
class Move:
    """What one move of a superstep carries from one variable to another.

    Attributes:
        name: for people: @source -> @destination.
        source, destination: the layouts; the destination's is the one that the move fills.
        space: the move between them; None if elements stay in order.
        itemsize: bytes of an element.
        address: of the blocks that are read and of those that are filled, in bytes.
        order: in which its messages leave; None for the order of the senders.
        chunk: the most words of a message.
        width: bits of an item: 32, or 64 where both tiles of a pair want the same words.
        copy: the operation that the move belongs to. Sources of one operation fill one variable.
    """

    name: str
    source: Layout
    destination: Layout
    space: Space | None
    itemsize: int
    address: tuple[int, int] = (0, 0)
    order: MessageOrder | None = None
    chunk: int = LONGEST_MESSAGE
    width: int = 32
    copy: int = 0

    @property
    def streams(self) -> Streams:
        """What its cells send each other."""
        return streams_of(self.source, self.destination, self.space)

    @property
    def busiest_streams(self) -> Streams:
        """What some of its cells send each other, which exchange nothing with others."""
        return streams_of(self.source, self.destination, self.space, busiest=True)

    def deliveries(self) -> int:
        """At most so many deliveries, without making them."""
        return count_deliveries(overlap(self.source, self.destination, self.space))


def moves_of(step: Superstep, variables: Mapping[str, Variable]) -> list[Move]:
    """The moves of a superstep, in the order of the text, one for each source.

    Raises InputError for an unknown variable.
    """
    copies = [op for op in step.body.block.ops if isinstance(op, Copy)]
    return [
        replace(each, copy=k)
        for k, op in enumerate(copies)
        for each in moves_of_copy(op, variables)
    ]


def moves_of_copy(op: Copy, variables: Mapping[str, Variable]) -> list[Move]:
    """The moves of one operation, one for each source.

    Raises InputError for an unknown variable.
    """
    for name in (*op.sources, op.destination):
        if name not in variables:
            raise InputError(f"{op.name}: no variable @{name}")
    target = variables[op.destination]
    filled, spaces = op.routes(target.placed)
    found: list[Move] = []
    for name, space in zip(op.sources, spaces or (None,) * len(op.sources), strict=True):
        source = variables[name]
        found.append(
            Move(
                f"@{name} -> @{op.destination}",
                source.placed,
                filled,
                space,
                target.dtype.itemsize,
                (_start(source), _start(target)),
                op.message_order,
                op.message_words,
                op.lane_bits,
            )
        )
    return found


def _start(variable: Variable) -> int:
    """The address of a variable; 0 before it has one."""
    return int(getattr(variable, "start", 0))
