"""Whether a timetable can run: what a machine without any arbiter would do wrong is named."""

from __future__ import annotations

import numpy as np

from ...dialects.message_order import LONGEST_MESSAGE
from ...ir.support.arrays import Integers
from ..fabrics.fabric import Fabric
from ..faults import MachineFault
from .timetable import Timetable


def check_timetable(table: Timetable, fabric: Fabric, superstep: str = "") -> None:
    """Raise MachineFault for the first thing in a timetable that cannot happen.

    A lane carries one message at a time. A receiver hears whichever tile its multiplexer selects,
    so each delivery must be in the window of a message of that tile, for all of its words. Words
    travel exactly as long as the fabric says. A message has at most as many words as a send, and a
    wide one goes to whole pairs of tiles.

    Args:
        superstep: the name of the exchange, for the error.
    """
    for problem in (_too_long, _unheard, _late, _half_a_pair, _meeting):
        what = problem(table, fabric)
        if what:
            raise MachineFault(what, superstep=superstep or None)


def _name(table: Timetable, message: int) -> str:
    move = table.moves[int(table.messages.move[message])]
    return f"message {message} of {move.name}, from tile {table.messages.tile[message]}"


def _too_long(table: Timetable, fabric: Fabric) -> str:
    del fabric
    words = table.messages.words
    wrong = np.flatnonzero((words < 1) | (words > LONGEST_MESSAGE))
    if not len(wrong):
        return ""
    first = int(wrong[0])
    return f"{_name(table, first)}: {words[first]} words; need 1 to {LONGEST_MESSAGE}"


def _unheard(table: Timetable, fabric: Fabric) -> str:
    """A delivery whose receiver listens to another tile, and nobody's message that one hears."""
    del fabric
    messages, windows = table.messages, table.windows
    into = windows.lane % 2 == 1
    tiles = len(table.control)
    hears = windows.message[into] * tiles + windows.lane[into] // 2
    due = messages.message * tiles + messages.receiver
    missing = np.flatnonzero(~np.isin(due, hears))
    if len(missing):
        message, tile = np.divmod(int(due[missing[0]]), tiles)
        return f"{_name(table, int(message))}: tile {tile} listens to another tile"
    own = messages.tile[windows.message[into]] == windows.lane[into] // 2
    extra = np.flatnonzero(~np.isin(hears, due) & ~own)
    if len(extra):
        message, tile = np.divmod(int(hears[extra[0]]), tiles)
        return f"{_name(table, int(message))}: tile {tile} listens to it, and is no receiver"
    return ""


def _late(table: Timetable, fabric: Fabric) -> str:
    """A window that is not where the words of its message pass."""
    messages = table.messages
    due = _due(table, fabric)
    out = table.windows.lane % 2 == 0
    expected = table.start[table.windows.message]
    expected = np.where(out, expected, expected + due)
    wrong = np.flatnonzero((table.begin != expected) | (table.begin < 0))
    if not len(wrong):
        return ""
    first = int(wrong[0])
    message, lane = int(table.windows.message[first]), int(table.windows.lane[first])
    where = f"lane {'in' if lane % 2 else 'out'} of tile {lane // 2}"
    return (
        f"{_name(table, message)}: the {where} is taken from cycle {table.begin[first]}, and its "
        f"{messages.words[message]} words pass from cycle {expected[first]}"
    )


def _due(table: Timetable, fabric: Fabric) -> Integers:
    """For each window, how much later than they leave its words are there."""
    lane, message = table.windows.lane, table.windows.message
    sender, receiver = table.messages.tile[message], lane // 2
    # The sender's own lane in is busy where the other tile of its pair receives.
    hears = np.where(receiver == sender, sender ^ 1, receiver)
    return fabric.latency(sender, hears)


def _half_a_pair(table: Timetable, fabric: Fabric) -> str:
    del fabric
    messages = table.messages
    wide = messages.wide[messages.message] > 0
    most = int(messages.receiver.max(initial=0)) + 2
    heard = messages.message * most + messages.receiver
    partner = messages.receiver ^ 1
    missing = wide & ~np.isin(messages.message * most + partner, heard)
    missing &= partner != messages.tile[messages.message]
    if not missing.any():
        return ""
    first = int(np.argmax(missing))
    message = int(messages.message[first])
    return (
        f"{_name(table, message)}: 64 bits wide to tile {messages.receiver[first]}, but not to "
        f"tile {partner[first]}, the other one of its pair"
    )


def _meeting(table: Timetable, fabric: Fabric) -> str:
    """Two messages that meet on a lane."""
    del fabric
    windows = table.windows
    order = np.lexsort((table.begin, windows.lane))
    lane, begin = windows.lane[order], table.begin[order]
    end = begin + windows.length[order]
    meets = np.flatnonzero((lane[1:] == lane[:-1]) & (begin[1:] < end[:-1]))
    if not len(meets):
        return ""
    first, second = (int(windows.message[order[meets[0] + k]]) for k in (0, 1))
    at = int(lane[meets[0]])
    return (
        f"{_name(table, first)}, and {_name(table, second)}, meet on the lane "
        f"{'in' if at % 2 else 'out'} of tile {at // 2} in cycle {begin[meets[0] + 1]}"
    )
