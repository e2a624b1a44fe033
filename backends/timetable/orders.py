"""Orders that serve most moves, in closed form.

Traffic between products of layouts is regular: a move sends along some dimensions of two grids. A
few kinds of keys let every lane be busy all the time:

- *class*: all receivers that hear the same senders hear them one after the other, `s1`.
- *shift*: a Latin square. Everyone sends to a receiver of their own, then to the next one,
  `(d0 - s0) mod 46`.
- *direction*: everyone sends to the same neighbour at once, `sign(d0 - s0), sign(d1 - s1)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ...dialects.message_order import MessageOrder
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import overlap
from ...ir.geometry.part_keys import Key, applied, difference, part, total
from .moves import Move

MOST_TRIED = 24
"""Orders that are tried for a move. Chosen by judgement: moves between grids of three dimensions
have fewer."""


def orders_of(move: Move) -> tuple[MessageOrder | None, ...]:
    """The orders that may serve a move, each once. The first one is None, that of the senders."""
    found = dict.fromkeys(_keys(move))
    return (None, *(_ordered(keys, move) for keys in tuple(found)[: MOST_TRIED - 1]))


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
