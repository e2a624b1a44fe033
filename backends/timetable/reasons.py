"""Why an exchange takes as long as it does: a busy lane, or a chain of messages that wait."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...ir.support.arrays import Integers
from .timetable import Timetable


class Reason(NamedTuple):
    """What the last message of an exchange waits for.

    Attributes:
        lane: the last one that is done; -1 if the supervisor of a tile is done later.
        tile: that supervisor's tile; -1 if a lane is done later.
        move: of the last message; -1 if there is none.
        messages: the last message and those before it that each wait for the one before, without a
            gap.
        lanes: how many lanes they take, one after the other.
    """

    lane: int
    tile: int
    move: int
    messages: int
    lanes: int


def reason_of(table: Timetable) -> Reason | None:
    """Why the exchange ends when it does; None if nothing is exchanged."""
    if not table.cycles:
        return None
    end = table.begin + table.windows.length
    latest = np.flatnonzero((end == table.cycles) & table.on_tiles)
    if not len(latest):
        return Reason(-1, int(table.control.argmax()), -1, 0, 0)
    # Of several lanes that end last, the one that carries most says most.
    last = int(latest[table.busy[table.windows.lane[latest]].argmax()])
    lane, message = int(table.windows.lane[last]), int(table.windows.message[last])
    move = int(table.messages.move[message])
    if int(table.busy[lane]) == table.cycles:
        return Reason(lane, -1, move, int((table.windows.lane == lane).sum()), 1)
    before, through = _waits(table, end)
    messages, lanes = (int(each[message]) for each in _lengths(before, through))
    return Reason(lane, -1, move, messages + 1, lanes + int(through[message] != lane))


def _waits(table: Timetable, end: Integers) -> tuple[Integers, Integers]:
    """For each message, one that ends on a lane just as it begins there, and that lane.

    A message that waits for none has itself, and lane -1.
    """
    windows = table.windows
    order = np.lexsort((table.begin, windows.lane))
    lane, message = windows.lane[order], windows.message[order]
    tight = np.flatnonzero((lane[1:] == lane[:-1]) & (table.begin[order][1:] == end[order][:-1]))
    before = np.arange(len(table.start))
    through = np.full(len(before), -1)
    before[message[tight + 1]] = message[tight]
    through[message[tight + 1]] = lane[tight]
    return before, through


def _lengths(before: Integers, through: Integers) -> tuple[Integers, Integers]:
    """How many messages come before each in its chain, and on how many lanes it waits in a row.

    Each turn doubles the part of each chain that is known.
    """
    hops = (through >= 0).astype(np.int64)
    changes = ((through >= 0) & (through != through[before])).astype(np.int64)
    while True:
        farther = before[before]
        if (farther == before).all():
            return hops, changes
        hops, changes = hops + hops[before], changes + changes[before]
        before = farther
