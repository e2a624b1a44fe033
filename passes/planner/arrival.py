"""The exact cycles until operands have arrived where a plan wants them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from ...backends import cost
from ...backends.price import block_sizes, bus_bytes, sent_elements
from ...backends.target import Target
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import Overlap
from ...ir.geometry.space import Space
from .cell_runs import elements_of_cells
from .price import Integers
from .traffic import traffic


class Operand(NamedTuple):
    """An operand that has to arrive.

    source: where it lies. wanted: where it is wanted. itemsize: bytes of an element. move: the
    space of the movement it passes through, or None.
    """

    source: Layout
    wanted: Layout
    itemsize: int
    move: Space | None


class Arrival(NamedTuple):
    """Cycles of the exchange, and of the copies that tiles make within themselves.

    Each is that of the busiest tile. Filling padding counts as copying.
    """

    exchange: int
    copying: int


@lru_cache(maxsize=8192)
def arrival_of(operands: tuple[Operand, ...], target: Target) -> Arrival:
    """What it takes until all of the operands have arrived, in one exchange."""
    each = [_brought(operand, target) for operand in operands]
    received = _most([(one.first_wanted, one.received) for one in each])
    exchange = cost.exchange_cycles_of_one(received, 0, target)
    if _sending(sum(one.largest for one in each), target) > exchange and (
        _sending(sum(one.sent_at_most for one in each), target) > exchange
    ):
        sent = _most([(one.first_source, one.sent) for one in each])
        exchange = max(exchange, _sending(sent, target))
    if len(each) == 1 and each[0].filling is None:
        copying = int(cost.copy_cycles(each[0].copied.max(), target))
    else:
        copying = _most([(one.first_wanted, _copying(one, target)) for one in each])
    return Arrival(exchange, copying)


def _sending(sent_bytes: int, target: Target) -> int:
    return cost.exchange_cycles_of_one(0, sent_bytes, target)


def relayout_cycles(source: Layout, wanted: Layout, itemsize: int, target: Target) -> int:
    """Cycles of a superstep that copies a tensor from one layout into another.

    0 if the layouts are equal.
    """
    if source == wanted:
        return 0
    operand = Operand(source, wanted, itemsize, None)
    return cost.sync_cycles(target) + sum(arrival_of((operand,), target))


def _most(counts: list[tuple[int, Integers]]) -> int:
    """The largest sum over the counts of any tile. Each count is (first tile, counts per tile)."""
    if len(counts) <= 1:
        return max((int(count.max()) for _, count in counts), default=0)
    total = np.zeros(max(first + len(count) for first, count in counts), np.int64)
    for first, count in counts:
        total[first : first + len(count)] += count
    return int(total.max())


@dataclass(frozen=True, eq=False)
class _Brought:
    """The bytes that each wanted cell of an operand needs, from tile first_wanted on.

    received: over the cell's own bus. local: elements that are on the cell's tile already. filling:
    cycles to fill padding; None if the layout has no padding.
    """

    operand: Operand
    received: Integers
    local: Integers
    filling: Integers | None

    @property
    def first_source(self) -> int:
        return self.operand.source.first_tile

    @property
    def first_wanted(self) -> int:
        return self.operand.wanted.first_tile

    @property
    def copied(self) -> Integers:
        """The bytes that are on each wanted cell's tile already."""
        return self.local * self.operand.itemsize

    @property
    def largest(self) -> int:
        """The bytes of the largest block where the operand lies. No tile sends more."""
        return self.operand.source.block_elements * self.operand.itemsize

    @cached_property
    def _shared(self) -> Overlap:
        return traffic(self.operand.source, self.operand.wanted, self.operand.move)

    @property
    def sent_at_most(self) -> int:
        """An upper bound of `sent` that is quick to compute."""
        return self.operand.itemsize * prod(int(group.sent.max()) for group in self._shared.groups)

    @property
    def sent(self) -> Integers:
        """Bytes that each cell where the operand lies sends, from tile first_source on."""
        return sent_elements(self._shared, self.local) * self.operand.itemsize


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
