"""Whether a timetable can run: what a machine without any arbiter would do wrong is named."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...dialects.message_order import LONGEST_MESSAGE
from ...ir.support.arrays import Integers
from ..fabrics.fabric import Fabric
from ..faults import MachineFault
from .link_lanes import Crossings, LinkLanes, lane_name
from .timetable import Timetable


def check_timetable(
    table: Timetable, fabric: Fabric, superstep: str = "", links: LinkLanes | None = None
) -> None:
    """Raise MachineFault for the first thing in a timetable that cannot happen.

    A lane carries one message at a time. A receiver hears whichever tile its multiplexer selects,
    so each delivery must be in the window of a message of that tile, for all of its words. Words
    travel exactly as long as the fabric says, and those to other chips over all links of their way.
    A message has at most as many words as a send, and a wide one goes to whole pairs of tiles.

    Args:
        superstep: the name of the exchange, for the error.
        links: between the chips of the machine; None if it has one.
    """
    checked = _Checked(table, fabric, links)
    for problem in _PROBLEMS:
        what = problem(checked)
        if what:
            raise MachineFault(what, superstep=superstep or None)


@dataclass(frozen=True, eq=False)
class _Checked:
    """A timetable, and the machine that is to run it."""

    table: Timetable
    fabric: Fabric
    links: LinkLanes | None

    @cached_property
    def crossings(self) -> Crossings:
        """What its messages ask of the lanes of links; none where there are no links."""
        if self.links is None:
            none = np.zeros(0, np.int64)
            return Crossings(none, none, none)
        each = self.table.messages
        return self.links.crossings(each.tile, each.words, each.message, each.receiver)

    @property
    def link_windows(self) -> Integers:
        """The windows on lanes of links."""
        return np.flatnonzero(~self.table.on_tiles)

    def windows(self, side: int) -> Integers:
        """The windows on lanes of tiles.

        Args:
            side: 0 for lanes out, 1 for lanes in.
        """
        return np.flatnonzero(self.table.on_tiles & (self.table.windows.lane % 2 == side))

    def message(self, number: int) -> str:
        """A message, for people."""
        messages = self.table.messages
        move = self.table.moves[int(messages.move[number])]
        return f"message {number} of {move.name}, from tile {messages.tile[number]}"

    def lane(self, number: int) -> str:
        """A lane, for people."""
        return lane_name(number, len(self.table.control), self.links)


def _too_long(checked: _Checked) -> str:
    words = checked.table.messages.words
    wrong = np.flatnonzero((words < 1) | (words > LONGEST_MESSAGE))
    if not len(wrong):
        return ""
    first = int(wrong[0])
    return f"{checked.message(first)}: {words[first]} words; need 1 to {LONGEST_MESSAGE}"


def _unsent(checked: _Checked) -> str:
    """A message that does not take the lane out of its sender, or takes one of another tile.

    A wide one takes that of the sender's partner too.
    """
    messages, windows = checked.table.messages, checked.table.windows
    here = checked.windows(0)
    number = np.arange(len(messages.tile))
    wide = np.flatnonzero(messages.wide)
    most = 2 * len(checked.table.control) + 2
    takes = windows.message[here] * most + windows.lane[here] // 2
    due = np.concatenate([number * most + messages.tile, wide * most + (messages.tile[wide] ^ 1)])
    missing, extra = due[~np.isin(due, takes)], takes[~np.isin(takes, due)]
    for wrong, what in ((missing, "does not take"), (extra, "takes")):
        if len(wrong):
            message, tile = np.divmod(int(wrong.min()), most)
            return f"{checked.message(int(message))}: {what} the lane out of tile {tile}"
    return ""


def _unheard(checked: _Checked) -> str:
    """A delivery whose receiver listens to another tile, and nobody's message that one hears."""
    messages, windows = checked.table.messages, checked.table.windows
    here = checked.windows(1)
    tiles = len(checked.table.control)
    hears = windows.message[here] * tiles + windows.lane[here] // 2
    due = messages.message * tiles + messages.receiver
    missing = np.flatnonzero(~np.isin(due, hears))
    if len(missing):
        message, tile = np.divmod(int(due[missing[0]]), tiles)
        return f"{checked.message(int(message))}: tile {tile} listens to another tile"
    # A sender hears itself where the other tile of its pair is a receiver of 64 bits.
    wide = messages.wide[messages.message] > 0
    sender = messages.tile[messages.message]
    wide &= (messages.receiver ^ 1) == sender
    itself = messages.message[wide] * tiles + sender[wide]
    missing = itself[~np.isin(itself, hears)]
    if len(missing):
        message, tile = np.divmod(int(missing[0]), tiles)
        return (
            f"{checked.message(int(message))}: 64 bits wide to tile {tile ^ 1}, but does not take "
            f"the lane in of tile {tile}, the other one of its pair"
        )
    extra = np.flatnonzero(~np.isin(hears, np.concatenate([due, itself])))
    if len(extra):
        message, tile = np.divmod(int(hears[extra[0]]), tiles)
        return f"{checked.message(int(message))}: tile {tile} listens to it, and is no receiver"
    return ""


def _unlinked(checked: _Checked) -> str:
    """A message that does not take a link on its way to another chip, or takes one that is not."""
    windows, due = checked.table.windows, checked.crossings
    here, tiles = checked.link_windows, len(checked.table.control)
    most = int(max(windows.lane.max(initial=0), due.lane.max(initial=0) + 2 * tiles)) + 1
    takes = windows.message[here] * most + windows.lane[here]
    needs = due.message * most + due.lane + 2 * tiles
    missing, extra = needs[~np.isin(needs, takes)], takes[~np.isin(takes, needs)]
    for wrong, what in ((missing, "does not take"), (extra, "takes")):
        if len(wrong):
            message, lane = np.divmod(int(wrong.min()), most)
            return f"{checked.message(int(message))}: {what} {checked.lane(int(lane))}"
    return ""


def _short(checked: _Checked) -> str:
    """A window in which not all words of its message can pass."""
    table, due = checked.table, checked.crossings
    messages, windows = table.messages, table.windows
    words = np.where(messages.wide > 0, -(-messages.words // 2), messages.words)
    need = words[windows.message]
    here = checked.link_windows
    most = int(windows.lane.max(initial=0)) + 1
    key = due.message * most + due.lane + 2 * len(table.control)
    order = np.argsort(key)
    found = np.searchsorted(key[order], windows.message[here] * most + windows.lane[here])
    need[here] = due.length[order[found]]
    wrong = np.flatnonzero(windows.length < need)
    if not len(wrong):
        return ""
    first = int(wrong[0])
    message = int(windows.message[first])
    return (
        f"{checked.message(message)}: takes {checked.lane(int(windows.lane[first]))} for "
        f"{windows.length[first]} cycles; its {messages.words[message]} words need {need[first]}"
    )


def _late(checked: _Checked) -> str:
    """A window that is not where the words of its message pass."""
    table = checked.table
    messages = table.messages
    into = checked.windows(1)
    expected = table.start[table.windows.message]
    expected[into] += _due(checked, into)
    wrong = np.flatnonzero((table.begin != expected) | (table.begin < 0))
    if not len(wrong):
        return ""
    first = int(wrong[0])
    message, lane = int(table.windows.message[first]), int(table.windows.lane[first])
    return (
        f"{checked.message(message)}: {checked.lane(lane)} is taken from cycle "
        f"{table.begin[first]}, and its {messages.words[message]} words pass from cycle "
        f"{expected[first]}"
    )


def _due(checked: _Checked, into: Integers) -> Integers:
    """For some windows of lanes in, how much later than they leave its words are there."""
    table, links = checked.table, checked.links
    lane, message = table.windows.lane[into], table.windows.message[into]
    sender, receiver = table.messages.tile[message], lane // 2
    # The sender's own lane in is busy where the other tile of its pair receives.
    hears = np.where(receiver == sender, sender ^ 1, receiver)
    due = checked.fabric.latency(sender, hears)
    if links is None:
        return due
    slowest = np.zeros(len(table.start), np.int64)
    np.maximum.at(slowest, checked.crossings.message, checked.crossings.length)
    waits = np.maximum(slowest[message] - table.messages.words[message], 0)
    away = links.chip_of(sender) != links.chip_of(receiver)
    return np.where(away, links.first_word_cycles + waits, due)


def _half_a_pair(checked: _Checked) -> str:
    messages = checked.table.messages
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
        f"{checked.message(message)}: 64 bits wide to tile {messages.receiver[first]}, but not to "
        f"tile {partner[first]}, the other one of its pair"
    )


def _meeting(checked: _Checked) -> str:
    """Two messages that meet on a lane."""
    table, windows = checked.table, checked.table.windows
    order = np.lexsort((table.begin, windows.lane))
    lane, begin = windows.lane[order], table.begin[order]
    end = begin + windows.length[order]
    meets = np.flatnonzero((lane[1:] == lane[:-1]) & (begin[1:] < end[:-1]))
    if not len(meets):
        return ""
    first, second = (int(windows.message[order[meets[0] + k]]) for k in (0, 1))
    at = int(lane[meets[0]])
    return (
        f"{checked.message(first)}, and {checked.message(second)}, meet on "
        f"{checked.lane(at)} in cycle {begin[meets[0] + 1]}"
    )


_PROBLEMS = (_too_long, _half_a_pair, _unsent, _unheard, _unlinked, _short, _late, _meeting)
"""What may be wrong, in the order in which it is looked for: a later one trusts earlier ones."""
