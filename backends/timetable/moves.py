"""The moves of a superstep, as the timetable reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypedDict, cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Data

from ...dialects.tile import CopyOp, SuperstepOp
from ...dialects.variable import Variable
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import Counts, overlap
from ...ir.geometry.part_keys import Key
from ...ir.geometry.space import Space
from ...ir.geometry.streams import Streams, count_deliveries, streams_of
from ...ir.support.arrays import Integers
from ...ir.support.errors import InputError

MOST_DELIVERIES = 1 << 23
"""Deliveries of an exchange that has a timetable. Chosen by judgement: about a gigabyte with all
that is computed from them."""

MOST_WORDS = 4148
"""Words of the longest message. Source: ipu-stack exchange.rs, a send of 64 words and more that
goes on for 4,096, less what starts it."""


class MessageOrder(Protocol):
    """An order of the messages of a move."""

    def values(self, d: Sequence[Integers], s: Sequence[Integers]) -> Sequence[Integers]:
        """The keys of each message, the first key first.

        Args:
            d: for each dimension of the destination's grid, the part of the first receiver.
            s: for each dimension of the source's grid, the part of the sender.
        """
        ...


@dataclass(frozen=True)
class KeyOrder:
    """An order that keys alone give."""

    keys: tuple[Key, ...] = ()

    def values(self, d: Sequence[Integers], s: Sequence[Integers]) -> list[Integers]:
        """The keys of each message: see MessageOrder."""
        return [key.values(d, s) for key in self.keys]

    def text(self) -> str:
        """The keys as text: (d0 - s0) mod 4, s1."""
        return ", ".join(key.text() for key in self.keys)


@dataclass(frozen=True, eq=False)
class ColourOrder:
    """An order with a number for each stream.

    Attributes:
        colours: (streams,), in the order of `Streams`.
    """

    colours: Counts

    def text(self) -> str:
        """What it is, for people."""
        return f"{int(self.colours.max(initial=-1)) + 1} colours"


@dataclass(frozen=True, eq=False)
class Move:
    """What one move of a superstep carries from one variable to another.

    Attributes:
        name: for people: @source -> @destination.
        source, destination: the layouts; the destination's is the one that the move fills.
        space: the move between them; None if elements stay in order.
        itemsize: bytes of an element.
        address: of the blocks that are read and of those that are filled, in bytes.
        order: in which its messages leave; None for tile order.
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
    order: MessageOrder | ColourOrder | None = None
    chunk: int = MOST_WORDS
    width: int = 32
    copy: int = 0

    @property
    def streams(self) -> Streams:
        """What its cells send each other."""
        return streams_of(self.source, self.destination, self.space)

    def deliveries(self) -> int:
        """At most so many deliveries, without making them."""
        return count_deliveries(overlap(self.source, self.destination, self.space))


def moves_of(step: SuperstepOp, variables: Mapping[str, Variable]) -> list[Move]:
    """The moves of a superstep, in the order of the text, one for each source.

    Raises InputError for an unknown variable.
    """
    copies = [op for op in step.body.block.ops if isinstance(op, CopyOp)]
    return [
        replace(each, copy=k)
        for k, op in enumerate(copies)
        for each in moves_of_copy(op, variables)
    ]


def moves_of_copy(op: CopyOp, variables: Mapping[str, Variable]) -> list[Move]:
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
                **_decided(op),
            )
        )
    return found


def _start(variable: Variable) -> int:
    """The address of a variable; 0 before it has one."""
    return int(getattr(variable, "start", 0))


class _Decided(TypedDict, total=False):
    """What a pass or a user has written on an operation."""

    order: MessageOrder
    chunk: int
    width: int


def _decided(op: CopyOp) -> _Decided:
    """The order, the chunk and the width of an operation's messages, as far as it has any."""
    found: _Decided = {}
    order, chunk, width = (op.properties.get(name) for name in ("order", "chunk", "width"))
    if isinstance(order, Data):
        found["order"] = cast("Data[MessageOrder]", order).data
    if isinstance(chunk, IntegerAttr):
        found["chunk"] = chunk.value.data
    if isinstance(width, IntegerAttr):
        found["width"] = width.value.data
    return found
