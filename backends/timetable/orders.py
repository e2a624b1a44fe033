"""Orders that serve most moves, in closed form.

Traffic between products of layouts is regular: a move sends along some dimensions of two grids. A
few kinds of keys let every lane be busy nearly all the time:

- *shift*: a Latin square of any overlap. A sender of k messages begins with the one whose place at
  its receiver is its own there, then goes on, `(p1 - q0) mod 46`. So no two senders of a receiver
  begin with it.
- *direction*: everyone sends to the same neighbour at once, `sign(d0 - s0), sign(d1 - s1)`.
- *class*: all receivers that hear the same senders hear them one after the other, `s1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Literal

import numpy as np

from ...dialects.message_order import MessageOrder
from ...ir.blob import Blob
from ...ir.geometry.overlap import overlap
from ...ir.geometry.part_keys import MOST, Key, Numbers, applied, difference, part, total
from ...ir.geometry.streams import Streams
from ..fabrics.fabric import Fabric
from .colours import colours_of
from .lanes import lane_ends
from .link_lanes import LinkLanes
from .moves import Move
from .timetable import Demands, check_size, demands, numbers_of, ranks_of

MOST_TRIED = 32
"""Orders that are tried for a move. Chosen by judgement: moves between grids of three dimensions
have fewer."""


def orders_of(moves: Sequence[Move]) -> tuple[MessageOrder, ...]:
    """The orders that may serve the moves of one operation, each once, likely ones first.

    An order serves the moves of all sources.
    """
    found = dict.fromkeys(keys for move in moves for keys in _keys(move))
    orders = (_ordered(keys, moves[0]) for keys in tuple(found)[:MOST_TRIED])
    return tuple(order for order in orders if _serves(order, moves))


def _serves(order: MessageOrder, moves: Sequence[Move]) -> bool:
    try:
        order.check_parts(moves[0].destination.parts, [move.source.parts for move in moves])
    except ValueError:
        return False
    return True


WORTH_COLOURS = 2.0
"""How many times as long as the bound the best keys must take before colours are tried. Chosen by
measurement, on ResNet-50: keys are as short nearly always, and to find colours takes longer than to
try all keys."""

MUCH_SHORTER = 1.1
"""How many times as long as colours the best keys must take before colours are chosen. Chosen by
judgement: colours are a number for each message, which the program has to keep."""

LIKELY = 4
"""The orders that are tried first. Chosen by measurement: nine of ten moves of ResNet-50 take one
of them."""

NEAR, FAIR = 0.005, 0.1
"""How much longer than the bound an order may take, as a share of it, so that no other one is
tried: while the likely ones are tried, and afterwards. Chosen by judgement."""

WHOLE = 1 << 15
"""Deliveries of a move with wide messages up to which orders are tried on all messages. Chosen by
judgement."""


@dataclass(frozen=True)
class Best:
    """The shortest order that was tried.

    Attributes:
        order: None for the order of the senders.
        width: bits of an item, of all moves.
        cycles: of the timetable of the busiest cells, and of those with which they exchange words.
        bound: of their lanes, whatever the order.
    """

    order: MessageOrder | None
    width: int
    cycles: int
    bound: int


def best_order(
    moves: Sequence[Move],
    fabric: Fabric,
    tiles: int,
    widen: bool = False,
    links: LinkLanes | None = None,
) -> Best:
    """The shortest of some orders for the moves of one operation; the first of equal ones.

    Most moves fall into parts that exchange nothing with each other. An order is tried on the
    busiest one. Raises InputError if the moves have too many deliveries to list.

    Args:
        widen: whether to try items of 64 bits too, where pairs of tiles want the same words.
        links: between the chips of the machine; None if it has one.
    """
    alike = tuple(replace(move, name="", address=(0, 0), copy=0, order=None) for move in moves)
    check_size(moves)
    return _best(alike, fabric, tiles, widen and fabric.pair_factor > 1, links)


@lru_cache(maxsize=4096)
def _best(
    moves: tuple[Move, ...], fabric: Fabric, tiles: int, widen: bool, links: LinkLanes | None
) -> Best:
    """As best_order. Equal layers move their operands in the same way, so this is kept."""
    found = _Trial.of(moves, fabric, tiles, links)
    if not widen:
        return found.searched()
    paired = _Trial.of(tuple(replace(move, width=64) for move in moves), fabric, tiles, links)
    if paired.needed.bound >= found.needed.bound:
        return found.searched()
    best = paired.searched()
    if paired.busiest:
        # Lanes of partners may keep other parts waiting, which the part does not show.
        whole = _Trial.of(paired.moves, fabric, tiles, links, parts=False)
        cycles = whole.cycles(best.order)
        best = replace(best, cycles=cycles) if cycles <= best.cycles else whole.searched()
    if best.cycles <= found.needed.bound:
        return best
    return min(best, found.searched(), key=lambda each: each.cycles)


@dataclass(frozen=True)
class _Trial:
    """An exchange on which orders are tried: the busiest part of one move, or several moves.

    Attributes:
        moves: of one width.
        streams: of each move, those that are tried.
        needed: by their messages.
        numbers: that keys read, of each move.
        busiest: whether only the busiest part is tried.
    """

    moves: tuple[Move, ...]
    streams: tuple[Streams, ...]
    needed: Demands
    numbers: tuple[Numbers, ...]
    busiest: bool

    @staticmethod
    def of(
        moves: tuple[Move, ...],
        fabric: Fabric,
        tiles: int,
        links: LinkLanes | None,
        parts: bool = True,
    ) -> _Trial:
        """The exchange of some moves.

        Args:
            parts: whether a part may stand for the whole.
        """
        # A wide message also takes a lane of its sender's partner, which may exchange nothing with
        # the others. Links carry the words of all tiles.
        busiest = parts and len(moves) == 1 and links is None
        busiest = busiest and (moves[0].width == 32 or moves[0].deliveries() > WHOLE)
        streams = tuple(each.busiest_streams if busiest else each.streams for each in moves)
        needed = demands(moves, fabric, tiles, links, busiest)
        return _Trial(moves, streams, needed, tuple(map(numbers_of, streams)), busiest)

    def searched(self) -> Best:
        """The shortest of some orders."""
        bound = self.needed.bound
        enough = bound + int(NEAR * bound)
        # The senders' order is often far from the bound, and then this is soon known.
        best, order = self._cycles(None, enough), None
        if best is None:
            for k, each in enumerate(orders_of(self.moves)):
                if best is not None and best <= bound + int((NEAR, FAIR)[k >= LIKELY] * bound):
                    break
                found = self._cycles(each, None if best is None else best - 1)
                if found is not None:
                    best, order = found, each
            if best is None or best > enough:
                found = self._cycles(None, best)
                if found is not None:
                    best, order = found, None
        assert best is not None
        if best > WORTH_COLOURS * bound and len(self.moves) == 1:
            coloured = by_colour(self.moves[0], self.streams[0])
            found = self._cycles(coloured, int(best / MUCH_SHORTER))
            if found is not None:
                best, order = found, by_colour(self.moves[0], self.moves[0].streams)
        return Best(order, self.moves[0].width if self.moves else 32, best, bound)

    def cycles(self, order: MessageOrder | None) -> int:
        """The cycle in which the last tile is done."""
        found = self._cycles(order, None)
        assert found is not None
        return found

    def _cycles(self, order: MessageOrder | None, limit: int | None) -> int | None:
        """The cycle in which the last tile is done; None if a lane is not done at a limit."""
        needed = self.needed
        moves = [replace(move, order=order) for move in self.moves]
        ranks = ranks_of(moves, needed.messages, self.numbers)
        ends = lane_ends(needed.windows, ranks, needed.lanes, limit)
        if ends is None:
            return None
        return int(max(ends.max(initial=0), needed.control.max(initial=0)))


def by_colour(move: Move, streams: Streams) -> MessageOrder:
    """The order of some streams of a move by the colours of an Euler split."""
    colour = Blob(colours_of(streams).astype(np.uint16))
    return MessageOrder((), colour, move.destination.parts, move.source.parts)


def _ordered(keys: tuple[Key, ...], move: Move) -> MessageOrder:
    """The order of some keys, for the grids of a move if they need it."""
    if any(key.has_numbers for key in keys):
        return MessageOrder(keys, None, move.destination.parts, move.source.parts)
    return MessageOrder(keys)


def _keys(move: Move) -> Iterator[tuple[Key, ...]]:
    source, destination = move.source, move.destination
    yield from _shifts(move.busiest_streams)
    groups = overlap(source, destination, move.space).groups
    along = [
        pair
        for group in groups
        for pair in zip(group.destination_dims, group.source_dims, strict=False)
    ]
    if along:
        apart = [difference(part("d", d), part("s", s)) for d, s in along]
        yield tuple(apart)
        yield tuple(applied("sign", each) for each in apart)
    for s in source.split_dims:
        yield (part("s", s),)


def _shifts(streams: Streams) -> Iterator[tuple[Key, ...]]:
    """Latin squares: the place at the sender minus that at the receiver, around a circle.

    The places of a message are numbers in mixed radix, a digit for each group. They begin with the
    first group or with the last, and take whole steps around the circle or steps of one.
    Where each of k senders has an equal message for each of r receivers, p < r is the number of the
    receiver and q < k that of the sender. So (p - q) mod max(k, r) differs for all messages of a
    sender, and for all of a receiver: messages of one key share no lane, and one key after the
    other takes max(k, r) messages, which is the bound.
    """
    sent, received = (streams.most_places(side) for side in ("sent", "received"))
    around = max(prod(sent), prod(received))
    if around == 1 or around >= MOST:
        return
    stretched = around // prod(sent), around // prod(received)
    for steps, (first, second) in product((stretched, (1, 1)), ((0, 1), (1, 0), (0, 0), (1, 1))):
        p = _digits("p", sent, first > 0, steps[0])
        q = _digits("q", received, second > 0, steps[1])
        yield (applied("mod", difference(p, q), around),)


def _digits(side: Literal["p", "q"], most: Sequence[int], backwards: bool, step: int) -> Key:
    """A number in mixed radix, times a step.

    Args:
        backwards: whether the digit of the first group is the last one.
    """
    groups = list(enumerate(most))
    factor, terms = step, list[tuple[Key, int]]()
    for group, count in groups if backwards else reversed(groups):
        if count > 1:
            terms.append((part(side, group), factor))
        factor *= count
    return total(*(terms if backwards else reversed(terms)))
