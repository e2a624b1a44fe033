"""The columns of a vertex set: the tile, worker, cycles and bytes of each vertex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dialects.steps import Vertices
from ...dialects.variable import Variable
from ...ir.geometry.layout import placement_order
from ...ir.geometry.pairs import runs
from ...ir.support.arrays import Integers
from ...ir.support.distinct import distinct
from ..prices.codelets import whole_cycles
from ..prices.price import operands_of, updates_in_place
from ..prices.workload import Workload
from ..target import Target
from .chips import SetChips
from .parts import dim_parts

SUPERVISOR = -1
"""The worker of a vertex that a tile's supervisor runs with all its workers."""

LEAST_INNER = 64
"""The least number of vertices in the inner of the two short columns whose product makes a column.

Chosen by trial on all columns of ResNet-50 on mk2 with 100 vertices per tile (4.4 million vertices,
least processor time of 24 runs): 29 ms; with 16: 29 ms; with 256: 36 ms; with 1: 38 ms; from 4096
on: 46 ms. DenseNet-121 with one vertex per worker and an addition cut into 8.4 million vertices
agree.
"""

MOST = 1 << 20
"""The most vertices that are written at once.

It bounds the temporaries, of 20 bytes per vertex, to 21 MB. Chosen by trial on an addition cut into
8.4 million vertices: half and double take the same time; double needs 42 MB.
"""


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Parts along some dimensions, row-major: (parts,) each.

    Attributes:
        tile, shape: the part's contributions to the tile number and to the number of the vertex's
            shape.
        thread: the number of the part in its cell.
        threads: the number of parts in that cell.
    """

    tile: Integers
    shape: Integers
    thread: Integers
    threads: Integers

    def __len__(self) -> int:
        return len(self.tile)

    def times(self, inner: _Numbers) -> _Numbers:
        """Every combination of these parts with the inner parts, which vary faster."""
        return _Numbers(
            np.add.outer(self.tile, inner.tile).ravel(),
            np.add.outer(self.shape, inner.shape).ravel(),
            (np.multiply.outer(self.thread, inner.threads) + inner.thread).ravel(),
            np.multiply.outer(self.threads, inner.threads).ravel(),
        )


_ONE = _Numbers(*(np.array([n], np.int64) for n in (0, 0, 0, 1)))


class SetColumns:
    """The columns of the vertices of one set, which are computed piece by piece.

    tile: the tile that the vertex runs on. worker: the worker that runs it; the workers of a tile
    take its vertices in turns; SUPERVISOR for a codelet that starts the workers itself. cycles: of
    the tile's clock, as if all workers ran such vertices at the same time. bytes: the bytes that it
    writes.
    """

    def __init__(self, op: Vertices, variables: Mapping[str, Variable], target: Target) -> None:
        structure, plan = op.structure(), op.plan.data
        dtypes = [v.dtype for v in operands_of(op, variables)]
        self._parts = dim_parts(structure.space, plan)
        self._workers = target.workers if plan.workers else 0
        self._tiles = plan.tiles
        self._sizes = [distinct(part.last - part.first) for part in self._parts]
        grid = np.meshgrid(*self._sizes, indexing="ij")
        sizes = np.stack([g.ravel() for g in grid], axis=1) if grid else np.zeros((1, 0), np.int64)
        # Each part of a cell is priced as one turn of the workers.
        workers = (1,) * sizes.shape[1] if plan.workers else ()
        work = Workload.of(structure, dtypes, target)
        work = replace(work, in_place=updates_in_place(op, variables))
        cycles = whole_cycles(work, sizes, plan.method, workers)
        named = sorted(structure.space.results[0].dims())
        self._cycles = cycles.astype(np.int32)
        made = sum(dtype.itemsize for dtype in dtypes[len(op.sources) :])
        self._bytes = (np.prod(sizes[:, named], axis=1) * made).astype(np.int32)
        self._along = self._tiles_along(plan.split, plan.order)
        self._outer, self._inner = self._numbers()

    def _tiles_along(self, split: Sequence[int], order: tuple[int, ...]) -> tuple[Integers, ...]:
        """What each part of each dimension adds to the number of the tile: (parts,) each."""
        placed = placement_order(len(split), order)
        tiles = {d: self._tiles.along(k) for k, d in enumerate(placed)}
        return tuple(tiles[d][part.cell] for d, part in enumerate(self._parts))

    def chips(self, chip_tiles: int) -> SetChips | None:
        """The chips of the vertices; None if they do not follow from parts alone.

        Args:
            chip_tiles: tiles of a chip.
        """
        return SetChips.of(self._tiles.first, self._along, chip_tiles)

    def _numbers(self) -> tuple[_Numbers, _Numbers]:
        """The parts along the outer dimensions, and those along the inner dimensions."""
        dims = [
            _Numbers(
                self._along[d],
                np.searchsorted(sizes, part.last - part.first)
                * prod(len(s) for s in self._sizes[d + 1 :]),
                part.thread,
                part.threads,
            )
            for d, (part, sizes) in enumerate(zip(self._parts, self._sizes, strict=True))
        ]
        inner = _ONE
        while dims and len(inner) < LEAST_INNER:
            inner = dims.pop().times(inner)
        return reduce(_Numbers.times, dims, _ONE), inner

    def write(self, into: Mapping[str, NDArray[Any]], first: int) -> None:
        """Write the columns of the vertices of the set from `first` on: (vertices,) each."""
        outer, inner = self._outer, self._inner
        done = 0
        last = first + len(into["tile"])
        for rows, columns in runs(first, last, len(inner), MOST):
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            here = slice(done, done + prod(shape))
            done = here.stop
            column = {name: array[here].reshape(shape) for name, array in into.items()}
            np.add.outer(
                (outer.tile[rows] + self._tiles.first).astype(column["tile"].dtype),
                inner.tile[columns].astype(column["tile"].dtype),
                out=column["tile"],
            )
            kind = np.add.outer(outer.shape[rows], inner.shape[columns])
            # Every index is valid. mode="clip" only avoids the copy that NumPy makes to check them.
            for name, of_kind in (("cycles", self._cycles), ("bytes", self._bytes)):
                np.take(of_kind, kind, out=column[name], mode="clip")
            if not self._workers:
                column["worker"][:] = SUPERVISOR
                continue
            # Reduce worker numbers modulo the workers, so that 16-bit integers hold them.
            thread = np.multiply.outer(
                (outer.thread[rows] % self._workers).astype(np.int16),
                (inner.threads[columns] % self._workers).astype(np.int16),
            )
            thread += (inner.thread[columns] % self._workers).astype(np.int16)
            column["worker"][:] = thread % self._workers
