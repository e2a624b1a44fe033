"""The timetable of an exchange: when each message leaves, and when it arrives.

An order of messages decides it. Each message leaves as soon as its sender's lane and the lanes of
all its receivers are free, and all messages that come before it there have passed. Words follow
each other without a gap, and messages too. The fabric itself is never busy: it carries any words
that lanes may send and receive at once. Links between chips are lanes too (see `link_lanes`).

Starting a send or a receive takes the tile's supervisor some cycles. It does so while words move.
So a message takes as long as the longer of the two, and no tile is done before its supervisor is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ...ir.geometry.fragments import fragments
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import overlap
from ...ir.geometry.part_keys import Numbers
from ...ir.geometry.streams import Side, Streams
from ...ir.support.arrays import Integers
from ...ir.support.errors import InputError
from ..fabrics.fabric import Fabric
from ..target import Target
from .lanes import Windows, earliest
from .link_lanes import LinkLanes
from .moves import MOST_DELIVERIES, Move


@dataclass(frozen=True, eq=False)
class Messages:
    """The messages of an exchange, and their deliveries.

    Attributes:
        move: the index of each message's move, (messages,).
        stream: its stream among those of the move.
        chunk: which piece of the stream it is.
        tile: the sender.
        words: that it carries.
        fragments: runs of neighbours that it consists of.
        wide: whether it carries two words a cycle to pairs of tiles.
        crosses: whether it goes to another chip.
        rank: its place in the order of all messages.
        message, receiver: the message and the receiving tile of each delivery, (deliveries,).
    """

    move: Integers
    stream: Integers
    chunk: Integers
    tile: Integers
    words: Integers
    fragments: Integers
    wide: Integers
    crosses: Integers
    rank: Integers
    message: Integers
    receiver: Integers


@dataclass(frozen=True, eq=False)
class Demands:
    """What an exchange asks of lanes and supervisors, whatever the order of its messages.

    Attributes:
        messages: all of them.
        latency: cycles from the sender's clock to the receiver's, (deliveries,).
        windows: on lanes. Lane 2 * tile is the lane out of a tile, lane 2 * tile + 1 the one in.
            The lanes of links between chips follow those of all tiles.
        control: cycles of each tile's supervisor, (tiles,).
    """

    messages: Messages
    latency: Integers
    windows: Windows
    control: Integers

    @cached_property
    def bounds(self) -> Integers:
        """The cycles that the busiest lane or the supervisor of each tile takes: (tiles,).

        No order is faster where there is no latency.
        """
        tiles = len(self.control)
        busy = self.busy[: 2 * tiles].reshape(tiles, 2)
        return np.maximum(busy.max(axis=1), self.control)

    @property
    def bound(self) -> int:
        """The cycles of the busiest tile, or lane of a link: those of a perfect order."""
        links = self.busy[2 * len(self.control) :]
        return int(max(self.bounds.max(initial=0), links.max(initial=0)))

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return len(self.busy)

    @cached_property
    def on_tiles(self) -> NDArray[np.bool_]:
        """Whether each window is on a lane of a tile: (windows,)."""
        return self.windows.lane < 2 * len(self.control)

    @cached_property
    def busy(self) -> Integers:
        """The cycles that each lane is used: (lanes,)."""
        lane, length = self.windows.lane, self.windows.length
        return np.bincount(lane, length, 2 * len(self.control)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Timetable(Demands):
    """When the messages of an exchange leave and arrive.

    Attributes:
        moves: of the exchange.
        start: the cycle in which each message leaves, (messages,).
        begin: of each window.
        passes: how often all lanes were walked to find the times.
    """

    moves: Sequence[Move]
    start: Integers
    begin: Integers
    passes: int

    @cached_property
    def ends(self) -> Integers:
        """The cycle in which the exchange of each tile ends; 0 for tiles without any: (tiles,)."""
        found, own = self.control.copy(), self.on_tiles
        end = (self.begin + self.windows.length)[own]
        np.maximum.at(found, self.windows.lane[own] // 2, end)
        return found

    @property
    def cycles(self) -> int:
        """The cycle in which the last tile is done."""
        return int(self.ends.max(initial=0))


def timetable(
    moves: Sequence[Move], fabric: Fabric, tiles: int, links: LinkLanes | None = None
) -> Timetable:
    """The timetable of moves that share an exchange.

    Moves follow each other in the order of the text, each message as early as lanes allow. Those to
    other chips come last. Raises InputError if there are too many messages to list, which names the
    move with the most.

    Args:
        fabric: says how long words travel and what starting a message takes.
        tiles: of the machine.
        links: between its chips; None if it has one.
    """
    needed = demands(moves, fabric, tiles, links)
    messages, windows = needed.messages, needed.windows
    found = earliest(windows, messages.rank)
    assert found is not None
    return Timetable(
        messages,
        needed.latency,
        windows,
        needed.control,
        moves,
        found.start,
        found.begin,
        found.passes,
    )


def timetable_on(moves: Sequence[Move], target: Target) -> Timetable:
    """The timetable of moves that share an exchange of a target. Raises InputError as timetable
    does."""
    return timetable(moves, target.exchange, target.tiles, LinkLanes.of(target))


def demands(
    moves: Sequence[Move],
    fabric: Fabric,
    tiles: int,
    links: LinkLanes | None = None,
    busiest: bool = False,
) -> Demands:
    """What the messages of some moves ask of lanes and supervisors.

    Raises InputError as timetable does.

    Args:
        busiest: as that of `streams_of`.
    """
    check_size(moves)
    messages = messages_of(moves, fabric, tiles, links, busiest)
    windows, latency = windows_of(messages, fabric, tiles, links)
    received = messages.fragments[messages.message] * fabric.receive_cycles
    control = np.bincount(messages.tile, messages.fragments * fabric.send_cycles, tiles)
    control += np.bincount(messages.receiver, received, tiles)
    control = control.astype(np.int64)
    for move in moves:
        _add_places(move, fabric, control)
    return Demands(messages, latency, windows, control)


def exchange_ends(
    moves: Sequence[Move], fabric: Fabric, tiles: int, links: LinkLanes | None = None
) -> Integers:
    """The cycle in which the exchange of each tile ends; 0 for tiles without any: (tiles,).

    Raises InputError as timetable does.
    """
    check_size(moves)
    return _ends(without_names(moves), fabric, tiles, links)


def without_names(moves: Sequence[Move]) -> tuple[Move, ...]:
    """The moves without names and addresses, which change nothing in a timetable.

    So equal layers share their timetables.
    """
    return tuple(replace(move, name="", address=(0, 0), copy=0) for move in moves)


@lru_cache(maxsize=1024)
def _ends(moves: tuple[Move, ...], fabric: Fabric, tiles: int, links: LinkLanes | None) -> Integers:
    ends = timetable(moves, fabric, tiles, links).ends
    ends.flags.writeable = False
    return ends


def check_size(moves: Sequence[Move]) -> None:
    """Raise InputError if moves have too many deliveries to list. It names the largest move."""
    counts = [move.deliveries() for move in moves]
    if sum(counts) > MOST_DELIVERIES:
        most = max(range(len(counts)), key=counts.__getitem__)
        raise InputError(
            f"{moves[most].name}: a timetable of {counts[most]:,} deliveries or more; at most "
            f"{MOST_DELIVERIES:,} fit in memory in one exchange; its bound is known without one"
        )


def _add_places(move: Move, fabric: Fabric, control: Integers) -> None:
    """Add the cycles in which receivers move their write pointers, at least."""
    places = fragments(overlap(move.source, move.destination, move.space)).places
    control[move.destination.tiles.rows] += places * fabric.place_cycles


class _Numbers(Sequence[Integers]):
    """Numbers that keys read, for each dimension of a grid or each group of axes.

    Each array is computed when it is first read.
    """

    def __init__(self, count: int, made: Callable[[int], Integers]) -> None:
        self._count, self._made = count, made
        self._known: dict[int, Integers] = {}

    @overload
    def __getitem__(self, index: int) -> Integers: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Integers]: ...
    def __getitem__(self, index: int | slice) -> Integers | Sequence[Integers]:
        if isinstance(index, slice):
            return [self[i] for i in range(self._count)[index]]
        if index not in self._known:
            self._known[index] = self._made(index)
        return self._known[index]

    def __len__(self) -> int:
        return self._count


def numbers_of(streams: Streams) -> Numbers:
    """What keys read of the streams of a move: (streams,) each."""

    def parts(layout: Layout, cell: Integers) -> _Numbers:
        return _Numbers(len(layout.parts), lambda i: cell // layout.weights[i] % layout.parts[i])

    def places(side: Side) -> _Numbers:
        return _Numbers(len(streams.groups), lambda i: streams.places(side, i))

    return {
        "d": parts(streams.destination, streams.first_receiver),
        "s": parts(streams.source, streams.cell),
        "p": places("sent"),
        "q": places("received"),
    }


def messages_of(
    moves: Sequence[Move],
    fabric: Fabric,
    tiles: int,
    links: LinkLanes | None = None,
    busiest: bool = False,
) -> Messages:
    """The messages of all moves, in the order in which they are listed.

    Args:
        links: between the chips of the machine; None if it has one.
        busiest: as that of `streams_of`.
    """
    columns: list[tuple[Integers, ...]] = []
    deliveries: list[tuple[Integers, Integers]] = []
    ranks: list[Integers] = []
    before = 0
    for k, move in enumerate(moves):
        streams = move.busiest_streams if busiest else move.streams
        words = -(-streams.elements * move.itemsize // fabric.word_bytes)
        tile = np.asarray(streams.source.tiles.of(streams.cell))
        receiver = np.asarray(streams.destination.tiles.of(streams.receiver))
        # The last of an odd number of tiles has no partner, whose lane a wide message needs.
        wide = _wide(move, streams.stream, receiver, len(words), tile) * (tile ^ 1 < tiles)
        crosses = np.zeros_like(wide)
        if links is not None:
            wide = wide * (links.chip_of(tile) == links.chip_of(tile ^ 1))
            away = links.chip_of(tile[streams.stream]) != links.chip_of(receiver)
            crosses[streams.stream[away]] = 1
        # A link carries words one by one.
        wide = np.minimum(wide, 1 - crosses)
        stream = np.arange(len(words))
        piece = np.zeros_like(stream)
        if int(words.max(initial=0)) <= move.chunk:
            length, pieces = words, np.maximum(streams.fragments, 1)
            deliveries.append((streams.stream + before, receiver))
        else:
            chunks = np.maximum(-(-words // move.chunk), 1)
            stream = np.repeat(stream, chunks)
            first = np.cumsum(chunks) - chunks
            piece = np.arange(len(stream)) - np.repeat(first, chunks)
            length = np.minimum(words[stream] - piece * move.chunk, move.chunk)
            pieces = np.maximum(-(-streams.fragments // chunks), 1)[stream]
            tile, wide, crosses = tile[stream], wide[stream], crosses[stream]
            # Each delivery of a stream, once for each of its chunks.
            times = chunks[streams.stream]
            which = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
            message = np.repeat(first[streams.stream], times) + which + before
            deliveries.append((message, np.repeat(receiver, times)))
        number = np.full(len(stream), k)
        columns.append((number, stream, piece, tile, length, pieces, wide, crosses))
        ranks.append(_rank(move, numbers_of(streams), piece, tile, stream) + before)
        before += len(stream)
    none = np.zeros(0, np.int64)

    def joined(parts: Sequence[Integers]) -> Integers:
        return parts[0] if len(parts) == 1 else np.concatenate([none, *parts])

    return Messages(
        *(joined([each[i] for each in columns]) for i in range(8)),
        rank=_crossing_last(joined(ranks), joined([each[7] for each in columns])),
        message=joined([each[0] for each in deliveries]),
        receiver=joined([each[1] for each in deliveries]),
    )


def ranks_of(moves: Sequence[Move], messages: Messages, numbers: Sequence[Numbers]) -> Integers:
    """The places of the same messages, if their moves have other orders: (messages,).

    Args:
        numbers: what keys read, of each move.
    """
    found: list[Integers] = []
    for k, move in enumerate(moves):
        here = slice(*np.searchsorted(messages.move, [k, k + 1]))
        columns = (each[here] for each in (messages.chunk, messages.tile, messages.stream))
        found.append(_rank(move, numbers[k], *columns) + here.start)
    rank = found[0] if len(found) == 1 else np.concatenate(found)
    return _crossing_last(rank, messages.crosses)


def _crossing_last(rank: Integers, crosses: Integers) -> Integers:
    """The places of the same messages, if those to other chips come behind all others.

    They arrive long after they leave. A lane in would be idle until then, and the lanes of all who
    send to it later.
    """
    if not crosses.any():
        return rank
    found = np.empty_like(rank)
    found[np.lexsort((rank, crosses))] = np.arange(len(rank))
    return found


SMALL = 1 << 16
"""NumPy sorts numbers of 16 bits by counting, several times as fast as larger ones."""


def _rank(
    move: Move, numbers: Numbers, piece: Integers, tile: Integers, stream: Integers
) -> Integers:
    """The place of each message among those of its move: (messages,).

    Keys decide first, then the number of the chunk, the sender, and the stream.
    """
    keys: list[Integers] = []
    if move.order is not None and move.order.colours is not None:
        colours = np.asarray(move.order.colours.array, np.int64)
        streams = int(stream[-1]) + 1 if len(stream) else 0
        if len(colours) != streams:
            raise InputError(
                f"{move.name}: {len(colours):,} colours of {streams:,} messages; need one each"
            )
        keys = [colours]
    elif move.order is not None and len(stream):
        try:
            move.order.check_groups(len(numbers["p"]))
        except ValueError as error:
            raise InputError(f"{move.name}: {error}") from None
        keys = [each for each in move.order.values(numbers) if each.ndim]
    if len(keys) == 1 and not piece.any() and bool((np.diff(tile) >= 0).all()):
        # Messages are listed by sender and stream.
        key = keys[0] if len(keys[0]) == len(stream) else keys[0][stream]
        low = int(key.min(initial=0))
        small = int(key.max(initial=0)) - low < SMALL
        order = np.argsort((key - low).astype(np.uint16) if small else key, kind="stable")
    else:
        order = np.lexsort([stream, tile, piece, *(key[stream] for key in reversed(keys))])
    rank = np.empty(len(stream), np.int64)
    rank[order] = np.arange(len(stream))
    return rank


def _wide(move: Move, stream: Integers, tile: Integers, streams: int, sender: Integers) -> Integers:
    """Whether each stream may go as items of 64 bits: (streams,).

    All its receivers are then whole pairs of tiles. The sender itself may be the other tile of one.

    Args:
        stream, tile: of each delivery: the stream, and the receiver.
        streams: how many there are.
        sender: of each stream.
    """
    wide = np.full(streams, int(move.width == 64))
    if move.width == 64:
        most = int(max(tile.max(initial=0), sender.max(initial=0))) + 2
        # Both tiles of a pair have numbers that differ in the last bit alone.
        known = stream * (most + most % 2) + tile
        order = np.argsort(known, kind="stable")
        partner = known[order] ^ 1
        has = np.zeros(len(known), np.bool_)
        has[1:] = partner[1:] == known[order[:-1]]
        has[:-1] |= partner[:-1] == known[order[1:]]
        has |= (tile ^ 1 == sender[stream])[order]
        np.minimum.at(wide, stream[order], has.astype(np.int64))
    return wide


def windows_of(
    messages: Messages, fabric: Fabric, tiles: int, links: LinkLanes | None
) -> tuple[Windows, Integers]:
    """The windows of all messages on the lanes of their senders, receivers and links, and how much
    later than it leaves each delivery arrives: (deliveries,)."""
    cycles = np.where(messages.wide > 0, -(-messages.words // 2), messages.words)
    out = np.maximum(cycles, messages.fragments * fabric.send_cycles)
    into = np.maximum(cycles, messages.fragments * fabric.receive_cycles)
    number = np.arange(len(messages.tile))
    found = Windows(2 * messages.tile, number, np.zeros_like(number), out)
    # A wide message takes both lanes out of its sender's pair.
    wide = np.flatnonzero(messages.wide)
    partner = Windows(2 * (messages.tile[wide] ^ 1), number[wide], np.zeros_like(wide), out[wide])
    found = found.joined(partner)
    sender = messages.tile[messages.message]
    latency = fabric.latency(sender, messages.receiver)
    if links is not None:
        crossed = links.crossings(
            messages.tile, messages.words, messages.message, messages.receiver
        )
        none = np.zeros_like(crossed.lane)
        lane = 2 * tiles + crossed.lane
        found = found.joined(Windows(lane, crossed.message, none, crossed.length))
        # The last word is there when the slowest link has carried it, and the others before.
        slowest = np.zeros_like(number)
        np.maximum.at(slowest, crossed.message, crossed.length)
        way = links.first_word_cycles + np.maximum(slowest - cycles, 0)
        away = links.chip_of(sender) != links.chip_of(messages.receiver)
        latency = np.where(away, way[messages.message], latency)
    into = into[messages.message]
    arriving = Windows(2 * messages.receiver + 1, messages.message, latency, into)
    # Where the other tile of a pair is the sender itself, its lane in is busy as well.
    hears = messages.wide[messages.message] > 0
    hears &= (messages.receiver ^ 1) == sender
    own = Windows(2 * sender[hears] + 1, messages.message[hears], latency[hears], into[hears])
    return found.joined(arriving).joined(own), latency
