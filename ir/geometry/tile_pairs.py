"""Pairs of tiles, 2i and 2i + 1, that hold the same block of a tensor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..support.kept_tables import kept_tables
from .layout import Layout
from .overlap import parts_of_cells


@kept_tables(len, entries=4096)
def partners_alike(layout: Layout) -> NDArray[np.bool_]:
    """Whether the other tile of each cell's pair holds the same block: (cells,)."""
    own = tuple(d for d in layout.split_dims if d not in layout.replica_dims)
    block = parts_of_cells(layout.parts, own)
    partner = layout.tiles.cells_on(layout.tiles.of(np.arange(layout.cells)) ^ 1)
    return (partner >= 0) & (block[np.maximum(partner, 0)] == block)
