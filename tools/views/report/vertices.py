"""The tables of vertices: the vertices of each tile, worker by worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....backends.graph.columns import SetColumns
from ....backends.graph.parts import vertex_count
from ....backends.prices.step_charges import StepCharge
from ....backends.target import Target
from ....dialects.abele import Plan
from ....dialects.steps import Vertices
from ....dialects.variable import Variable
from ....ir.geometry.grid import Cut
from ....ir.geometry.layout import placement_order
from ....ir.geometry.space import Space
from ....ir.geometry.tiles import Tiles
from ....ir.support.arrays import Integers
from .columns import Table, table

MOST_VERTICES = 1 << 22
"""The most vertices of a compute set in a report, which bounds its memory. Larger sets are left
out, and the report says so.

Measured for an exp of 65,536 vertices per tile, on a Xeon at 2.5 GHz: this many vertices take 239
MB temporarily, and 0.5 CPU s. Half as many take 120 MB and 0.4 s, twice as many 478 MB and 0.8 s.
The table has 6 rows each time, since equal vertices share one.
"""


def vertex_tables(
    steps: Sequence[StepCharge], variables: Mapping[str, Variable], target: Target
) -> tuple[dict[str, Table], int]:
    """The tables `vertices` and `vertex_tiles`, and the number of compute sets that they leave out.

    Tiles whose cells have the same sizes run the same vertices, so one of them stands for all.
    """
    vertices: list[Integers] = []
    runs: list[Integers] = []
    left_out = 0
    parts = (each.op for step in steps for each in step.operations)
    for part, op in enumerate(parts):
        if not isinstance(op, Vertices):
            continue
        count = vertex_count(op.space.data, op.plan.data)
        if count > MOST_VERTICES:
            left_out += 1
            continue
        kinds = _kinds(op.space.data, op.plan.data)
        rows = _vertices_of_kinds(SetColumns(op, variables, target), count, op.plan.data, kinds)
        vertices.append(_after(part, rows))
        runs.append(_after(part, _runs(kinds, op.plan.data.tiles)))
    return {
        "vertices": _table("vertices", vertices),
        "vertex_tiles": _table("vertex_tiles", runs),
    }, left_out


def _kinds(space: Space, plan: Plan) -> Integers:
    """The kind of each tile of a plan, in order: a number, equal for tiles whose cells have equal
    sizes.
    """
    kinds = np.zeros((1,) * len(plan.split), np.int64)
    for d, (size, parts) in enumerate(zip(space.sizes, plan.split, strict=True)):
        sizes = np.diff(Cut(size, parts).edges())
        distinct, number = np.unique(sizes, return_inverse=True)
        shape = [-1 if e == d else 1 for e in range(len(plan.split))]
        kinds = kinds * len(distinct) + number.reshape(shape)
    return kinds.transpose(placement_order(len(plan.split), plan.order)).ravel()


def _vertices_of_kinds(columns: SetColumns, count: int, plan: Plan, kinds: Integers) -> Integers:
    """Rows of kind, worker, cycles, bytes, and the number of such vertices on a tile of the
    kind."""
    made: dict[str, NDArray[Any]] = {
        "tile": np.empty(count, np.int32),
        "worker": np.empty(count, np.int8),
        "cycles": np.empty(count, np.int32),
        "bytes": np.empty(count, np.int32),
    }
    columns.write(made, 0)
    numbers, first = np.unique(kinds, return_index=True)
    shown = np.full(len(kinds), -1, np.int64)
    shown[first] = numbers
    kind = shown[plan.tiles.cells_on(made["tile"].astype(np.int64))]
    here = np.flatnonzero(kind >= 0)
    rows = np.stack([kind[here], *(made[n][here] for n in ("worker", "cycles", "bytes"))], axis=1)
    found, many = np.unique(rows, axis=0, return_counts=True)
    return np.column_stack([found, many])


def _runs(kinds: Integers, tiles: Tiles) -> Integers:
    """Rows of kind, first tile and number of tiles, for neighbouring tiles of the same kind."""
    here = tiles.of(np.arange(tiles.count))
    order = np.argsort(here)
    kinds, here = kinds[order], here[order]
    begins = (np.diff(kinds, prepend=-1) != 0) | (np.diff(here, prepend=-2) != 1)
    starts = np.flatnonzero(begins)
    return np.column_stack([kinds[starts], here[starts], np.diff(starts, append=len(kinds))])


def _after(part: int, rows: Integers) -> Integers:
    return np.column_stack([np.full(len(rows), part), rows])


def _table(name: str, found: Iterable[Integers]) -> Table:
    width = len(COLUMNS[name])
    rows = np.concatenate([np.zeros((0, width), np.int64), *found])
    return table(name, dict(zip(COLUMNS[name], rows.T, strict=True)))


COLUMNS = {
    "vertices": ("part", "kind", "worker", "cycles", "bytes", "vertices"),
    "vertex_tiles": ("part", "kind", "first_tile", "tiles"),
}
"""The columns of the rows above."""
