"""Faults on purpose, for tests and for bisection: a flipped byte, a lost message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...dialects.steps import Copy, Superstep
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import AccessMap, Space
from ..codelets.numerics import Placed
from .blocks import Blocks, copy_blocks

AFTER_LOAD = "after load"


@dataclass(frozen=True)
class FlipByte:
    """Flip the bits of `mask` in one byte of a variable's block on a tile, once.

    Attributes:
        when: "after load", or the name of a superstep: the fault happens at its first end in each
            run.
    """

    variable: str
    tile: int
    offset: int
    mask: int = 1
    when: str = AFTER_LOAD


@dataclass(frozen=True)
class DropMessage:
    """Lose the data that one tile sends to another in a superstep; the old bytes stay."""

    superstep: str
    source_tile: int
    destination_tile: int


@dataclass(frozen=True)
class Lost:
    """The bytes of one tile that a dropped message would have written.

    Attributes:
        row: the block that contains them, in the machine's memory.
        mask: selects them in the block.
    """

    row: NDArray[np.uint8]
    mask: NDArray[np.bool_]


def lost_bytes(drop: DropMessage, step: Superstep, blocks: Mapping[str, Blocks]) -> list[Lost]:
    """The bytes that the moves of a superstep bring from one tile to another."""
    lost: list[Lost] = []
    if drop.source_tile == drop.destination_tile:
        return lost
    for move in step.body.block.ops:
        if not isinstance(move, Copy):
            continue
        target = blocks[move.destination]
        if drop.destination_tile not in target.layout.tiles:
            continue
        cell = target.layout.tiles.cell_on(drop.destination_tile)
        filled, moves = move.routes(target.layout)
        tiles = _sending_tiles([blocks[n] for n in move.sources], moves, filled)
        mask = np.repeat(tiles[cell] == drop.source_tile + 1, target.placed.dtype.itemsize)
        if mask.any():
            start = target.placed.address
            row = target.placed.memory[drop.destination_tile, start : start + len(mask)]
            lost.append(Lost(row, mask))
    return lost


def _sending_tiles(
    sources: list[Blocks], moves: tuple[Space, ...] | None, target: Layout
) -> NDArray[np.int32]:
    """The tile that each element of every receiving block comes from, plus one: (cells, elements).

    Found by copying blocks whose elements are all their tile's number. Padding is -1.
    """

    def numbered(layout: Layout) -> Blocks:
        memory = np.empty((layout.cells, max(layout.block_elements, 1)), np.int32)
        memory[...] = layout.tiles.of(np.arange(layout.cells))[:, None] + 1
        placed = Placed(memory.view(np.uint8), 0, np.dtype(np.int32))
        return Blocks(placed, replace(layout.stacked, access=_unfilled(layout.access)))

    received = numbered(target)
    numbers = received.placed.memory.view(np.int32)
    numbers.fill(0)
    unfilled = moves and [
        replace(space, operands=tuple(map(_unfilled, space.operands))) for space in moves
    ]
    copy_blocks([numbered(source.layout) for source in sources], unfilled, received)
    return numbers[:, : target.block_elements]


def _unfilled(access: AccessMap) -> AccessMap:
    return replace(access, fill=-1.0)
