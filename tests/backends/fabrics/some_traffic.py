"""Traffic between two layouts, for tests of fabrics."""

from __future__ import annotations

import numpy as np

from abele.backends.fabrics.traffic import Carried, Traffic
from abele.backends.prices.price import block_sizes
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout
from abele.ir.geometry.overlap import overlap, sent_elements
from abele.ir.geometry.space import identity_map


def blocks(elements: int, parts: int, first_tile: int, copies: int = 1) -> Layout:
    """A vector in equal blocks on neighbouring tiles, perhaps several times one after another."""
    grid = Cut(copies, copies), Cut(elements, parts)
    return Layout(grid, identity_map((1,), (elements,)), first_tile=first_tile)


def traffic(source: Layout, destination: Layout, tiles: int) -> Traffic:
    """What moves if float32 blocks are copied into another layout; no cycles of a supervisor."""
    made = Traffic.none(tiles)
    add_copy(made, source, destination)
    return made


def add_copy(made: Traffic, source: Layout, destination: Layout) -> None:
    """Add a copy to an exchange."""
    shared = overlap(source, destination)
    assert (shared.wanted == block_sizes(destination)).all()
    to = slice(destination.first_tile, destination.first_tile + destination.cells)
    of = slice(source.first_tile, source.first_tile + source.cells)
    made.received[to] += shared.received * 4
    made.arriving[to] += shared.received * 4
    made.sent[of] += np.asarray(sent_elements(shared)) * 4
    made.carried.append(Carried(shared, 4))
