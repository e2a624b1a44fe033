"""What tiles send each other in one exchange: bytes of each tile, and who sends to whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from ...ir.geometry.overlap import Overlap, first_replicas, sent_elements
from ...ir.support.arrays import Integers
from ..timetable.moves import Move


@dataclass(frozen=True, eq=False)
class Flows:
    """Who sends to whom, tile by tile or group by group. A row per pair that shares a stream.

    A stream is what one tile sends of one operand. Several tiles may want the same words of it, so
    the bytes of its rows may add up to more than it has.

    Attributes:
        source, destination: tiles or groups, (flows,).
        bytes: that the destination receives, (flows,).
        stream: of each flow, (flows,).
        stream_bytes: of each stream, each word once, (streams,).
    """

    source: Integers
    destination: Integers
    bytes: Integers
    stream: Integers
    stream_bytes: Integers

    def among(self, group: Integers) -> Flows:
        """Who sends to whom among groups of tiles, such as chips or columns; each word that a group
        receives counts once. What stays in a group is left out.

        Args:
            group: of each tile, (tiles,).
        """
        source, destination = group[self.source], group[self.destination]
        crosses = source != destination
        groups = int(group.max(initial=0)) + 1
        pair = self.stream[crosses] * groups + destination[crosses]
        pairs, first, which = np.unique(pair, return_index=True, return_inverse=True)
        total = np.bincount(which, self.bytes[crosses], len(pairs)).astype(np.int64)
        stream, to = np.divmod(pairs, groups)
        return Flows(
            source[crosses][first],
            to,
            np.minimum(total, self.stream_bytes[stream]),
            stream,
            self.stream_bytes,
        )


class Carried(NamedTuple):
    """What one copy moves of one operand.

    Attributes:
        itemsize: bytes of an element.
    """

    shared: Overlap
    itemsize: int

    @property
    def pairs(self) -> int:
        """The number of pairs of cells that share elements, each of which may be a flow."""
        groups, parts = self.shared.groups, self.shared.destination.parts
        named = {d for each in groups for d in each.destination_dims}
        replicas = prod(parts[d] for d in self.shared.destination.split_dims if d not in named)
        return prod(len(each.shared.count) for each in groups) * replicas

    def flows(self) -> Flows:
        """Who sends to whom. Its streams are the cells of the source."""
        shared, itemsize = self
        source, destination, elements = shared.pairs()
        away = _come_from_elsewhere(shared, source, destination)
        source, destination, elements = source[away], destination[away], elements[away]
        return Flows(
            shared.source.tiles.of(source),
            shared.destination.tiles.of(destination),
            elements * itemsize,
            source,
            sent_elements(shared) * itemsize,
        )


@dataclass(frozen=True, eq=False)
class Traffic:
    """What tiles send and receive in one exchange; each array is (tiles,), and copies add to it.

    Attributes:
        received, sent: bytes.
        arriving: received bytes, counted as bytes of the tile's own bus.
        control: cycles that the supervisor takes to start sends and receives.
        carried: all copies.
        moves: the same with the order of their messages, if exchanges are priced by timetables.
    """

    received: Integers
    arriving: Integers
    sent: Integers
    control: Integers
    carried: list[Carried] = field(default_factory=list[Carried])
    moves: list[Move] = field(default_factory=list[Move])

    @staticmethod
    def none(tiles: int) -> Traffic:
        """No traffic yet."""
        received, arriving, sent, control = np.zeros((4, tiles), np.int64)
        return Traffic(received, arriving, sent, control)

    @property
    def tiles(self) -> int:
        """The number of tiles."""
        return len(self.received)

    def add(self, other: Traffic) -> None:
        """Add what other copies move in the same exchange."""
        self.received[:] += other.received
        self.arriving[:] += other.arriving
        self.sent[:] += other.sent
        self.control[:] += other.control
        self.carried.extend(other.carried)
        self.moves.extend(other.moves)

    def flows(self) -> Flows:
        """Who sends to whom. It is computed anew at each call: a fabric without distances needs
        none, and there are up to as many flows as pairs of tiles."""
        return _joined([each.flows() for each in self.carried])


def _joined(flows: Sequence[Flows]) -> Flows:
    """The flows of several copies; each copy has streams of its own."""
    none = np.zeros(0, np.int64)
    before = np.cumsum([0, *(len(each.stream_bytes) for each in flows)])
    return Flows(
        np.concatenate([none, *(each.source for each in flows)]),
        np.concatenate([none, *(each.destination for each in flows)]),
        np.concatenate([none, *(each.bytes for each in flows)]),
        np.concatenate([none, *(e.stream + n for e, n in zip(flows, before, strict=False))]),
        np.concatenate([none, *(each.stream_bytes for each in flows)]),
    )


def _come_from_elsewhere(shared: Overlap, source: Integers, destination: Integers) -> Integers:
    """The pairs of cells whose elements travel: a tile reads what a replica of its own holds."""
    own = shared.source.tiles.cells_on(shared.destination.tiles.of(destination))
    has = own >= 0
    first = first_replicas(shared.source)[np.where(has, own, 0)]
    return np.flatnonzero(~(has & (first == source)))
