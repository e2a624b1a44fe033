"""The exchanges of a program with their timetables, and the messages of one tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ....backends.prices.overheads import exchange_code
from ....backends.prices.price import variables_of
from ....backends.target import Target
from ....backends.timetable.link_lanes import LinkLanes, lane_name
from ....backends.timetable.moves import Move, moves_of
from ....backends.timetable.orders import best_order
from ....backends.timetable.reasons import reason_of
from ....backends.timetable.timetable import Timetable, timetable_on
from ....backends.timetable.words import carried
from ....dialects.steps import Superstep
from ....ir.support.arrays import Integers
from ....ir.support.errors import InputError
from ....ir.support.suggestions import suggestion
from ....ir.upstream import ModuleOp


@dataclass(frozen=True, eq=False)
class Exchange:
    """The exchange of a superstep.

    Attributes:
        name: of the superstep.
        table: of all its messages.
        code: bytes of the instructions of each tile that send and receive, (tiles,).
    """

    name: str
    table: Timetable
    code: Integers


def superstep_named(module: ModuleOp, name: str) -> Superstep:
    """The superstep of a name. Raises InputError if there is none."""
    steps = {op.sym_name.data: op for op in module.walk() if isinstance(op, Superstep)}
    if name not in steps:
        raise InputError(f"no superstep @{name}{suggestion(name, steps)}")
    return steps[name]


def exchanging_steps(module: ModuleOp) -> list[Superstep]:
    """The supersteps that move anything, in the order of the text."""
    variables = variables_of(module)
    steps = (op for op in module.walk() if isinstance(op, Superstep))
    return [step for step in steps if moves_of(step, variables)]


def exchange_of(module: ModuleOp, step: Superstep, target: Target, *, order: bool) -> Exchange:
    """The exchange of a superstep. Raises InputError if it has too many messages to list.

    Args:
        order: whether moves without an order get the one that order-exchanges would write.
    """
    variables = variables_of(module)
    moves = moves_of(step, variables)
    if order:
        moves = _ordered(moves, target)
    code = exchange_code(step, variables, target.tiles, target)
    return Exchange(step.sym_name.data, timetable_on(moves, target), code)


def _ordered(moves: Sequence[Move], target: Target) -> list[Move]:
    found: list[Move] = []
    for copy in dict.fromkeys(move.copy for move in moves):
        some = [move for move in moves if move.copy == copy]
        if some[0].order is None:
            best = best_order(some, target.exchange, target.tiles, links=LinkLanes.of(target)).order
            some = [replace(move, order=best) for move in some]
        found += some
    return found


def code_bytes(code: Integers) -> tuple[int, float]:
    """The most bytes of code that a tile has, and the mean of the tiles that have any."""
    having = code[code > 0]
    return int(code.max(initial=0)), float(having.mean()) if len(having) else 0.0


def why(table: Timetable, moves: Sequence[Move], links: LinkLanes | None) -> str:
    """Why an exchange takes as long as it does, for people; "" if nothing is exchanged.

    Args:
        moves: those of the timetable, with their names.
        links: between the chips of the machine; None if it has one.
    """
    reason = reason_of(table)
    if reason is None:
        return ""
    if reason.tile >= 0:
        return f"the supervisor of tile {reason.tile}"
    if reason.lanes == 1 or table.cycles <= table.bound:
        return lane_name(reason.lane, len(table.control), links)
    move = moves[reason.move]
    order = f"order <{move.order.text()}>" if move.order else "the order of the senders"
    return (
        f"{reason.messages:,} messages wait for each other on {reason.lanes:,} lanes; the last is "
        f"of {move.name}, in {order}"
    )


class MoveRow(NamedTuple):
    """One move of an exchange.

    Attributes:
        order: as text; "" for the order of the senders.
        cycles: from the first message's first word to the last message's last one.
    """

    name: str
    order: str
    messages: int
    deliveries: int
    words: int
    cycles: int


def move_rows(table: Timetable) -> list[MoveRow]:
    """The moves of an exchange, in the order of the text."""
    messages, windows = table.messages, table.windows
    move = messages.move[windows.message]
    end = table.begin + windows.length
    found: list[MoveRow] = []
    for k, each in enumerate(table.moves):
        mine, here = messages.move == k, move == k
        cycles = int(end[here].max() - table.begin[here].min()) if here.any() else 0
        found.append(
            MoveRow(
                each.name,
                "" if each.order is None else each.order.text(),
                int(mine.sum()),
                int((messages.move[messages.message] == k).sum()),
                int(messages.words[mine].sum()),
                cycles,
            )
        )
    return found


class TileRow(NamedTuple):
    """A message that a tile sends or receives.

    Attributes:
        cycle: in which its first word leaves the tile, or is at the tile.
        tiles: those that receive it, or the one that sends it.
        runs: the addresses of its bytes on this tile: first and one past the last of each run.
    """

    cycle: int
    words: int
    tiles: tuple[int, ...]
    move: str
    runs: tuple[tuple[int, int], ...]


def sends_of(table: Timetable, tile: int) -> list[TileRow]:
    """The messages that a tile sends, in the order in which they leave. Raises InputError if they
    are too many to find their addresses."""
    found, messages = carried(table), table.messages
    rows: list[TileRow] = []
    for message in np.flatnonzero(messages.tile == tile).tolist():
        receivers = messages.receiver[messages.message == message]
        mine = (found.message == message) & (found.receiver == receivers[0])
        rows.append(
            TileRow(
                int(table.start[message]),
                int(messages.words[message]),
                tuple(receivers.tolist()),
                table.moves[messages.move[message]].name,
                _runs(found.source[mine], found.size[mine]),
            )
        )
    return sorted(rows)


def receives_of(table: Timetable, tile: int) -> list[TileRow]:
    """The messages that a tile receives, in the order in which they arrive. Raises InputError as
    sends_of does."""
    found, messages = carried(table), table.messages
    rows: list[TileRow] = []
    for delivery in np.flatnonzero(messages.receiver == tile).tolist():
        message = int(messages.message[delivery])
        mine = (found.message == message) & (found.receiver == tile)
        rows.append(
            TileRow(
                int(table.start[message] + table.latency[delivery]),
                int(messages.words[message]),
                (int(messages.tile[message]),),
                table.moves[messages.move[message]].name,
                _runs(found.destination[mine], found.size[mine]),
            )
        )
    return sorted(rows)


def _runs(address: np.ndarray, size: np.ndarray) -> tuple[tuple[int, int], ...]:
    """The runs of addresses that follow each other in the order of the message."""
    if not len(address):
        return ()
    begins = np.flatnonzero(np.r_[True, address[1:] != (address + size)[:-1]])
    ends = np.r_[begins[1:], len(address)] - 1
    return tuple(zip(address[begins].tolist(), (address[ends] + size[ends]).tolist(), strict=True))
