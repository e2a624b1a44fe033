"""The exchange of the C600's chip, whose distances are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...ir.support.arrays import Integers
from ..facts import PUBLISHED, fact
from .crossbar import Crossbar

TILES = 1472
"""Tiles of the chip: 32 blocks of 46, each a column of 23 rows of pairs."""

ROWS = 23
"""Rows of pairs of tiles in a column."""


@dataclass(frozen=True)
class Ipu21(Crossbar):
    """The exchange of the C600's chip: a crossbar whose words take longer to farther tiles.

    It prices an exchange as a crossbar does. Timetables know when each word arrives.
    Source: ipu-stack topology.rs, which measured it on this chip. Nobody has measured others.
    """

    kind: ClassVar[str] = "ipu21"

    phase_cycles: int = fact(
        250,
        PUBLISHED,
        "ipu-stack EXCHANGE_SLACK: nine phases took 229 to 277 cycles more than scheduled",
        (0, 1e7),
    )

    def latency(self, source: Integers, destination: Integers) -> Integers:
        """Cycles until a word that a tile sends is at the receiver: see `Fabric`.

        Each tile counts from its own release by the sync, so the numbers go from -78 to 112. They
        are what the sender's place adds, what the receiver's place adds, and the way along the
        fabric, which may turn.
        """
        sender, receiver = _Place.of(source), _Place.of(destination)
        straight = sender.column - receiver.column - 30
        turning = 16 * sender.half - sender.column - receiver.column - 15
        way = np.where(sender.half == receiver.half, straight, turning)
        release = 4 * (sender.fold - receiver.fold) + 2 * (sender.row - receiver.row)
        return way + release + np.abs(6 * (receiver.fold - sender.exit) + receiver.entry)


@dataclass(frozen=True, eq=False)
class _Place:
    """Where tiles lie on the chip: (tiles,) each.

    Attributes:
        row: 0..22.
        column: 0..15.
        half: whether the column is one of the last eight, which lie beside the first eight.
        fold: the column's place along the fabric, 0..7, the same for columns k and 15 - k.
        exit: the place at which the tile's words enter the fabric.
        entry: how far behind its place the tile hears words.
    """

    row: Integers
    column: Integers
    half: Integers
    fold: Integers
    exit: Integers
    entry: Integers

    @staticmethod
    def of(tile: Integers) -> _Place:
        """The places of tiles."""
        pair, second = np.divmod(tile % TILES, 2)
        block, row = np.divmod(pair, ROWS)
        column, side = np.divmod(block, 2)
        half = column // 8
        fold = np.where(half > 0, 15 - column, column)
        near, far = np.where(second > 0, 2, 1), np.where(second > 0, 4, 5)
        return _Place(
            np.where(side > 0, ROWS - 1 - row, row),
            column,
            half,
            fold,
            fold + (half ^ side),
            np.where(half == side, near, far),
        )
