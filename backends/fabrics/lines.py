"""What the links of lines carry, and how busy the links on the way of each flow are.

A line is a row of places, each joined to the next one by a link in each direction.

    places   0 --- 1 --- 2 --- 3        link i joins places i and i + 1
    a flow from 1 to 3 uses links 1 and 2 upwards
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.support.arrays import Integers


@dataclass(frozen=True, eq=False)
class OnLines:
    """Flows along lines of one length; every array is (flows,).

    Attributes:
        line: that a flow is on.
        start, end: places on it.
        bytes: that it brings.
        stream: flows of one stream may carry the same words, and a link carries each word once.
        at_most: bytes of the stream.
    """

    line: Integers
    start: Integers
    end: Integers
    bytes: Integers
    stream: Integers
    at_most: Integers


def busiest_on_the_way(flows: OnLines, lines: int, length: int) -> Integers:
    """The bytes of the busiest link that each flow uses: (flows,); 0 for a flow that stays."""
    busiest = np.zeros(len(flows.line), np.int64)
    last = length - 1
    for start, end in ((flows.start, flows.end), (last - flows.start, last - flows.end)):
        up = np.flatnonzero(start < end)
        if len(up):
            one_way = OnLines(
                *(flows.line[up], start[up], end[up], flows.bytes[up]),
                *(flows.stream[up], flows.at_most[up]),
            )
            busiest[up] = _largest(_loads(one_way, lines, length), one_way)
    return busiest


def _loads(flows: OnLines, lines: int, length: int) -> Integers:
    """The bytes on every link, for flows that all go upwards: (lines, length).

    The flows of a stream on a line are looked at from the farthest one on: each adds to the links
    before its end what the farther ones do not bring there already.
    """
    order = np.lexsort((-flows.end, flows.line, flows.stream))
    line, stream, amount = flows.line[order], flows.stream[order], flows.bytes[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(line) != 0) | (np.diff(stream) != 0)
    total = np.cumsum(amount)
    first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    total -= (total - amount)[first]
    capped = np.minimum(total, flows.at_most[order])
    before = np.minimum(total - amount, flows.at_most[order])
    change = np.zeros((lines, length), np.int64)
    np.add.at(change, (line, flows.start[order]), capped - before)
    np.subtract.at(change, (line, flows.end[order]), capped - before)
    return np.cumsum(change, axis=1)


def _largest(loads: Integers, flows: OnLines) -> Integers:
    """The largest load on the links of each flow: (flows,).

    Level k of the table has the largest of the 2**k links from each one on; two of them cover any
    way.
    """
    way = flows.end - flows.start
    level = np.frexp(way)[1] - 1
    levels = [loads]
    for k in range(int(level.max())):
        half = 1 << k
        wider = levels[-1].copy()
        wider[:, :-half] = np.maximum(wider[:, :-half], levels[-1][:, half:])
        levels.append(wider)
    table = np.stack(levels)
    later = flows.end - (1 << level)
    return np.maximum(table[level, flows.line, flows.start], table[level, flows.line, later])
