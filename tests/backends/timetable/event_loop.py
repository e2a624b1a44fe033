"""A second implementation of exchanges: cycle by cycle, message by message, word by word.

It knows lanes and the order of messages, finds the times itself, and moves the bytes.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

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


def event_loop(table: Timetable, memory: np.ndarray, most: int = 100_000) -> Loop:
    """Run an exchange on the memory of all tiles, whose senders and receivers hear at once.

    Every cycle, a message leaves if all messages before it on its lanes have passed. The times of
    the timetable are not read. Words take no time on their way.
    """
    messages = table.messages
    count = len(messages.tile)
    lanes: dict[int, list[int]] = defaultdict(list)
    length: dict[tuple[int, int], int] = {}
    windows = table.windows
    for k in range(len(windows.lane)):
        lane, message = int(windows.lane[k]), int(windows.message[k])
        assert windows.offset[k] == 0
        lanes[lane].append(message)
        length[lane, message] = int(windows.length[k])
    uses: dict[int, list[int]] = defaultdict(list)
    for lane, waiting in lanes.items():
        waiting.sort(key=lambda m: int(messages.rank[m]))
        for message in waiting:
            uses[message].append(lane)
    busy = dict.fromkeys(lanes, 0)
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
    memory = memory.copy()
    heard: dict[tuple[int, int], int] = {}
    cycle = 0
    flying: list[tuple[int, int]] = []
    while any(lanes.values()) or flying:
        assert cycle < most
        for message in sorted({waiting[0] for waiting in lanes.values() if waiting}):
            mine = uses[message]
            if all(lanes[lane][:1] == [message] and busy[lane] <= cycle for lane in mine):
                start[message] = cycle
                for lane in mine:
                    busy[lane] = cycle + length[lane, message]
                    end[lane // 2] = max(end[lane // 2], busy[lane])
                flying.append((message, cycle))
        for message, since in list(flying):
            speed = 2 if messages.wide[message] else 1
            first = (cycle - since) * speed * WORD_BYTES
            for place, size, receiver, source, destination in bytes_of[message]:
                if first <= place < first + speed * WORD_BYTES:
                    sender = int(messages.tile[message])
                    assert heard.setdefault((receiver, cycle), message) == message
                    moved = memory[sender, source : source + size]
                    memory[receiver, destination : destination + size] = moved
            if first + speed * WORD_BYTES >= int(messages.words[message]) * WORD_BYTES:
                flying.remove((message, since))
        for waiting in lanes.values():
            if waiting and start[waiting[0]] >= 0:
                waiting.pop(0)
        cycle += 1
    for tile, cycles in enumerate(table.control.tolist()):
        end[tile] = max(end[tile], cycles)
    return Loop(start, end, memory, heard)
