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
from .lanes import Windows, earliest
from .link_lanes import LinkLanes
from .moves import Move
from .timetable import Demands, check_size, demands, ranks_of

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


NEAR = 0.01
"""How much longer than the bound an order may take, as a share of it, so that no other one is
tried. Chosen by judgement."""

LARGE = 1 << 13
"""Windows of an exchange of which a sample is ordered first. Chosen by measurement: smaller ones
take a few milliseconds."""

SAMPLED = 8
"""One receiver of so many is in a sample. Chosen by measurement, on ResNet-50."""

SHORTLISTED = 3
"""Orders that are tried on the whole exchange, after all were tried on a sample. Chosen by
measurement, on ResNet-50."""


@dataclass(frozen=True)
class Best:
    """The shortest order that was tried.

    Attributes:
        order: None for the order of the senders.
        width: bits of an item, of all moves.
        cycles: of its timetable.
        bound: of the lanes, whatever the order.
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

    Raises InputError if the moves have too many deliveries to list.

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
    found = demands(moves, fabric, tiles, links)
    if not widen:
        return _searched(moves, found)
    wide = tuple(replace(move, width=64) for move in moves)
    paired = demands(wide, fabric, tiles, links)
    if paired.bound >= found.bound:
        return _searched(moves, found)
    best = _searched(wide, paired)
    if best.cycles <= found.bound:
        return best
    return min(best, _searched(moves, found), key=lambda each: each.cycles)


def _searched(moves: tuple[Move, ...], needed: Demands) -> Best:
    """The shortest of the orders of moves that have one width."""
    idle = int(needed.control.max(initial=0))
    enough = needed.bound + int(NEAR * needed.bound)
    best: int | None = None
    order: MessageOrder | None = None
    for each in _shortlist(moves, needed):
        found = _length(moves, each, needed, None if best is None else best - 1)
        if found is not None:
            best, order = max(found, idle), each
            if best <= enough:
                break
    assert best is not None
    if best > WORTH_COLOURS * needed.bound and len(moves) == 1:
        coloured = by_colour(moves[0])
        found = _length(moves, coloured, needed, int(best / WORTH_COLOURS))
        if found is not None:
            best, order = max(found, idle), coloured
    return Best(order, moves[0].width if moves else 32, best, needed.bound)


def _length(
    moves: Sequence[Move], order: MessageOrder | None, needed: Demands, limit: int | None
) -> int | None:
    """The cycle in which the last lane is done; None if that is behind a limit."""
    ranks = ranks_of([replace(move, order=order) for move in moves], needed.messages)
    found = earliest(needed.windows, ranks, limit)
    if found is None:
        return None
    return int((found.begin + needed.windows.length).max(initial=0))


def _shortlist(moves: Sequence[Move], needed: Demands) -> tuple[MessageOrder | None, ...]:
    """The orders that are worth trying on the whole exchange, likely ones first.

    In a large exchange, these are the shortest ones for a sample of receivers.
    """
    orders = orders_of(moves)
    if len(needed.windows.lane) < LARGE or len(orders) <= SHORTLISTED:
        return orders
    sample = _sample(needed)
    lengths: list[tuple[int, int]] = []
    for k, order in enumerate(orders):
        limit = lengths[SHORTLISTED - 1][0] if len(lengths) >= SHORTLISTED else None
        found = _length(moves, order, sample, limit)
        if found is not None:
            lengths = sorted([*lengths, (found, k)])
    return tuple(orders[k] for _, k in lengths[:SHORTLISTED])


def _sample(needed: Demands) -> Demands:
    """An exchange with a drawn share of the receivers alone, and the messages that they hear.

    No order takes longer for it than for the whole exchange.
    """
    messages, windows = needed.messages, needed.windows
    drawn = np.random.default_rng(0).random(len(needed.control)) < 1 / SAMPLED
    heard = np.zeros(len(messages.tile), np.bool_)
    heard[messages.message[drawn[messages.receiver]]] = True
    # Link lanes and lanes out stay whole.
    kept_lanes = np.ones(max(int(windows.lane.max(initial=0)) + 1, 2 * len(drawn)), np.bool_)
    kept_lanes[1 : 2 * len(drawn) : 2] = drawn
    own = heard[windows.message] & kept_lanes[windows.lane]
    number = np.cumsum(heard) - 1
    kept = {
        name: getattr(messages, name)[heard]
        for name in ("move", "stream", "chunk", "tile", "words", "fragments", "wide", "rank")
    }
    return Demands(
        replace(messages, **kept),
        needed.latency,
        Windows(
            windows.lane[own],
            number[windows.message[own]],
            windows.offset[own],
            windows.length[own],
        ),
        needed.control,
    )


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
