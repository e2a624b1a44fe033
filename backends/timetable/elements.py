"""What an exchange costs if tiles read and write one memory element in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...dialects.steps import Superstep
from ...dialects.variable import Variable
from ...ir.support.arrays import Integers
from ..elements import Elements
from ..target import Target
from .lanes import Windows
from .moves import Move, moves_of
from .strict import MOST_CHECKED
from .timetable import Timetable, timetable_on


@dataclass(frozen=True)
class ElementConflict:
    """A superstep in which tiles send from an element of their memory in which they also receive.

    Attributes:
        step: the superstep.
        tiles: how many do so; None if the exchange has too many messages to look at each.
        cycles: about how many the exchange takes longer in any order; None in the same case. Too
            many where a block lies in several elements, because it counts in each.
    """

    step: str
    tiles: int | None
    cycles: int | None


def element_conflicts(
    steps: Iterable[Superstep], variables: Mapping[str, Variable], target: Target
) -> list[ElementConflict]:
    """The supersteps in which tiles send from an element in which they also receive.

    There are none on a target whose elements nobody knows, and none on a fabric without
    timetables.
    """
    elements = Elements.of(target)
    if elements is None or not target.exchange.has_timetables:
        return []
    found: list[ElementConflict] = []
    for step in steps:
        name, moves = step.sym_name.data, moves_of(step, variables)
        if not _may_meet(moves, elements):
            continue
        if sum(move.deliveries() for move in moves) > MOST_CHECKED:
            found.append(ElementConflict(name, None, None))
            continue
        table = timetable_on(moves, target)
        tiles = tiles_in_conflict(table, elements)
        if len(tiles):
            more = busiest_element(table, elements) - table.cycles
            found.append(ElementConflict(name, len(tiles), max(more, 0)))
    return found


def _may_meet(moves: Sequence[Move], elements: Elements) -> bool:
    """Whether a block that is read and one that is written have an element in common."""
    (begin, end), (low, high) = (
        elements.around(each, each + size)
        for each, size in (_blocks(moves, side) for side in (0, 1))
    )
    return bool(((begin[:, None] < high) & (low < end[:, None])).any())


def _blocks(moves: Sequence[Move], side: int) -> tuple[Integers, Integers]:
    """The address of the block that each move reads or writes, and its bytes: (moves,) each.

    Args:
        side: 0 for the block that is read, 1 for the one that is written.
    """
    layouts = [(move.source, move.destination)[side] for move in moves]
    size = [
        max(layout.block_elements * move.itemsize, 1)
        for layout, move in zip(layouts, moves, strict=True)
    ]
    begin = [move.address[side] for move in moves]
    return np.array(begin, np.int64), np.array(size, np.int64)


def tiles_in_conflict(table: Timetable, elements: Elements) -> Integers:
    """The tiles that read words to send from an element in which they also store words."""
    shared = np.unique(_windows(table, elements).lane)
    return np.unique(_tile_of(shared, table, elements))


def busiest_element(table: Timetable, elements: Elements) -> int:
    """The cycles in which the busiest element of any tile is read or written; 0 if none does both.

    A message is taken to touch every element in which its block lies.
    """
    shared = _windows(table, elements)
    _, which = np.unique(shared.lane, return_inverse=True)
    return int(np.bincount(which, shared.length).max(initial=0))


def _windows(table: Timetable, elements: Elements) -> Windows:
    """The windows of messages on elements that one tile both reads and writes.

    An element is a lane, numbered from the last lane of the tiles on, tile by tile.
    """
    messages, deliveries = table.messages, table.messages.message
    cycles = np.where(messages.wide > 0, -(-messages.words // 2), messages.words)
    number = np.arange(len(messages.tile))
    none = np.zeros_like(number)
    reads = _spread(table, elements, 0, number, messages.tile, none, cycles)
    writes = _spread(
        table, elements, 1, deliveries, messages.receiver, table.latency, cycles[deliveries]
    )
    both = np.intersect1d(reads.lane, writes.lane)
    return _among(reads, both).joined(_among(writes, both))


def _spread(
    table: Timetable,
    elements: Elements,
    side: int,
    message: Integers,
    tile: Integers,
    offset: Integers,
    length: Integers,
) -> Windows:
    """A window for each element that the block of a message touches on a tile.

    Args:
        side: as _blocks has it.
    """
    begin, size = _blocks(table.moves, side)
    first = elements.numbers(begin)
    count = elements.numbers(begin + size - 1) - first + 1
    move = table.messages.move[message]
    times = count[move]
    which = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
    element = np.repeat(first[move], times) + which
    lane = 2 * len(table.control) + np.repeat(tile, times) * _most(table, elements) + element
    return Windows(lane, *(np.repeat(each, times) for each in (message, offset, length)))


def _most(table: Timetable, elements: Elements) -> int:
    """One more than the highest number of an element that a move touches."""
    ends = np.concatenate([np.add(*_blocks(table.moves, side)) for side in (0, 1)])
    return int(elements.numbers(ends - 1).max(initial=0)) + 1


def _tile_of(lane: Integers, table: Timetable, elements: Elements) -> Integers:
    """The tile of the number of each element."""
    return (lane - 2 * len(table.control)) // _most(table, elements)


def _among(windows: Windows, lanes: Integers) -> Windows:
    """The windows on some lanes."""
    here = np.isin(windows.lane, lanes)
    return Windows(
        *(getattr(windows, name)[here] for name in ("lane", "message", "offset", "length"))
    )
