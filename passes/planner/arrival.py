"""The exact cycles until operands have arrived in the layouts that a plan wants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from ...backends.prices import cost
from ...backends.prices.price import block_sizes, bus_bytes
from ...backends.target import Target
from ...ir.geometry.fragments import Fragments, fragments_of, most_fragments
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import Overlap, sent_elements
from ...ir.geometry.space import Space
from ...ir.geometry.tiles import Tiles
from ...ir.support.kept_tables import kept_tables
from .cell_runs import elements_of_cells
from .crossing import crossing_cycles
from .price import Integers
from .traffic import traffic


class Operand(NamedTuple):
    """An operand that has to arrive.

    Attributes:
        source: its present layout.
        wanted: the layout that the plan wants.
        itemsize: bytes of an element.
        move: the space of the movement that it passes through, or None.
    """

    source: Layout
    wanted: Layout
    itemsize: int
    move: Space | None


class Arrival(NamedTuple):
    """Cycles of the exchange, and of the copies that tiles make within themselves.

    Attributes:
        exchange, copying: of the tile with the largest sum of both, among tiles where operands
            arrive. Filling padding counts as copying.
        elsewhere: the longest exchange of a tile where nothing arrives.
    """

    exchange: int
    copying: int
    elsewhere: int

    def then(self, compute: float) -> tuple[float, float]:
        """The cycles of exchange, and of copies and compute, of the tile that takes longest.

        No tile waits for another one.

        Args:
            compute: cycles of every tile where operands arrive.
        """
        own = self.copying + compute
        return (
            (self.exchange, own) if self.exchange + own >= self.elsewhere else (self.elsewhere, 0)
        )


NOTHING = Arrival(0, 0, 0)
"""The arrival of no operand."""


@lru_cache(maxsize=8192)
def arrival_of(operands: tuple[Operand, ...], target: Target) -> Arrival:
    """The cycles until all operands have arrived, in one exchange.

    Only ports count. On a fabric with distances, such as a mesh, it is a lower bound of the price.
    """
    if not operands:
        return NOTHING
    return _over_links(_arriving(operands, target).whole(), operands, target)


def arrival_at_least(operands: tuple[Operand, ...], target: Target) -> Arrival:
    """A lower bound of `arrival_of`, without the bytes that tiles send and the start of messages.

    It needs no table of overlapping blocks, so it takes a fraction of the time.
    """
    if not operands:
        return NOTHING
    return _over_links(_arriving(operands, target).least, operands, target)


def _over_links(found: Arrival, operands: tuple[Operand, ...], target: Target) -> Arrival:
    """An arrival that waits until bytes have crossed from chip to chip."""
    crossing = crossing_cycles(operands, target) if target.chips > 1 else 0
    if not crossing:
        return found
    return Arrival(max(found.exchange, crossing), found.copying, max(found.elsewhere, crossing))


# The exact price of an arrival often follows soon after its lower bound.
@kept_tables(lambda found: 4 * len(found.received) * len(found.each), entries=256)
def _arriving(operands: tuple[Operand, ...], target: Target) -> _Arriving:
    return _Arriving([_brought(operand, target) for operand in operands], target)


class _Arriving:
    """The arrival of some operands in one exchange.

    Attributes:
        first: the first tile that wants an operand.
        received, copying: of each tile, from `first` on.
        exchange: cycles until the bytes are received.
        least: see arrival_at_least.
    """

    def __init__(self, each: list[_Brought], target: Target) -> None:
        self.each, self.target = each, target
        self.first = min(one.wanted.first for one in each)
        self.received = _added([(one.wanted, one.received) for one in each], self.first)
        self.copying = _added([(one.wanted, _copying(one, target)) for one in each], self.first)
        self.exchange = cost.least_exchange_cycles(self.received, 0, target)
        self.least = _longest(self.exchange, self.copying, 0)

    def whole(self) -> Arrival:
        """The arrival, including the bytes that tiles send and the start of messages."""
        each, target, first = self.each, self.target, self.first
        found, copying = self.least, self.copying
        # Often, on every tile, sending and starting messages takes less than receiving.
        most = cost.least_exchange_cycles_of_one(
            *(0, sum(one.sent_at_most for one in each), target),
            sum(one.control_at_most(target) for one in each),
        )
        if most <= self.exchange.min() or (
            most + int(copying.max()) <= found.exchange + found.copying
        ):
            return found
        begin = min(first, *(one.source.first for one in each))
        here = slice(first - begin, first - begin + len(self.received))
        of_each = [one.moved for one in each]
        sent = _added([(one.source, one.sent) for one in each], begin)
        control = _added(
            [
                *(
                    (one.source, cost.control_cycles(moved.sent, 0, 0, target))
                    for one, moved in zip(each, of_each, strict=True)
                ),
                *(
                    (one.wanted, cost.control_cycles(0, moved.received, moved.places, target))
                    for one, moved in zip(each, of_each, strict=True)
                ),
            ],
            begin,
        )
        received = _summed([(first, self.received), (begin, np.zeros_like(control))], begin)
        sent = _summed([(begin, sent), (begin, np.zeros_like(control))], begin)
        exchange = cost.least_exchange_cycles(received, sent, target, control)
        apart = max(
            int(some.max(initial=0)) for some in (exchange[: here.start], exchange[here.stop :])
        )
        return _longest(exchange[here], copying, apart)


def _longest(exchange: Integers, copying: Integers, elsewhere: int) -> Arrival:
    at = int(np.argmax(exchange + copying))
    return Arrival(int(exchange[at]), int(copying[at]), elsewhere)


def relayout_cycles(source: Layout, wanted: Layout, itemsize: int, target: Target) -> int:
    """The cycles of a superstep that copies a tensor from one layout into another; 0 if they are
    equal.
    """
    if source == wanted:
        return 0
    operand = Operand(source, wanted, itemsize, None)
    return cost.sync_cycles(target) + int(sum(arrival_of((operand,), target).then(0)))


def _added(counts: list[tuple[Tiles, Integers]], begin: int) -> Integers:
    """The sums of counts per cell, by tile, from tile `begin` on."""
    return _summed([(tiles.first, tiles.spread(count)) for tiles, count in counts], begin)


def _summed(counts: list[tuple[int, Integers]], begin: int) -> Integers:
    """The sum of counts per tile, from tile `begin` on. Each count is (first tile, counts per
    tile).
    """
    (first, count), *more = counts
    if first == begin and all(each == first and len(n) == len(count) for each, n in more):
        return sum((n for _, n in more), count)
    total = np.zeros(max(first + len(count) for first, count in counts) - begin, np.int64)
    for first, count in counts:
        total[first - begin : first - begin + len(count)] += count
    return total


@dataclass(frozen=True, eq=False)
class _Brought:
    """The bytes that each wanted cell of an operand needs, from tile first_wanted on.

    Attributes:
        received: bytes over the cell's own bus.
        local: elements that are already on the cell's tile.
        filling: cycles to fill padding; None if the layout has no padding.
    """

    operand: Operand
    received: Integers
    local: Integers
    filling: Integers | None

    @property
    def source(self) -> Tiles:
        return self.operand.source.tiles

    @property
    def wanted(self) -> Tiles:
        return self.operand.wanted.tiles

    @property
    def copied(self) -> Integers:
        """The bytes that are already on each wanted cell's tile."""
        return self.local * self.operand.itemsize

    @cached_property
    def _shared(self) -> Overlap:
        return traffic(self.operand.source, self.operand.wanted, self.operand.move)

    @property
    def sent_at_most(self) -> int:
        """An upper bound of `sent` that is quick to compute."""
        return self.operand.itemsize * prod(int(group.sent.max()) for group in self._shared.groups)

    def control_at_most(self, target: Target) -> int:
        """An upper bound of the cycles that a tile takes to start sends and receives."""
        received, sent = most_fragments(self._shared)
        return int(cost.control_cycles(sent, received, received, target))

    @property
    def moved(self) -> Fragments:
        """The fragments in which the operand arrives."""
        return fragments_of(self._shared, self.received, self._sent_elements)

    @cached_property
    def _sent_elements(self) -> Integers:
        return sent_elements(self._shared, self.local)

    @property
    def sent(self) -> Integers:
        """The bytes that each source cell sends, from tile first_source on."""
        return self._sent_elements * self.operand.itemsize


def _brought(operand: Operand, target: Target) -> _Brought:
    source, wanted, itemsize, move = operand
    counts = elements_of_cells(source, wanted, move)
    pads = move is None and any(a.outside != "none" or a.divisor > 1 for a in wanted.access.axes)
    received = (counts.wanted - counts.local) * itemsize
    return _Brought(
        operand,
        bus_bytes(wanted, received, target),
        counts.local,
        cost.fill_cycles(np.maximum(block_sizes(wanted) - counts.wanted, 0) * itemsize, target)
        if pads
        else None,
    )


def _copying(one: _Brought, target: Target) -> Integers:
    """Cycles of each wanted cell to copy and fill."""
    copying = cost.copy_cycles(one.copied, target)
    return copying if one.filling is None else copying + one.filling
