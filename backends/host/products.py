"""Sums of products as one compiled call for all tiles of a shape class.

Where an operand is the same on a group of tiles, the products of all of them are one: what is the
same is read once, from the first of them. That changes no bit, as the order in which terms are
added is that of the inner axes, whatever else is computed with them (`ordered`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..codelets.calls import Call, Scratch
from .chains import FLOATS
from .fast import Array, Stamp, Table, address, kernels

ALIGNMENT = 64

SHORTEST_RUN = 4
"""Elements that lie together, from which on they are copied as runs."""


@dataclass(frozen=True)
class Groups:
    """The axes of a batch of products, slowest first, as (size, stride of each array)."""

    batch: Sequence[int]
    left: Sequence[int]
    right: Sequence[int]
    inner: Sequence[int]


@dataclass(frozen=True)
class Partials:
    """Where blocks of partial sums lie, each on a tile of its own.

    begin: address of the first block. tile: bytes to the next cell. dims: the dimensions along
    which there are several blocks of the same elements, in the order in which those are added up:
    cells from one to the next, how many.
    """

    begin: int
    tile: int
    dims: tuple[tuple[int, int], ...]

    def places(self, addresses: Table) -> tuple[Table, Table]:
        """Of addresses within blocks: which of the partials, and bytes on from the first one."""
        cells = (addresses - self.begin) // self.tile
        rank, on = np.zeros_like(cells), np.zeros_like(cells)
        for weight, count in self.dims:
            at = cells // weight % count
            rank, on = rank * count + at, on + at * weight * self.tile
        return rank, on


def product_calls(
    separate: tuple[Groups, Sequence[Array]],
    shared: tuple[Groups, Sequence[Array]] | None,
    stamps: Sequence[Stamp | None],
    scratch: Scratch,
) -> list[Call]:
    """The call that computes a batch of products; nothing for types that no kernel has.

    separate: groups of axes and arrays (left operand, right operand, result), each tile with its
    own. shared: the same where an operand that is the same on several tiles has stride 0.
    stamps: of the left and the right operand.
    """
    if any(a.dtype not in FLOATS for a in separate[1]):
        return []
    return [(Products(separate, shared, stamps, scratch), ())]


class Products:
    """Runs products, folded while the bytes of replicas are known to be equal.

    An operand that nobody has written to since the last run is kept packed, until somebody does.
    """

    def __init__(
        self,
        separate: tuple[Groups, Sequence[Array]],
        shared: tuple[Groups, Sequence[Array]] | None,
        stamps: Sequence[Stamp | None],
        scratch: Scratch,
    ) -> None:
        self._separate = separate
        self._stamps = [stamp for stamp in stamps if stamp is not None]
        self._scratch = scratch
        self._seen: list[int | None] = [None] * len(self._stamps)
        # Whether bytes are equal is known only of operands that both have a stamp.
        known = shared if len(self._stamps) == len(stamps) else None
        self._shared = None if known is None else _Bound(*known, scratch)
        self._apart: _Bound | None = None
        self._partials: Partials | None = None

    def is_apart(self, partials: Partials) -> bool:
        """Whether one of the partials after another can be computed."""
        return self._shared is not None and self._shared.is_apart(partials)

    def add_up(self, partials: Partials) -> None:
        """Add each block of partial sums to the first one from now on."""
        assert self._shared is not None
        self._partials = partials
        self._shared.add_up(partials)

    def __call__(self) -> None:
        """Compute the products."""
        shared = self._shared
        wholes = [stamp.whole for stamp in self._stamps]
        if shared is None or None in wholes:
            if self._apart is None:
                self._apart = _Bound(*self._separate, self._scratch)
                if self._partials is not None:
                    self._apart.add_up(self._partials)
            self._apart(0)
            return
        known = 0
        for side, whole in enumerate(wholes):
            if whole == self._seen[side]:
                known |= shared.keep(side, self._scratch)
            else:
                shared.forget(side)
        self._seen = wholes
        shared(known)


class _Bound:
    """A call of products: its tables, and where operands are packed.

    What is packed for one product of the batch is gone with the next one, unless it is kept.
    """

    def __init__(self, groups: Groups, arrays: Sequence[Array], scratch: Scratch) -> None:
        compiled = kernels()
        first, second, result = arrays
        width, height = int(compiled.COLUMNS), int(compiled.ROWS)
        lanes = int(compiled.LANES)
        offsets = [_offsets(a, groups.batch) for a in arrays]
        self._batch = np.stack(offsets, axis=1)
        rows, row_results = (_offsets(a, groups.left) for a in (first, result))
        columns, column_results = (_offsets(a, groups.right) for a in (second, result))
        depth, depths = (_offsets(a, groups.inner) for a in (first, second))
        runs, spans = _runs(columns, second.itemsize, width, lanes)
        result_runs, result_spans = _runs(column_results, result.itemsize, width, lanes)
        sizes = (
            -(-len(rows) // height) * height * len(depth),
            -(-len(columns) // width) * width * len(depth),
        )
        panels = -(-len(rows) // height)
        self._scratch = scratch
        rows_room = scratch.take("rows", (sizes[0],), FLOATS[0])
        # A tile of results for each panel of rows, and one to spare.
        room = (len(depth) + height * (panels + 1)) * width + 2 * lanes
        room = scratch.take("panel", (room,), FLOATS[0])
        room.fill(0)
        panel = -(-address(room) // ALIGNMENT) * ALIGNMENT
        tile = panel + len(depth) * width * 4
        pointers = [address(a) for a in arrays]
        self._head = np.array(
            [
                *(*pointers, *(a.itemsize for a in arrays), len(columns)),
                *(address(rows_room), panel, tile),
            ],
            np.int64,
        )
        self._kernel = compiled.products
        columns, column_results = (np.pad(o, (0, lanes)) for o in (columns, column_results))
        self._results = row_results, column_results
        self._tables = (
            *(rows, row_results, runs, spans, columns),
            *(result_runs, result_spans, column_results, depth, depths),
        )
        self._arrays = [*arrays, rows_room, room]
        each = np.arange(len(self._batch))
        self._groups = np.stack([each, each + 1], axis=1)
        self._sizes = [len(self._batch) * size for size in sizes]
        self._unkept = list(self._head[7:9])
        self._rooms: list[Array | None] = [None, None]
        self._is_kept = [False, False]
        self._flags = (
            (int(compiled.ROWS_KEPT), int(compiled.ROWS_PACKED)),
            (int(compiled.COLUMNS_KEPT), int(compiled.COLUMNS_PACKED)),
        )

    def is_apart(self, partials: Partials) -> bool:
        """Whether each product of the batch is of one of the partials alone, and the first of the
        partials is there for all of them."""
        begin = self._head[2] + self._batch[:, 2]
        which, on = partials.places(begin)
        firsts = np.isin(begin - on, begin[which == 0]).all()
        (own,) = which[:1]
        alone = (partials.places(begin[:1] + offsets)[0] == own for offsets in self._results)
        return bool(firsts) and all(each.all() for each in alone)

    def add_up(self, partials: Partials) -> None:
        """Add products to those of the first of the partials, one of them after another."""
        which, on = partials.places(self._head[2] + self._batch[:, 2])
        self._batch[:, 2] -= on
        self._batch = self._batch[np.lexsort((which, self._batch[:, 2]))]
        edges = np.flatnonzero(np.r_[True, np.diff(self._batch[:, 2]) != 0, True])
        self._groups = np.stack([edges[:-1], edges[1:]], axis=1)
        longest = int(np.diff(self._groups).max())
        rows = self._sizes[0] // len(self._batch)
        room = self._scratch.take("rows", (longest * rows,), FLOATS[0])
        self._arrays.append(room)
        self._unkept[0] = self._head[7] = address(room)

    def __call__(self, known: int) -> None:
        """Multiply; known: what of the operands is kept, and what is packed already."""
        self._kernel(self._head, self._batch, self._groups, *self._tables, known)

    def keep(self, side: int, scratch: Scratch) -> int:
        """Keep an operand packed, if there is room; returns what is known of it."""
        kept, packed = self._flags[side]
        if self._is_kept[side]:
            return kept | packed
        room = self._rooms[side]
        if room is None:
            room = self._rooms[side] = scratch.kept(self._sizes[side] * 4 + ALIGNMENT)
        if room is None:
            return 0
        self._is_kept[side] = True
        self._head[7 + side] = -(-address(room) // ALIGNMENT) * ALIGNMENT
        return kept

    def forget(self, side: int) -> None:
        """Keep an operand no longer."""
        if self._is_kept[side]:
            self._is_kept[side] = False
            self._head[7 + side] = self._unkept[side]


def _offsets(array: Array, axes: Sequence[int]) -> Table:
    """Bytes from the first element to each along some axes, the first of them slowest."""
    found = np.zeros(1, np.int64)
    for d in axes:
        steps = np.arange(array.shape[d], dtype=np.int64) * array.strides[d]
        found = (found[:, None] + steps).reshape(-1)
    return found


def _runs(offsets: Table, itemsize: int, width: int, lanes: int) -> tuple[Table, Table]:
    """How panels of columns are read or written: what lies together as one, else one by one.

    Returns (first lane, how many, bytes on, entry of offsets, whether together), and the first run
    of each panel of `width` columns with the end.
    """
    at = np.arange(len(offsets))
    begins = at % width == 0
    begins[1:] |= np.diff(offsets) != itemsize
    within = at - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    begins |= within % lanes == 0
    # A vector's worth of short runs is taken one by one.
    vector = at // lanes
    apart = (np.bincount(vector[begins], minlength=vector[-1] + 1) > lanes // SHORTEST_RUN)[vector]
    edges = at % lanes == 0
    edges[1:] &= apart[1:] | apart[:-1]
    starts: NDArray[np.bool_] = edges | (begins & ~apart)
    first = np.flatnonzero(starts)
    count = np.diff(np.r_[first, len(offsets)])
    where = np.where(apart[first], 0, offsets[first])
    runs = np.stack([first % width, count, where, first, ~apart[first]], axis=1, dtype=np.int64)
    panels = np.arange(0, len(offsets) + width, width)
    return runs, np.searchsorted(first, panels).astype(np.int64)
