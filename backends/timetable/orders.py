"""Orders that serve most moves, in closed form.

Traffic between products of layouts is regular: a move sends along some dimensions of two grids. A
few kinds of keys let every lane be busy all the time:

- *class*: all receivers that hear the same senders hear them one after the other, `s1`.
- *shift*: a Latin square. Everyone sends to a receiver of their own, then to the next one,
  `(d0 - s0) mod 46`.
- *direction*: everyone sends to the same neighbour at once, `sign(d0 - s0), sign(d1 - s1)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from ...dialects.message_order import MessageOrder
from ...ir.blob import Blob
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import overlap
from ...ir.geometry.part_keys import Key, applied, difference, part, total
from ..fabrics.fabric import Fabric
from .colours import colours_of
from .lanes import earliest
from .moves import Move
from .timetable import check_size, ranks_of, timetable

MOST_TRIED = 32
"""Orders that are tried for a move. Chosen by judgement: moves between grids of three dimensions
have fewer."""


def orders_of(moves: Sequence[Move]) -> tuple[MessageOrder | None, ...]:
    """The orders that may serve the moves of one operation, each once.

    The first one is None, the order of the senders. An order serves the moves of all sources.
    """
    found = dict.fromkeys(keys for move in moves for keys in _keys(move))
    orders = (_ordered(keys, moves[0]) for keys in tuple(found)[: MOST_TRIED - 1])
    return (None, *(order for order in orders if _serves(order, moves)))


def _serves(order: MessageOrder, moves: Sequence[Move]) -> bool:
    try:
        order.check_parts(moves[0].destination.parts, [move.source.parts for move in moves])
    except ValueError:
        return False
    return True


WORTH_COLOURS = 1.1
"""How many times as long as the bound the best keys must take before colours are tried, and how
many times as long as colours, before these are taken. Chosen by judgement: colours are a number for
each message, which the program has to keep."""


@dataclass(frozen=True)
class Best:
    """The shortest order that was tried.

    Attributes:
        order: None for the order of the senders.
        cycles: of its timetable.
        plain_cycles: of the timetable in the order of the senders.
        bound: of the lanes, whatever the order.
        tried: the number of orders.
    """

    order: MessageOrder | None
    cycles: int
    plain_cycles: int
    bound: int
    tried: int


def best_order(moves: Sequence[Move], fabric: Fabric, tiles: int) -> Best:
    """The shortest of some orders for the moves of one operation; the first of equal ones.

    Raises InputError if the moves have too many deliveries to list.
    """
    check_size(moves)
    alike = tuple(replace(move, name="", address=(0, 0), copy=0, order=None) for move in moves)
    return _best(alike, fabric, tiles)


@lru_cache(maxsize=4096)
def _best(moves: tuple[Move, ...], fabric: Fabric, tiles: int) -> Best:
    """As best_order. Equal layers move their operands in the same way, so this is kept."""
    plain = timetable(moves, fabric, tiles)
    best, order, tried = plain.cycles, None, 1
    table = plain
    for each in orders_of(moves)[1:]:
        if best <= plain.bound:
            break
        tried += 1
        ranks = ranks_of([replace(move, order=each) for move in moves], table.messages)
        found = earliest(table.windows, ranks, best - 1)
        if found is not None:
            ends = found.begin + table.windows.length
            best = max(int(ends.max(initial=0)), int(table.control.max(initial=0)))
            order = each
    if best > WORTH_COLOURS * plain.bound and len(moves) == 1:
        tried += 1
        coloured = by_colour(moves[0])
        ranks = ranks_of([replace(moves[0], order=coloured)], table.messages)
        found = earliest(table.windows, ranks, int(best / WORTH_COLOURS))
        if found is not None:
            ends = found.begin + table.windows.length
            best = max(int(ends.max(initial=0)), int(table.control.max(initial=0)))
            order = coloured
    return Best(order, best, plain.cycles, plain.bound, tried)


def by_colour(move: Move) -> MessageOrder:
    """The order of a move's messages by the colours of an Euler split."""
    colour = Blob(colours_of(move.streams).astype(np.uint16))
    return MessageOrder((), colour, move.destination.parts, move.source.parts)


def _ordered(keys: tuple[Key, ...], move: Move) -> MessageOrder:
    """The order of some keys, for the grids of a move if they need it."""
    if any(key.has_numbers for key in keys):
        return MessageOrder(keys, None, move.destination.parts, move.source.parts)
    return MessageOrder(keys)


def _keys(move: Move) -> Iterator[tuple[Key, ...]]:
    source, destination = move.source, move.destination
    groups = overlap(source, destination, move.space).groups
    along = [
        pair
        for group in groups
        for pair in zip(group.destination_dims, group.source_dims, strict=False)
    ]
    if along:
        apart = [difference(part("d", d), part("s", s)) for d, s in along]
        yield tuple(applied("sign", each) for each in apart)
        yield tuple(apart)
    if move.source.split_dims and move.destination.split_dims:
        most = max(source.cells, destination.cells)
        lines = difference(_line("d", destination), _line("s", source))
        yield (applied("mod", lines, most),)
    for d, s in product(destination.split_dims, source.split_dims):
        most = max(destination.parts[d], source.parts[s])
        yield (applied("mod", difference(part("d", d), part("s", s)), most),)
    for s in source.split_dims:
        yield (part("s", s),)


def _line(side: str, layout: Layout) -> Key:
    """The number of a cell."""
    return total(
        *((part("d" if side == "d" else "s", d), layout.weights[d]) for d in layout.split_dims)
    )
