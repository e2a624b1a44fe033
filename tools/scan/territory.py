"""Cells that belong to one layer each: what lies in another's moves to the nearest of its own."""

from __future__ import annotations

import numpy as np

from .blur import blurred
from .forces import Floats, Ids
from .kernels import deposit_cells, settle
from .measures import CELLS, Cells

SMOOTH = 1.5
"""Cells over which vertices are counted, so that borders are smooth and splinters vanish."""

REACH = 24
"""Cells that a vertex moves at most."""


def part_layers(x: Floats, y: Floats, layer: Ids) -> int:
    """Move vertices out of cells of other layers, in place; how many found no room within reach.

    A cell belongs to the layer with the most vertices around it. Those of others move by whole
    cells to the nearest that is their layer's or nobody's, and keep their place within.
    """
    cells = Cells.around(x, y)
    owner = _owners(x, y, layer, cells)
    # Those on the rim stay: all cells would lie elsewhere without them.
    rim = np.array([x.argmin(), x.argmax(), y.argmin(), y.argmax()])
    row, column = (
        np.clip((at[rim] - first) * cells.inv, 0, CELLS - 1).astype(np.int32)
        for at, first in ((y, cells.top), (x, cells.left))
    )
    owner[row, column] = layer[rim]
    return settle(x, y, layer, cells.left, cells.top, cells.inv, owner, _ways())


def _ways() -> Ids:
    """Cells to the right and down, (2, n), the nearest first."""
    along = np.arange(-REACH, REACH + 1)
    far = (along * along + (along * along)[:, None]).ravel()
    order = np.argsort(far, kind="stable")
    order = order[(far[order] > 0) & (far[order] <= REACH * REACH)]
    return np.stack([along[order % len(along)], along[order // len(along)]]).astype(np.int32)


def _owners(x: Floats, y: Floats, layer: Ids, cells: Cells) -> Ids:
    """The layer that each cell belongs to: (M, M); -1 for those without a vertex."""
    order = np.argsort(layer, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(layer))
    owner = np.full((CELLS, CELLS), -1, np.int32)
    most = np.zeros((CELLS, CELLS), np.float32)
    held = np.zeros((CELLS, CELLS), bool)
    for k, ids in enumerate(np.split(order, ends[:-1])):
        mine = np.zeros((CELLS, CELLS), np.float32)
        deposit_cells(ids, x, y, cells.left, cells.top, cells.inv, mine)
        held |= mine > 0
        mine = blurred(mine, SMOOTH)
        more = mine > most
        most[more], owner[more] = mine[more], k
    owner[~held] = -1
    return owner
