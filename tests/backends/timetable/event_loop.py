"""A second implementation of exchanges: cycle by cycle, message by message, word by word.

It knows lanes and the order of messages, finds the times itself, and moves the bytes.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from abele.backends.links.links import routes_of
from abele.backends.target import Target
from abele.backends.timetable.timetable import Timetable
from abele.backends.timetable.words import WORD_BYTES, carried


@dataclass
class Loop:
    """What happened.

    Attributes:
        start: of each message.
        end: of each tile.
        memory: of each tile, after the exchange.
        heard: for each tile and cycle, the message that its lane in carried.
    """

    start: list[int]
    end: dict[int, int]
    memory: np.ndarray
    heard: dict[tuple[int, int], int] = field(default_factory=dict)


@dataclass
class Crossing:
    """What a message does on the links between chips.

    Attributes:
        lanes: of links, as (link, number): the cycles that each is busy from its start on.
        chips: to which it goes over links.
    """

    lanes: dict[tuple[int, int], int] = field(default_factory=dict)
    chips: set[int] = field(default_factory=set)


def deliveries_of(table: Timetable) -> list[tuple[int, int]]:
    """The message and the receiver of each delivery."""
    messages = table.messages
    return list(zip(messages.message.tolist(), messages.receiver.tolist(), strict=True))


def crossings(table: Timetable, target: Target) -> dict[int, Crossing]:
    """What each message does on links, message by message and link by link."""
    messages, routes = table.messages, routes_of(target.links)
    chips, of_chip = target.chips, target.tiles // target.chips
    found: dict[int, Crossing] = defaultdict(Crossing)
    uses: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for message, receiver in deliveries_of(table):
        of, to = int(messages.tile[message]) // of_chip, receiver // of_chip
        if of != to and to not in found[message].chips:
            found[message].chips.add(to)
            for pair, link in zip(routes.pair.tolist(), routes.link.tolist(), strict=True):
                if pair == of * chips + to:
                    uses[link][message] += 1
    for link, own in uses.items():
        bytes_per_cycle = float(routes.bytes_per_second[link]) / target.clock_hz
        lanes = max(ceil(bytes_per_cycle / WORD_BYTES), 1)
        senders = sorted({int(messages.tile[message]) for message in own})
        for message, times in own.items():
            turn = senders.index(int(messages.tile[message])) % lanes
            bytes_ = int(messages.words[message]) * WORD_BYTES * times
            found[message].lanes[link, turn] = ceil(bytes_ / (bytes_per_cycle / lanes))
    return found


def event_loop(
    table: Timetable, memory: np.ndarray, target: Target | None = None, most: int = 100_000
) -> Loop:
    """Run an exchange on the memory of all tiles, whose senders and receivers hear at once.

    Every cycle, a message leaves if all messages before it on its lanes have passed. The times of
    the timetable are not read. Words take no time on their way, unless it leads to another chip.

    Args:
        target: of several chips; None for one chip.
    """
    messages = table.messages
    count = len(messages.tile)
    over = {} if target is None else crossings(table, target)
    of_chip = len(memory) if target is None else target.tiles // target.chips
    first_word = 0
    if target is not None:
        first_word = ceil(target.links.first_word_seconds() * target.clock_hz)
    # A lane of a tile is a number, and one of a link is a pair.
    lanes: dict[Any, list[int]] = defaultdict(list)
    length: dict[tuple[Any, int], int] = {}
    windows = table.windows
    for k in range(len(windows.lane)):
        lane, message = int(windows.lane[k]), int(windows.message[k])
        if lane < 2 * len(table.control):
            lanes[lane].append(message)
            length[lane, message] = int(windows.length[k])
    for message, crossing in over.items():
        for lane, cycles in crossing.lanes.items():
            lanes[lane].append(message)
            length[lane, message] = cycles
    delay: dict[tuple[int, int], int] = defaultdict(int)
    for message, receiver in deliveries_of(table):
        if message in over and receiver // of_chip in over[message].chips:
            slowest = max(over[message].lanes.values())
            waits = max(slowest - int(messages.words[message]), 0)
            delay[message, receiver] = first_word + waits

    def later(lane: Any, message: int) -> int:
        """How much later than it leaves a message comes to a lane."""
        into = isinstance(lane, int) and lane % 2 == 1
        return delay[message, lane // 2] if into else 0

    uses: dict[int, list[Any]] = defaultdict(list)
    for lane, waiting in lanes.items():
        waiting.sort(key=lambda m: int(messages.rank[m]))
        for message in waiting:
            uses[message].append(lane)
    busy: dict[Any, int] = dict.fromkeys(lanes, 0)
    start = [-1] * count
    end: dict[int, int] = defaultdict(int)
    bytes_of: dict[int, list[tuple[int, int, int, int, int]]] = defaultdict(list)
    found = carried(table)
    for k in range(len(found.message)):
        bytes_of[int(found.message[k])].append(
            (
                int(found.place[k]),
                int(found.size[k]),
                int(found.receiver[k]),
                int(found.source[k]),
                int(found.destination[k]),
            )
        )
    heard_by: dict[int, set[int]] = defaultdict(set)
    for message, receiver in deliveries_of(table):
        heard_by[message].add(receiver)
    memory = memory.copy()
    heard: dict[tuple[int, int], int] = {}
    cycle = 0
    while any(lanes.values()):
        assert cycle < most
        for message in sorted({waiting[0] for waiting in lanes.values() if waiting}):
            mine = uses[message]
            free = max(busy[lane] - later(lane, message) for lane in mine)
            if free <= cycle and all(lanes[lane][:1] == [message] for lane in mine):
                # Its receivers may hear it so late that it left before the one that they heard.
                start[message] = max(free, 0)
                for lane in mine:
                    begins = start[message] + later(lane, message)
                    busy[lane] = begins + length[lane, message]
                    if isinstance(lane, int):
                        end[lane // 2] = max(end[lane // 2], busy[lane])
        for waiting in lanes.values():
            if waiting and start[waiting[0]] >= 0:
                waiting.pop(0)
        cycle += 1
    flying = list(enumerate(start))
    cycle = 0
    while flying:
        assert cycle < most
        for message, since in list(flying):
            speed = 2 if messages.wide[message] else 1
            longest = max((delay[message, to] for to in heard_by[message]), default=0)
            for place, size, receiver, source, destination in bytes_of[message]:
                first = (cycle - since - delay[message, receiver]) * speed * WORD_BYTES
                if first <= place < first + speed * WORD_BYTES:
                    sender = int(messages.tile[message])
                    if delay[message, receiver]:
                        # Every link has carried as many words as are heard.
                        passed = cycle + 1 - since - first_word
                        share = passed / max(over[message].lanes.values())
                        assert place + size <= share * int(messages.words[message]) * WORD_BYTES
                    assert heard.setdefault((receiver, cycle), message) == message
                    moved = memory[sender, source : source + size]
                    memory[receiver, destination : destination + size] = moved
            last = (cycle + 1 - since - longest) * speed * WORD_BYTES
            if last >= int(messages.words[message]) * WORD_BYTES:
                flying.remove((message, since))
        cycle += 1
    for tile, cycles in enumerate(table.control.tolist()):
        end[tile] = max(end[tile], cycles)
    return Loop(start, end, memory, heard)
