"""What the chips of a program share of its optimiser, as a line for the user."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...dialects.exchange import VariableOp
from ...dialects.settable import listed_names
from ...dialects.variable import bytes_per_tile
from ...ir.upstream import ModuleOp
from ...ir.well_known import TRAINED, UPDATED


def told_shares(module: ModuleOp, chips: int, chip_tiles: int) -> Iterator[str]:
    """A line with the bytes that an optimiser keeps on the fullest chip, and those of a chip that
    holds all of it. No line for an optimiser that keeps nothing.

    Args:
        module: at exchange.
        chip_tiles: tiles of a chip.
    """
    kept = _names(module, UPDATED) - _names(module, TRAINED)
    held, whole = np.zeros(chips, np.int64), 0
    for op in module.walk():
        if isinstance(op, VariableOp) and op.state is not None and op.symbol in kept:
            tiles = op.placed.tiles.of(np.arange(op.placed.cells))
            size = bytes_per_tile(op.placed, op.dtype.itemsize)
            held += size * np.bincount(tiles // chip_tiles, minlength=chips)
            whole += size * op.placed.cells // op.placed.replicas
    if whole:
        most = int(held.max())
        yield (
            f"chips: the optimiser keeps {most:,} bytes on the fullest chip, of {whole:,} in all: "
            f"{whole - most:,} fewer than on a chip that holds all of it"
        )


def _names(module: ModuleOp, attribute: str) -> set[str]:
    return {*(listed_names(module, attribute) or ())}
