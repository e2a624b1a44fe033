"""Cells that belong to one layer each: what lies in another's moves to the nearest of its own."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import ndimage

from ....ir.distinct import distinct
from .blur import blurred
from .forces import Floats, Ids
from .kernels import deposit_cells, settle
from .measures import CELLS, Cells

SMOOTH = 1.5
"""Cells over which vertices are counted, so that borders are smooth and splinters vanish."""

REACH = 24
"""Cells within which a vertex looks for one that is its layer's or nobody's."""


def part_layers(x: Floats, y: Floats, layer: Ids) -> int:
    """Move vertices out of cells of other layers, in place; how many have no cell anywhere.

    A cell belongs to the layer with the most vertices around it. Those of others move by whole
    cells to the nearest that is their layer's or nobody's, and keep their place within; where
    there is none within reach, to the nearest that is their layer's.
    """
    cells = Cells.around(x, y)
    owner = _owners(x, y, layer, cells)
    # Those on the rim stay, and none goes beyond: all cells would lie elsewhere.
    rim = np.array([x.argmin(), x.argmax(), y.argmin(), y.argmax()])
    row, column = _cells_of(x[rim], y[rim], cells)
    owner[row, column] = layer[rim]
    box = x[rim[:2]], y[rim[2:]]
    homeless = settle(x, y, layer, cells.left, cells.top, cells.inv, owner, _ways())
    if homeless:
        homeless = _send_home(x, y, layer, cells, owner)
    for at, (first, last) in zip((x, y), box, strict=True):
        np.clip(at, first, last, out=at)
    return homeless


def _cells_of(x: Floats, y: Floats, cells: Cells) -> tuple[Ids, Ids]:
    """The row and the column of each place."""
    row, column = (
        np.clip((at - first) * cells.inv, 0, CELLS - 1).astype(np.int32)
        for at, first in ((y, cells.top), (x, cells.left))
    )
    return row, column


def _send_home(x: Floats, y: Floats, layer: Ids, cells: Cells, owner: Ids) -> int:
    """Move those in cells of other layers to the nearest of their own, however far, in place."""
    row, column = _cells_of(x, y, cells)
    away = np.flatnonzero(owner[row, column] != layer)
    homeless = 0
    for k in distinct(layer[away]):
        mine = away[layer[away] == k]
        if not (owner == k).any():
            homeless += len(mine)
            continue
        nearest = cast(
            Ids,
            ndimage.distance_transform_edt(owner != k, return_distances=False, return_indices=True),
        )
        down, right = nearest[:, row[mine], column[mine]] - np.stack([row[mine], column[mine]])
        x[mine] += (right / cells.inv).astype(np.float32)
        y[mine] += (down / cells.inv).astype(np.float32)
    return homeless


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
