"""What the cells of two layouts send each other, as messages that several cells may hear.

A stream is all that one destination cell wants of one source cell. Destination cells that want the
same elements of it share the stream: the sender puts them on the fabric once, and all of them hear.

    source: 2 cells of 4          cell 0: a b c d    cell 1: e f g h
    destination: 2 cells, twice   cells 0, 1: a b c d e    cells 2, 3: d e f g h
    streams of cell 0             {a b c d} -> cells 0, 1      {d} -> cells 2, 3

Streams whose elements overlap without being the same send some words twice.

What two cells share is a product over axis groups, and so are streams. Each group gives sets: the
elements of a source part that some destination parts want. A stream is one set of each group.

So each stream has a place for each group: how many sets of its source part come before its own, and
how many source parts send to its destination part before its own does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from ..support.kept_tables import kept_tables
from .blocks import plain_move
from .fragments import GroupAxes, axes_inwards
from .layout import Layout
from .overlap import (
    Counts,
    Group,
    Overlap,
    SharedRuns,
    components,
    first_replicas,
    overlap,
    shared_runs,
)
from .space import Space


class SetPlaces(NamedTuple):
    """Where the sets of one group come among those of their parts: (sets,) each.

    Attributes:
        sent: the sets of the same source part that come before, by their first destination part.
        received: the source parts before its own that send to its first destination part.
        most_sent, most_received: how many such places there are, also of sets that are left out.
    """

    sent: Counts
    received: Counts
    most_sent: int
    most_received: int

    @staticmethod
    def of(sent: Counts, received: Counts) -> SetPlaces:
        """The places of all sets of a group."""
        return SetPlaces(
            sent, received, *(int(each.max(initial=0)) + 1 for each in (sent, received))
        )


Side = Literal["sent", "received"]


@dataclass(frozen=True, eq=False)
class Streams:
    """Streams between the cells of two layouts that leave their tile.

    They are sorted by source cell, and then by their first receiver.

    Attributes:
        source, destination: the layouts.
        cell: the source cell of each stream, a first replica, (streams,).
        elements: of each stream, (streams,).
        fragments: runs of neighbours on both sides that each stream consists of, (streams,).
        stream, receiver: the stream and the destination cell of each delivery, (deliveries,),
            sorted by stream, then by cell.
        number: of each stream among all products of sets, the last group innermost, (streams,).
        groups: the places of the sets of each group.
    """

    source: Layout
    destination: Layout
    cell: Counts
    elements: Counts
    fragments: Counts
    stream: Counts
    receiver: Counts
    number: Counts
    groups: tuple[SetPlaces, ...]

    @cached_property
    def first_receiver(self) -> Counts:
        """The first destination cell of each stream: (streams,)."""
        return self.receiver[np.flatnonzero(np.diff(self.stream, prepend=-1))]

    def places(self, side: Side, group: int) -> Counts:
        """The place of each stream in a group, among those that its cell sends or receives:
        (streams,)."""
        inner = prod(len(each.sent) for each in self.groups[group + 1 :])
        table: Counts = getattr(self.groups[group], side)
        return table[self.number // inner % len(table)]

    def most_places(self, side: Side) -> tuple[int, ...]:
        """How many places there are in each group."""
        return tuple(getattr(each, f"most_{side}") for each in self.groups)


class _Sets(NamedTuple):
    """The sets of one group of axes.

    Attributes:
        part: the source part of each, (sets,).
        elements: of each.
        pieces: runs of neighbours that each consists of.
        places: of each.
        wanted, wanted_by: the set and a destination part that wants it, (rows,).
    """

    destination_dims: tuple[int, ...]
    source_dims: tuple[int, ...]
    part: Counts
    elements: Counts
    pieces: Counts
    places: SetPlaces
    wanted: Counts
    wanted_by: Counts


def count_deliveries(shared: Overlap) -> int:
    """At least as many as the streams of two layouts have deliveries, without making them.

    Every pair of cells that shares elements has a delivery, unless both are on one tile.
    """
    pairs = prod(len(group.shared.count) for group in shared.groups)
    return pairs * prod(shared.destination.parts[d] for d in _unnamed(shared))


def _rows(streams: Streams) -> int:
    return 4 * len(streams.cell) + 2 * len(streams.receiver)


@kept_tables(_rows, entries=512)
def streams_of(
    source: Layout, destination: Layout, move: Space | None = None, busiest: bool = False
) -> Streams:
    """The streams from the blocks of source to those of destination, through a move.

    The source must be a partition.

    Args:
        move: as that of `overlap`.
        busiest: whether to list a share of the cells alone, which exchange nothing with others: in
            each group, the parts that exchange most elements.
    """
    shared = overlap(source, destination, move)
    chain = (move,) if move else (plain_move(source.shape),)
    if any(0 in sizes for sizes in (source.shape, destination.shape, *(m.sizes for m in chain))):
        return Streams(source, destination, *np.zeros((6, 0), np.int64), groups=())
    found = components(source.access, destination.access, chain)
    sets = [
        _sets(shared_runs(part, source, destination, chain), group)
        for part, group in zip(found, shared.groups, strict=True)
    ]
    return _leaving(_multiplied(shared, [_busiest(s) for s in sets] if busiest else sets), shared)


def _sets(runs: SharedRuns, group: Group) -> _Sets:
    """The sets of a group, from the runs that its parts share.

    Sets are compared by the sum of one random number for each element, or for elements that no run
    tells apart.
    """
    begin, end = runs.first, runs.first + runs.length
    edges = np.unique(np.concatenate([begin, end]))
    names = np.random.default_rng(len(edges)).integers(1, 1 << 62, len(edges), np.uint64)
    before = np.concatenate([np.zeros(1, np.uint64), np.cumsum(names)])
    low, high = np.searchsorted(edges, begin), np.searchsorted(edges, end)
    pairs = group.shared
    place = np.searchsorted(
        pairs.destination * runs.shape[1] + pairs.source,
        runs.destination * runs.shape[1] + runs.source,
    )
    name = np.zeros(len(pairs.count), np.uint64)
    np.add.at(name, place, before[high] - before[low])
    order = np.lexsort((pairs.destination, name, pairs.source))
    differs = np.ones(len(order), bool)
    differs[1:] = np.diff(pairs.source[order]) != 0
    differs[1:] |= np.diff(name[order]) != 0
    first = order[differs]
    pieces = np.ones_like(pairs.count) if pairs.pieces is None else pairs.pieces
    part = pairs.source[first]
    by_receiver = np.lexsort((pairs.destination[first], part))
    sent = np.empty_like(part)
    sent[by_receiver] = _place_in_run(part[by_receiver])
    return _Sets(
        runs.destination_dims,
        runs.source_dims,
        part,
        pairs.count[first],
        pieces[first],
        SetPlaces.of(sent, _place_in_run(pairs.destination)[first]),
        np.cumsum(differs) - 1,
        pairs.destination[order],
    )


def _place_in_run(values: Counts) -> Counts:
    """How many equal values come directly before each one: (values,)."""
    number = np.arange(len(values))
    begins = np.diff(values, prepend=-1) != 0
    return number - np.maximum.accumulate(np.where(begins, number, 0))


def _busiest(sets: _Sets) -> _Sets:
    """The sets of some parts alone, which share no element with other parts: those that exchange
    most elements."""
    if not len(sets.part):
        return sets
    wanted_by = sets.wanted_by + int(sets.part.max()) + 1
    label = np.arange(int(wanted_by.max()) + 1)
    while True:
        # Each part takes the lowest number of all parts that it is known to be joined with.
        least = label.copy()
        joined = label[sets.part[sets.wanted]], label[wanted_by]
        np.minimum.at(least, joined[0], joined[1])
        np.minimum.at(least, joined[1], joined[0])
        least = least[least]
        if (least == label).all():
            break
        label = least[label]
    load = np.bincount(label[wanted_by], sets.elements[sets.wanted], len(label))
    kept = label[sets.part] == int(np.argmax(load))
    rows = kept[sets.wanted]
    return sets._replace(
        part=sets.part[kept],
        elements=sets.elements[kept],
        pieces=sets.pieces[kept],
        places=sets.places._replace(
            sent=sets.places.sent[kept], received=sets.places.received[kept]
        ),
        wanted=(np.cumsum(kept) - 1)[sets.wanted[rows]],
        wanted_by=sets.wanted_by[rows],
    )


def _unnamed(shared: Overlap) -> list[int]:
    """The cut dimensions of the destination that no group names: along them, blocks repeat."""
    named = {d for group in shared.groups for d in group.destination_dims}
    return [d for d in shared.destination.split_dims if d not in named]


def _offsets(layout: Layout, dims: Sequence[int], part: Counts) -> Counts:
    """What parts along some dimensions, row-major over them, add to the number of a cell."""
    total = np.zeros(len(part), np.int64)
    parts = tuple(layout.parts[d] for d in dims)
    for d, at in zip(dims, np.unravel_index(part, parts) if dims else (), strict=True):
        total += at * layout.weights[d]
    return total


def _multiplied(shared: Overlap, sets: Sequence[_Sets]) -> Streams:
    """The streams of all groups together, also those that stay on their tile."""
    source, destination = shared.source, shared.destination
    cell, elements = np.zeros(1, np.int64), np.ones(1, np.int64)
    stream, receiver = np.zeros(1, np.int64), np.zeros(1, np.int64)
    chosen: list[Counts] = []
    for each in sets:
        n = len(each.part)
        cell = (cell[:, None] + _offsets(source, each.source_dims, each.part)).ravel()
        elements = (elements[:, None] * each.elements).ravel()
        chosen = [np.repeat(a, n) for a in chosen]
        chosen.append(np.tile(np.arange(n), len(cell) // max(n, 1)))
        stream = (stream[:, None] * n + each.wanted).ravel()
        added = _offsets(destination, each.destination_dims, each.wanted_by)
        receiver = (receiver[:, None] + added).ravel()
    for d in _unnamed(shared):
        added = np.arange(destination.parts[d]) * destination.weights[d]
        stream = np.repeat(stream, len(added))
        receiver = (receiver[:, None] + added).ravel()
    pieces = _fragments(axes_inwards(shared), shared, sets, chosen, len(cell))
    number = np.arange(len(cell))
    groups = tuple(each.places for each in sets)
    return Streams(source, destination, cell, elements, pieces, stream, receiver, number, groups)


def _fragments(
    axes: Sequence[GroupAxes],
    shared: Overlap,
    sets: Sequence[_Sets],
    chosen: Sequence[Counts],
    streams: int,
) -> Counts:
    """The fragments of each stream, counted as `fragments` counts those of pairs: (streams,)."""
    number = {id(group): k for k, group in enumerate(shared.groups)}
    ended, whole = np.zeros(streams, np.int64), np.ones(streams, np.int64)
    for along in axes:
        k = number[id(along.group)]
        elements, pieces = sets[k].elements[chosen[k]], sets[k].pieces[chosen[k]]
        if not along.in_runs:
            full, pieces = np.zeros_like(whole), elements
        else:
            full = ((along.box == along.held) & (elements == along.box)).astype(np.int64)
            pieces = np.where(full > 0, 0, pieces)
        ended, whole = elements * ended + pieces * whole, full * whole
    return np.maximum(ended + whole, 1)


def _leaving(every: Streams, shared: Overlap) -> Streams:
    """The streams that leave their tile, in order: a tile reads what a replica of its own holds."""
    source, destination = shared.source, shared.destination
    own = source.tiles.cells_on(destination.tiles.of(np.arange(destination.cells)))
    held = np.where(own >= 0, first_replicas(source)[np.maximum(own, 0)], -1)
    leaves = np.flatnonzero(held[every.receiver] != every.cell[every.stream])
    stream, receiver = every.stream[leaves], every.receiver[leaves]
    first = np.full(len(every.cell), destination.cells)
    np.minimum.at(first, stream, receiver)
    kept = np.flatnonzero(first < destination.cells)
    kept = kept[np.argsort(every.cell[kept] * destination.cells + first[kept])]
    number = np.empty(len(every.cell), np.int64)
    number[kept] = np.arange(len(kept))
    # Both numbers in one, because NumPy sorts numbers faster than it finds the order of rows.
    bits = destination.cells.bit_length()
    rows = np.sort(number[stream] << bits | receiver)
    return Streams(
        source,
        destination,
        every.cell[kept],
        every.elements[kept],
        every.fragments[kept],
        rows >> bits,
        rows & ((1 << bits) - 1),
        every.number[kept],
        every.groups,
    )
