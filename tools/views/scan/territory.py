"""Gives each cell to one layer, and moves vertices out of cells of other layers."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import ndimage

from ....ir.support.distinct import distinct
from .blur import blur
from .forces import Floats, Ids
from .kernels import deposit_cells, settle
from .measures import CELLS, Cells

SMOOTH = 1.5
"""The width, in cells, over which vertices are counted, so that borders are smooth."""

REACH = 24
"""The distance, in cells, within which a vertex looks for a cell of its layer or a free one."""


def separate_layers(x: Floats, y: Floats, layer: Ids) -> int:
    """Move vertices out of cells of other layers, in place. Returns the number that found no cell.

    A cell belongs to the layer with the most vertices around it. Vertices of other layers move by
    whole cells to the nearest cell that belongs to their layer or to none, and keep their place
    within the cell. If there is none within reach, they move to the nearest cell of their layer.
    """
    cells = Cells.around(x, y)
    owner = _owners(x, y, layer, cells)
    # Vertices on the rim stay and none moves beyond it, because this would move all cells.
    rim = np.array([x.argmin(), x.argmax(), y.argmin(), y.argmax()])
    row, column = _cells_of(x[rim], y[rim], cells)
    owner[row, column] = layer[rim]
    box = x[rim[:2]], y[rim[2:]]
    homeless = settle(x, y, layer, cells.left, cells.top, cells.inv, owner, _offsets())
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
    """Move vertices in cells of other layers to the nearest cell of their own, at any distance."""
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


def _offsets() -> Ids:
    """Offsets of cells to the right and down, (2, n), the nearest first."""
    along = np.arange(-REACH, REACH + 1)
    far = (along * along + (along * along)[:, None]).ravel()
    order = np.argsort(far, kind="stable")
    order = order[(far[order] > 0) & (far[order] <= REACH * REACH)]
    return np.stack([along[order % len(along)], along[order // len(along)]]).astype(np.int32)


def _owners(x: Floats, y: Floats, layer: Ids, cells: Cells) -> Ids:
    """The layer that each cell belongs to: (M, M); -1 for cells without a vertex."""
    order = np.argsort(layer, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(layer))
    owner = np.full((CELLS, CELLS), -1, np.int32)
    most = np.zeros((CELLS, CELLS), np.float32)
    held = np.zeros((CELLS, CELLS), bool)
    for k, ids in enumerate(np.split(order, ends[:-1])):
        mine = np.zeros((CELLS, CELLS), np.float32)
        deposit_cells(ids, x, y, cells.left, cells.top, cells.inv, mine)
        held |= mine > 0
        blur(mine, SMOOTH)
        more = mine > most
        most[more], owner[more] = mine[more], k
    owner[~held] = -1
    return owner
