"""Colours of messages, for moves that no key serves.

Messages of one colour have different senders and different receivers, so all of them can leave at
once. An Euler split halves the messages of every tile: it pairs the messages at each sender and at
each receiver, and gives the two of a pair to different halves. After a few splits, each tile sends
at most one message of a colour, and receives at most one.
The pairs form paths and circles of even length, along which the halves alternate.

    a sends to c and d, b sends to c and d:     half 0: a -> c, b -> d     half 1: a -> d, b -> c
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...ir.geometry.streams import Streams
from ...ir.support.arrays import Integers


def colours_of(streams: Streams) -> Integers:
    """A colour for each stream: (streams,).

    A stream with several receivers has the smallest colour of its deliveries, so that it may meet
    others of its colour.
    """
    pairs = colours(streams.cell[streams.stream], streams.receiver)
    found = np.full(len(streams.cell), len(pairs), np.int64)
    np.minimum.at(found, streams.stream, pairs)
    return found


def colours(sender: Integers, receiver: Integers) -> Integers:
    """A colour for each pair, such that no sender and no receiver has one twice: (pairs,).

    There are at most as many colours as the busiest sender or receiver has pairs, rounded up to a
    power of two.
    """
    colour = np.zeros(len(sender), np.int64)
    if not len(sender):
        return colour
    most = max(int(np.bincount(each).max()) for each in (sender, receiver))
    for _ in range((most - 1).bit_length()):
        half = _halves(_paired(colour, sender), _paired(colour, receiver))
        colour = 2 * colour + half
    return colour


def _paired(colour: Integers, tile: Integers) -> Integers:
    """The message with which each one is paired at its tile; -1 for none: (messages,)."""
    order = np.lexsort((tile, colour))
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(colour[order]) != 0) | (np.diff(tile[order]) != 0)
    place = np.arange(len(order))
    place -= np.maximum.accumulate(np.where(begins, place, 0))
    last = np.append(begins[1:], True)
    partner = np.full(len(order), -1)
    first = np.flatnonzero((place % 2 == 0) & ~last)
    partner[order[first]] = order[first + 1]
    partner[order[first + 1]] = order[first]
    return partner


def _halves(at_sender: Integers, at_receiver: Integers) -> Integers:
    """0 or 1 for each message, different for the two of each pair: (messages,).

    Walks along the pairs in both directions at once, in steps of doubled length.
    """
    count = len(at_sender)
    # State 2 * m leaves message m by its pair at the sender, 2 * m + 1 by that at the receiver.
    state = np.arange(2 * count, dtype=np.int32)
    step = np.empty(2 * count, np.int32)
    step[0::2] = np.where(at_sender < 0, state[0::2], 2 * at_sender + 1)
    step[1::2] = np.where(at_receiver < 0, state[1::2], 2 * at_receiver)
    ends = step == state
    odd: NDArray[np.bool_] = ~ends
    least = state // 2
    odd_to_least = np.zeros(2 * count, np.bool_)
    ended = int(ends.sum())
    for _ in range((2 * count).bit_length()):
        ahead = least[step]
        lower = np.flatnonzero(ahead < least)
        odd_to_least[lower] = odd[lower] ^ odd_to_least[step[lower]]
        least[lower] = ahead[lower]
        odd = np.logical_xor(odd, odd[step])
        step = step[step]
        before, ended = ended, int(np.count_nonzero(ends[step]))
        # Every step that is still on its way along a path gets nearer to its end. So no more than
        # circles are left, and all messages of each know their lowest one.
        if ended == before and not len(lower):
            break
    # On a path, both ends are known; the lower one counts. On a circle, the lowest message does.
    stops: NDArray[np.bool_] = ends[step]
    last = step // 2
    nearer: NDArray[np.bool_] = np.where(last[0::2] <= last[1::2], odd[0::2], odd[1::2])
    on_circle = odd_to_least[0::2]
    return np.where(stops[0::2], nearer, on_circle).astype(np.int64)
