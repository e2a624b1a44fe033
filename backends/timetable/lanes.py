"""Earliest start times of messages that share lanes, as a least fixed point.

A lane carries one message at a time: a tile has a lane out and a lane in. A message occupies a
window of every lane that it uses. Each lane takes its messages in the same order of ranks, so
messages never wait for each other in a circle, whatever the order is.

    lane out of tile 0   |--- message 0 ---|--- message 2 ---|
    lane in of tile 1        |--- message 0 ---|                  later by the latency
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...ir.support.arrays import Integers


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of messages on lanes: (windows,) each.

    Attributes:
        lane: its number, from 0.
        message: which message takes the window.
        offset: cycles from the start of the message to the beginning of the window; negative where
            a receiver's clock is behind that of the sender.
        length: cycles.
    """

    lane: Integers
    message: Integers
    offset: Integers
    length: Integers

    @cached_property
    def by_message(self) -> tuple[Integers, Integers]:
        """The windows sorted by message, and where those of each message begin among them.

        Every message has a window.
        """
        order = np.argsort(self.message, kind="stable")
        sorted_messages = self.message[order]
        return order, np.flatnonzero(np.diff(sorted_messages, prepend=-1) != 0)

    @cached_property
    def by_lane(self) -> _ByLane:
        """What the lanes carry, whatever the order of their messages."""
        used, number = np.unique(self.lane, return_inverse=True)
        load = np.bincount(number, self.length, len(used)).astype(np.int64)
        slots = np.repeat(np.arange(len(used)), np.bincount(number))
        return _ByLane(number, slots, load, np.cumsum(load) - load)

    def joined(self, other: Windows) -> Windows:
        """These windows and others."""
        return Windows(
            *(
                np.concatenate([getattr(self, name), getattr(other, name)])
                for name in ("lane", "message", "offset", "length")
            )
        )


class _ByLane(NamedTuple):
    """The lanes that carry anything, counted from 0.

    Attributes:
        number: the lane of each window, (windows,).
        slots: the lane of each window after windows are sorted by lane, (windows,).
        load: cycles that each lane is busy, (lanes,).
        before: the sum of the loads of the lanes before each one, (lanes,).
    """

    number: Integers
    slots: Integers
    load: Integers
    before: Integers


@dataclass(frozen=True, eq=False)
class Starts:
    """The earliest start times.

    Attributes:
        start: of each message, (messages,).
        begin: of each window, in the order in which windows were given, (windows,).
        passes: how often all lanes were walked, the last time without a change.
    """

    start: Integers
    begin: Integers
    passes: int


def _spread(windows: Windows) -> int:
    """How much later the last window of each message begins than the first one, in all."""
    of_windows, begins = windows.by_message
    offset = windows.offset[of_windows]
    return int((np.maximum.reduceat(offset, begins) - np.minimum.reduceat(offset, begins)).sum())


def earliest(windows: Windows, rank: Integers, limit: int | None = None) -> Starts | None:
    """The earliest start of each message such that windows of a lane do not meet.

    No window begins before cycle 0. All windows of a message are where its start puts them.
    Returns None if a window would end behind the limit.

    Args:
        rank: of each message, all different; a lane takes messages in the order of their ranks,
            (messages,).
        limit: a cycle.
    """
    messages = len(rank)
    if not messages:
        return Starts(np.zeros(0, np.int64), np.zeros(0, np.int64), 0)
    # Each lane in order, one behind the other; and each message's windows, one behind the other.
    lanes = windows.by_lane
    order = np.argsort(lanes.number * (int(rank.max()) + 1) + rank[windows.message])
    message, offset, length = windows.message[order], windows.offset[order], windows.length[order]
    of_windows, begins = windows.by_message
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    of_message = place[of_windows]
    # Where nothing else delays it, a window begins at the sum of the lengths before it on its lane.
    before = np.cumsum(length)
    before -= length
    before -= lanes.before[lanes.slots]
    # Later lanes are lifted above all earlier ones, so that one running maximum serves all. No
    # start is behind the limit, and no lane delays a window by more than all that it carries.
    farthest = int(np.abs(offset).max())
    if limit is not None:
        late = limit + int(lanes.load.max())
    else:
        # Who waits for a message waits until its last window has passed.
        late = int(length.sum()) + (_spread(windows) if farthest else 0)
    highest = late + 2 * farthest + 1
    kind = np.int32 if highest * (len(lanes.load) + 1) < 1 << 31 else np.int64
    shift = (highest * np.arange(1, len(lanes.load) + 1))[lanes.slots]
    shift = (shift - before).astype(kind)
    # What a lane has left to carry from a window on: it ends no earlier than the window's beginning
    # and all of that.
    left = (lanes.load[lanes.slots] - before).astype(kind)
    start, offset = np.zeros(messages, kind), offset.astype(kind)
    if farthest:
        np.maximum.at(start, message, -offset)
    lifted = shift + offset
    passes = 0
    while True:
        passes += 1
        earliest_begin = start[message]
        earliest_begin += lifted
        np.maximum.accumulate(earliest_begin, out=earliest_begin)
        earliest_begin -= shift
        # Starts only grow from pass to pass.
        if limit is not None and int((earliest_begin + left).max()) > limit:
            return None
        earliest_begin -= offset
        later = np.maximum.reduceat(earliest_begin[of_message], begins)
        if (later == start).all():
            break
        start = later
    begin = np.empty(len(order), np.int64)
    begin[order] = start[message] + offset
    return Starts(start.astype(np.int64), begin, passes)


def lane_ends(
    windows: Windows, rank: Integers, lanes: int, limit: int | None = None
) -> Integers | None:
    """The cycle in which each lane is done, 0 for a lane without windows: (lanes,).

    Returns None if one is not done at the limit. The other arguments are those of `earliest`.
    """
    found = earliest(windows, rank, limit)
    if found is None:
        return None
    ends = np.zeros(lanes, np.int64)
    np.maximum.at(ends, windows.lane, found.begin + windows.length)
    return ends
