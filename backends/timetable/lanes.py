"""Earliest start times of messages that share lanes, as a least fixed point.

A lane carries one message at a time: a tile has a lane out and a lane in. A message occupies a
window of every lane that it uses. Each lane takes its messages in the same order of ranks, so
messages never wait for each other in a circle, whatever the order is.

    lane out of tile 0   |--- message 0 ---|--- message 2 ---|
    lane in of tile 1        |--- message 0 ---|                  later by the latency
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def joined(self, other: Windows) -> Windows:
        """These windows and others."""
        return Windows(
            *(
                np.concatenate([getattr(self, name), getattr(other, name)])
                for name in ("lane", "message", "offset", "length")
            )
        )


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
    start = np.zeros(messages, np.int64)
    if not messages:
        return Starts(start, np.zeros(0, np.int64), 0)
    # Each lane in order, one behind the other; and each message's windows, one behind the other.
    order = np.lexsort((rank[windows.message], windows.lane))
    lane, message = windows.lane[order], windows.message[order]
    offset, length = windows.offset[order], windows.length[order]
    of_message = np.argsort(message, kind="stable")
    begins = np.searchsorted(message[of_message], np.arange(messages))
    np.maximum.at(start, message, -offset)
    # Where nothing else delays it, a window begins at the sum of the lengths before it on its lane.
    first = np.diff(lane, prepend=-1) != 0
    total = np.cumsum(length) - length
    before = total - total[np.maximum.accumulate(np.where(first, np.arange(len(lane)), 0))]
    # Later lanes are lifted above all earlier ones, so that one running maximum serves all.
    highest = int(length.sum() + np.abs(offset).sum() + 1)
    lift = np.cumsum(first) * highest
    shift = lift - before
    passes = 0
    while True:
        passes += 1
        earliest_begin = np.maximum.accumulate(start[message] + offset + shift) - shift
        later = np.maximum.reduceat((earliest_begin - offset)[of_message], begins)
        # Starts only grow from pass to pass.
        if limit is not None and int((earliest_begin + length).max()) > limit:
            return None
        if (later == start).all():
            break
        start = later
    begin = np.empty_like(offset)
    begin[order] = start[message] + offset
    return Starts(start, begin, passes)
