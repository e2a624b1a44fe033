"""Lookups and replacements of rows as compiled calls, whose work is proportional to these rows.

A row of a table is often cut over hundreds of tiles, and each piece lies on another page of the
host's memory. Tables that are not written are therefore packed row by row, from the second run on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from ..codelets.calls import Array, Call, Scratch, address
from ..codelets.cells import Cells
from ..codelets.lookup import axis_along, begin, lookup, varying_axes
from ..codelets.stamps import Stamp, Table
from .calls import KernelCall, elements, even_cuts, table_address
from .cells import HostCells, replica_calls
from .kernels.tables import (
    AXIS_SIZE,
    INDEX_BYTES,
    INDICES,
    INTO,
    LISTED_PIECE_COUNT,
    LISTED_PIECES,
    LISTED_POINT_COUNT,
    LISTED_POINTS,
    LOOKUP_COLUMNS,
    LOOKUP_FIELDS,
    PIECE_BYTES,
    POINT_FIRST_ROW,
    POINT_INDEX,
    POINT_RESULT,
    POINT_ROW,
    ROW_0,
    ROW_STEP,
    ROWS_OF_CELL,
    ZEROS,
)
from .load import has_kernels, kernels

CACHE_LINE = 64
"""Bytes that the host reads at once. Longer pieces of rows need no packing."""

NANOSECONDS_PER_PIECE = 4.0
"""Nanoseconds per piece of a row: a rough estimate."""

MOST_POINTS = 1 << 20
"""The most lookups, and the most pieces of a row, that are listed."""


def host_lookup(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls of a lookup: compiled if it moves rows unchanged, else NumPy's."""
    made = _COMPILED.get(cells.body.combiner or "")
    along = _axis_of_rows(cells)
    if made is None or along < 0 or not has_kernels("lookups"):
        return lookup(cells, scratch)
    return made(cells, along, scratch) or lookup(cells, scratch)


def _axis_of_rows(cells: Cells) -> int:
    """The axis of cells that counts rows which are moved unchanged; -1 if there is none."""
    if cells.body.function != "identity" or len(cells.relations) != 1:
        return -1
    if cells.operands[0].dtype != cells.result.dtype:
        return -1
    along = axis_along(cells.relations[0])
    return -1 if along in varying_axes(cells.operands[1]) else along


def _replacing_calls(cells: Cells, along: int, scratch: Scratch) -> list[Call]:
    """The compiled calls that replace rows; [] if kernels lack them."""
    del scratch
    calls = replica_calls(cells, (0, 1), lambda operands: _replacing_call(cells, operands, along))
    return [*begin(cells), *calls] if calls else []


def _row_calls(cells: Cells, along: int, scratch: Scratch) -> list[Call]:
    """The compiled calls of a lookup of rows; [] if kernels lack them."""
    if set(cells.merged) - {along}:
        return []
    (reached,) = cells.relations
    calls = replica_calls(cells, (0, 1), lambda operands: _row_call(cells, operands, along))
    if not calls or not isinstance(cells, HostCells) or 0 not in cells.equal:
        return calls
    stamp = cells.stamps[0] if cells.stamps else None
    run, _ = _run(cells.operands_read[0], cells.result, (cells.operands[1], reached), along)
    if stamp is None or not stamp.is_state or run >= CACHE_LINE:
        return calls
    return [(_PackedLookup(calls, cells, along, stamp, scratch), ())]


class _PackedLookup:
    """A lookup in a table that is packed row by row once a run finds it unchanged since the run
    before.

    Attributes:
        calls: the calls that read the table in place.
    """

    __slots__ = ("_along", "_calls", "_cells", "_packed", "_scratch", "_seen", "_stamp")

    def __init__(
        self, calls: list[Call], cells: HostCells, along: int, stamp: Stamp, scratch: Scratch
    ) -> None:
        self._calls, self._cells, self._along = calls, cells, along
        self._stamp, self._scratch = stamp, scratch
        self._seen = -1
        self._packed: list[Call] | None = None

    def __call__(self) -> None:
        """Look rows up."""
        latest, calls = self._stamp.latest, self._calls
        if latest != self._seen:
            self._seen, self._packed = latest, None
        else:
            if self._packed is None:
                self._packed = self._pack()
            calls = self._packed
        for function, arguments in calls:
            function(*arguments)

    def _pack(self) -> list[Call]:
        """The call that reads a packed copy of the table; the present calls if there is no memory
        for it.
        """
        cells = self._cells
        table, indices = cells.operands_read[:2]
        once = table[tuple(slice(None) if step else slice(0, 1) for step in table.strides)]
        rows = np.moveaxis(once, self._along, 0)
        room = self._scratch.keep(rows.size * rows.itemsize)
        if room is None:
            return self._calls
        packed = room.view(table.dtype).reshape(rows.shape)
        np.copyto(packed, rows)
        placed = np.broadcast_to(np.moveaxis(packed, 0, self._along), table.shape)
        call = _row_call(cells, (placed, indices), self._along)
        return self._calls if call is None else [call]


def _row_call(cells: Cells, operands: Sequence[Array], along: int) -> Call | None:
    """The call that copies rows of a table along an axis; None if there are too many."""
    table, indices = operands[:2]
    listed = _listed(cells, operands, along)
    if listed is None:
        return None
    head, points, pieces, run = listed
    zeros = np.zeros(run, np.uint8)
    head[[AXIS_SIZE, ROWS_OF_CELL]] = cells.axis_sizes[0], table.shape[along]
    head[[ROW_STEP, ZEROS]] = table.strides[along], address(zeros)
    kept = zeros, table, indices, cells.result, points, pieces
    each = len(pieces) * NANOSECONDS_PER_PIECE
    cuts = even_cuts(len(points), len(points) * each)
    room = 8 * len(points)
    pointers = elements(head, *LISTED_ADDRESSES, ZEROS)
    return KernelCall(kernels("lookups").LOOK_UP, head, cuts, kept, room, pointers), ()


def _replacing_call(cells: Cells, operands: Sequence[Array], along: int) -> Call | None:
    """The call that replaces rows of the result along an axis; None if there are too many."""
    updates, indices = operands[:2]
    listed = _listed(cells, operands, along)
    if listed is None:
        return None
    head, points, pieces, _ = listed
    result = cells.result
    head[[AXIS_SIZE, ROWS_OF_CELL]] = cells.axis_sizes[0], result.shape[along]
    head[ROW_STEP] = result.strides[along]
    kept = updates, indices, result, points, pieces
    # The last of several updates of a row counts, so each thread makes all updates in turn.
    cuts = even_cuts(len(pieces), len(points) * len(pieces) * NANOSECONDS_PER_PIECE)
    pointers = elements(head, *LISTED_ADDRESSES)
    return KernelCall(kernels("lookups").REPLACE_ROWS, head, cuts, kept, pointers=pointers), ()


LISTED_ADDRESSES = INTO, ROW_0, INDICES, LISTED_POINTS, LISTED_PIECES
"""The fields of a head from `_listed` that are addresses."""


def _listed(
    cells: Cells, operands: Sequence[Array], along: int
) -> tuple[Table, Table, Table, int] | None:
    """The head of a kernel's tables, the two tables, and the bytes of a piece.

    The head lacks the fields that depend on the rows. None if there are too many lookups or pieces.

    Args:
        operands: the rows or the table, and the indices.
    """
    (rows, indices), result, (reached,) = operands[:2], cells.result, cells.relations
    run, within = _run(rows, result, (indices, reached), along)
    outer = [d for d in range(result.ndim) if d != along and d not in within]
    naming = {*varying_axes(indices), *varying_axes(reached)}
    lookups, copies = [d for d in outer if d in naming], [d for d in outer if d not in naming]
    shape = tuple(result.shape[d] for d in lookups)
    if prod(shape) > MOST_POINTS or prod(result.shape[d] for d in copies) > MOST_POINTS:
        return None
    points = np.zeros((prod(shape), LOOKUP_COLUMNS), np.int64)
    for column, array in (
        (POINT_RESULT, result),
        (POINT_ROW, rows),
        (POINT_INDEX, indices),
    ):
        points[:, column] = _offsets(array, lookups)
    starts = reached[
        tuple(slice(None) if d in lookups else slice(0, 1) for d in range(result.ndim))
    ]
    points[:, POINT_FIRST_ROW] = starts.reshape(-1)
    pieces = np.stack([_offsets(array, copies) for array in (result, rows)], axis=1)
    pieces = np.ascontiguousarray(pieces)
    head = np.zeros(LOOKUP_FIELDS, np.int64)
    head[[INTO, ROW_0, INDICES]] = address(result), address(rows), address(indices)
    head[[INDEX_BYTES, PIECE_BYTES]] = (
        (-1 if indices.dtype.kind == "i" else 1) * indices.itemsize,
        run,
    )
    head[[LISTED_POINTS, LISTED_POINT_COUNT]] = table_address(points), len(points)
    head[[LISTED_PIECES, LISTED_PIECE_COUNT]] = table_address(pieces), len(pieces)
    return head, points, pieces, run


def _offsets(array: Array, axes: Sequence[int]) -> Table:
    """The offsets, in bytes, of all elements along some axes of an array, row-major."""
    offsets: Table = np.zeros(1, np.int64)
    for d in axes:
        steps: Table = np.arange(array.shape[d], dtype=np.int64) * array.strides[d]
        both: Table = offsets[:, None] + steps
        offsets = both.reshape(-1)
    return offsets


def _run(
    table: Array, result: Array, others: Sequence[Array], along: int
) -> tuple[int, frozenset[int]]:
    """The bytes that are contiguous in a row and in the result, and the axes that they span."""
    run, within = result.itemsize, set[int]()
    changed = True
    while changed:
        changed = False
        for d in range(result.ndim):
            if d == along or d in within or any(d in varying_axes(each) for each in others):
                continue
            if table.strides[d] == result.strides[d] == run and result.shape[d] > 1:
                run *= result.shape[d]
                within.add(d)
                changed = True
    return run, frozenset(within)


_COMPILED: Mapping[str, Callable[[Cells, int, Scratch], list[Call]]] = {
    "pick": _row_calls,
    "last": _replacing_calls,
}
"""By combiner, a function that makes the compiled calls that move rows along an axis."""
