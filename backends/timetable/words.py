"""Which bytes each message of a timetable carries, element by element.

A timetable needs only the number of words of a message. Whoever prints the sends of a tile, or runs
a timetable, needs their addresses too. They are found by copying numbers instead of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import first_replicas
from ...ir.geometry.space import AccessMap
from ...ir.support.arrays import Integers
from ...ir.support.errors import InputError
from ..codelets.numerics import Placed
from ..evaluate.blocks import Blocks, copy_blocks
from .moves import Move
from .timetable import Timetable

WORD_BYTES = 4
"""Bytes of a word, as a chunk counts them."""

MOST_ELEMENTS = 1 << 26
"""Elements of all blocks that a move fills, beyond which none are listed: half a gigabyte a column.
Chosen by judgement."""


@dataclass(frozen=True, eq=False)
class Carried:
    """The elements that messages deliver, (elements,) each, sorted by message, receiver and place.

    An element of several words is listed word by word.

    Attributes:
        message: that brings each.
        receiver: the tile.
        source: the address on the sender, in bytes.
        destination: the address on the receiver, in bytes.
        place: bytes of the message before it.
        size: bytes of the element or word.
    """

    message: Integers
    receiver: Integers
    source: Integers
    destination: Integers
    place: Integers
    size: Integers


def carried(table: Timetable) -> Carried:
    """All elements that the messages of a timetable deliver.

    Raises InputError if a move fills too many elements to list them, which names the move.
    """
    messages = table.messages
    first = np.searchsorted(messages.move, np.arange(len(table.moves) + 1))
    found: list[Carried] = []
    numbered = list(enumerate(table.moves))
    for _, together in groupby(numbered, key=lambda each: each[1].copy):
        some = list(together)
        origins = _numbers([move for _, move in some])
        begin = 0
        for k, move in some:
            end = begin + move.source.cells * max(move.source.block_elements, 1)
            number = np.where((origins >= begin) & (origins < end), origins - begin, -1)
            streams = messages.stream[first[k] : first[k + 1]]
            pieces = np.searchsorted(streams, np.arange(len(move.streams.cell))) + first[k]
            found.append(_of_move(move, number, pieces))
            begin = end
    names = ("message", "receiver", "source", "destination", "place", "size")
    none = np.zeros(0, np.int64)
    columns = [np.concatenate([none, *(getattr(e, name) for e in found)]) for name in names]
    order = np.lexsort((columns[4], columns[1], columns[0]))
    return Carried(*(column[order] for column in columns))


def _numbers(moves: Sequence[Move]) -> Integers:
    """Where each element of every filled block comes from: (cells, block elements).

    Elements of sources are numbered by source, by cell, and by their place in the block. Padding
    is -1.
    """
    filled = moves[0].destination
    if filled.cells * max(filled.block_elements, 1) > MOST_ELEMENTS:
        raise InputError(
            f"{moves[0].name}: fills {filled.cells * filled.block_elements:,} elements; at most "
            f"{MOST_ELEMENTS:,} are listed one by one"
        )
    sources: list[Blocks] = []
    begin = 0
    for move in moves:
        elements = max(move.source.block_elements, 1)
        memory = np.arange(begin, begin + move.source.cells * elements)
        sources.append(_blocks(memory.reshape(move.source.cells, elements), move.source))
        begin += memory.size
    spaces = [move.space for move in moves]
    moved = [
        replace(space, operands=tuple(map(_unfilled, space.operands)))
        for space in spaces
        if space is not None
    ]
    numbers = np.full((filled.cells, max(filled.block_elements, 1)), -1, np.int64)
    copy_blocks(sources, moved or None, _blocks(numbers, filled))
    return numbers[:, : filled.block_elements]


def _blocks(numbers: Integers, layout: Layout) -> Blocks:
    placed = Placed(numbers.view(np.uint8), 0, np.dtype(np.int64))
    return Blocks(placed, replace(layout.stacked, access=_unfilled(layout.access)))


def _unfilled(access: AccessMap) -> AccessMap:
    return replace(access, fill=-1.0)


def _of_move(move: Move, origins: Integers, pieces: Integers) -> Carried:
    """The elements that the messages of one move deliver.

    Args:
        origins: see _numbers; -1 for elements of other moves.
        pieces: the first message of each stream.
    """
    streams = move.streams
    source, destination = streams.source, streams.destination
    block = max(source.block_elements, 1)
    receiver, at = np.nonzero(origins >= 0)
    cell, offset = np.divmod(origins[receiver, at], block)
    tile = np.asarray(destination.tiles.of(receiver))
    # A tile reads what a replica of its own holds.
    own = source.tiles.cells_on(tile)
    away = ~((own >= 0) & (first_replicas(source)[np.maximum(own, 0)] == cell))
    receiver, at, cell, offset, tile = (e[away] for e in (receiver, at, cell, offset, tile))
    # Each pair of cells has one stream.
    pair = streams.cell[streams.stream] * destination.cells + streams.receiver
    order = np.argsort(pair)
    stream = streams.stream[order][
        np.searchsorted(pair[order], cell * destination.cells + receiver)
    ]
    place = _places(stream, receiver, offset, at)
    # A chunk may end inside an element of several words.
    size = min(move.itemsize, WORD_BYTES)
    words = np.arange(0, move.itemsize, size)

    def spread(first: Integers) -> Integers:
        return (first[:, None] + words).ravel()

    piece, within = np.divmod(spread(place * move.itemsize), move.chunk * WORD_BYTES)
    return Carried(
        np.repeat(pieces[stream], len(words)) + piece,
        np.repeat(tile, len(words)),
        spread(move.address[0] + offset * move.itemsize),
        spread(move.address[1] + at * move.itemsize),
        within,
        np.full(len(piece), size),
    )


def _places(stream: Integers, receiver: Integers, offset: Integers, at: Integers) -> Integers:
    """How many elements of its stream come before each delivered element: (elements,).

    A stream has its elements in the order of the sender's block, for all receivers alike.
    """
    order = np.lexsort((at, offset, receiver, stream))
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(stream[order]) != 0) | (np.diff(receiver[order]) != 0)
    number = np.arange(len(order))
    place = np.empty(len(order), np.int64)
    place[order] = number - np.maximum.accumulate(np.where(begins, number, 0))
    return place
