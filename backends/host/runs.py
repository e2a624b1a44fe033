"""The runs of a copy: all stretches of bytes that it moves or fills, and the kind of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from ...ir.geometry.layout import Layout
from ..codelets.calls import Array
from ..codelets.stamps import Table
from .bundles import entries_of, groups, with_bundles
from .kernels.tables import (
    BY_BYTES,
    BY_WORDS,
    FILLED,
    GATHERED,
    LANES,
    REPLICA,
    RUN_FIELDS,
    RUN_LENGTH,
    RUN_PIECES,
    RUN_ROW_TABLE,
    RUN_ROWS,
    RUN_SOURCE,
    RUN_TARGET,
)
from .offsets import ABSENT, FILL, Offsets, Side, states
from .run_costs import bytes_of, stages_of
from .walked_axes import WalkedAxis, spans_of

LONG_RUN = 4
"""Elements of the shortest run that is copied as a run if both sides are contiguous."""

MOST_PARITIES = 3
"""The most stretches of even and of odd pieces into which a run is cut."""


def runs_of(
    offsets: Offsets, target: Side, axes: list[WalkedAxis], fill: int, with_replicas: bool
) -> tuple[Any, ...]:
    """The tables of the calls that copy the elements of one source, and the cuts of each call.

    There are several calls if replicas are copied after all cells, and not cell by cell.
    """
    layout, row, unit = target.layout, target.row, target.unit
    found = [axis.offsets(layout, offsets) for axis in axes]
    *outer, middle, inner = axes
    rows, row_spans = _rows(middle, found[-2])
    runs, run_spans, lanes = _runs(inner, found[-1], unit)
    number = np.meshgrid(*(np.arange(len(axis.tiles)) for axis in axes), indexing="ij")
    columns = [n.ravel() for n in number]
    begins = sum(f[spans_of(a.counts)[c, 0]] for f, a, c in zip(found, axes, columns, strict=True))
    # Elements that are neighbours in the source are read one after the other.
    order = np.argsort(begins, kind="stable")
    columns = [c[order] for c in columns]
    tiles = np.zeros(len(order), np.int64)
    for axis, c in zip(axes, columns, strict=True):
        tiles += axis.tiles[c]
    cell, on, at = _points(outer, columns, found)
    on += tiles[cell]
    # Each point has stretches of rows, and each stretch has runs.
    which, stretch = _within(row_spans[columns[-2][cell]])
    cell, on, at = cell[which], on[which], at[which] + rows[stretch, 3]
    there = at < ABSENT
    cell, on, at, stretch = cell[there], on[there], at[there], stretch[there]
    which, run = _within(run_spans[columns[-1][cell]])
    cell, stretch, kind = cell[which], stretch[which], runs[run, 3]
    table = np.zeros((len(run), RUN_FIELDS), np.int64)
    table[:, RUN_TARGET] = on[which] + rows[stretch, 2] + runs[run, 0]
    table[:, RUN_LENGTH] = runs[run, 2]
    table[:, RUN_ROWS] = rows[stretch, 1]
    is_filled = (at[which] >= FILL) | (kind == FILLED)
    elements = bytes_of(kind, runs[run, 2], unit) // unit
    table[is_filled, RUN_LENGTH] = elements[is_filled]
    kind = np.where(is_filled, FILLED, kind)
    is_gathered = kind >= GATHERED
    copied = np.flatnonzero(~is_filled)
    table[:, RUN_PIECES] = runs[run, 1] * is_gathered
    table[copied, RUN_SOURCE] = (at[which] + runs[run, 1] * ~is_gathered)[copied]
    entries = np.append(found[-2], 0)
    table[:, RUN_ROW_TABLE] = rows[stretch, 0]
    is_single = copied[table[copied, RUN_ROWS] == 1]
    table[is_single, RUN_SOURCE] += entries[table[is_single, RUN_ROW_TABLE]]
    table[is_single, RUN_ROW_TABLE] = len(entries) - 1
    if with_replicas:
        is_whole = not any((f >= ABSENT).any() for f in found)
        whole = _together(axes, columns, unit) * is_whole
        copies, of = _replicas(layout, row, table, cell, kind, tiles, whole, unit)
        table = np.concatenate([table, copies])
        cell = np.concatenate([cell, of])
        kind = np.concatenate([kind, np.full(len(of), REPLICA)])
    table, kind, first, last, entries = with_bundles(table, kind, cell, entries, middle.stride)
    # Only replicas need to be in the same group as the runs that they copy.
    group = groups(first, last if with_replicas else first)
    order = np.lexsort((table[:, RUN_LENGTH], kind, group))
    table, kind, group = table[order], kind[order], group[order]
    edges = np.flatnonzero(np.r_[True, np.diff(kind) != 0, True]) if len(kind) else np.zeros(1, int)
    segments = np.stack([kind[edges[:-1]], edges[:-1], edges[1:]], axis=1)
    rest = np.array([unit, fill, middle.stride], np.int64)
    return rest, segments, table, entries, lanes, stages_of(table, kind, group, unit)


def _points(
    axes: Sequence[WalkedAxis], columns: Sequence[Table], found: Sequence[Table]
) -> tuple[Table, Table, Table]:
    """The combined indices of each cell along some axes.

    Returns, for each, its cell, its offset in the block, and the offset of its source.

    Args:
        columns: the index of each cell along each axis.
    """
    counts = [axis.counts[c] for axis, c in zip(axes, columns, strict=False)]
    points = reduce(np.multiply, counts, np.ones(len(columns[0]), np.int64))
    cell, left = entries_of(points)
    on, at = np.zeros_like(left), np.zeros_like(left)
    for axis, column, count, offsets in reversed(
        list(zip(axes, columns, counts, found, strict=False))
    ):
        left, within = np.divmod(left, count[cell])
        element = spans_of(axis.counts)[column[cell], 0] + within
        on, at = on + axis.at[element], at + offsets[element]
    return cell, on, at


def _within(spans: Table) -> tuple[Table, Table]:
    """For spans (first, end), the number of the span of each element, and the element itself."""
    span, within = entries_of(spans[:, 1] - spans[:, 0])
    return span, spans[span, 0] + within


def _replicas(
    layout: Layout,
    row: int,
    table: Table,
    cell: Table,
    kind: Table,
    tiles: Table,
    whole: Table,
    unit: int,
) -> tuple[Table, Table]:
    """The runs that copy the first replica of each cell to the others, and the cell of each run.

    A contiguous block is copied as a whole, others run by run.

    Args:
        row: bytes of a tile.
        table, cell, kind: the runs of first replicas, the cell of each, and its kind.
        tiles, whole: the offset of each cell, and the bytes of its block if it is contiguous.
    """
    dims = layout.replica_dims
    sizes = [layout.parts[d] for d in dims]
    parts = np.indices(sizes).reshape(len(dims), prod(sizes))
    on = np.zeros(prod(sizes), np.int64)
    for d, part in zip(dims, parts, strict=True):
        on += layout.tiles.along(d)[part] * row
    on = on[1:]
    by_run = table[whole[cell] == 0]
    runs = np.zeros((len(by_run), RUN_FIELDS), np.int64)
    runs[:, [RUN_TARGET, RUN_ROWS]] = by_run[:, [RUN_TARGET, RUN_ROWS]]
    runs[:, RUN_SOURCE] = by_run[:, RUN_TARGET]
    runs[:, RUN_LENGTH] = bytes_of(kind[whole[cell] == 0], by_run[:, RUN_LENGTH], unit)
    as_whole = np.flatnonzero(whole)
    blocks = np.zeros((len(as_whole), RUN_FIELDS), np.int64)
    blocks[:, [RUN_TARGET, RUN_SOURCE]] = tiles[as_whole, None]
    blocks[:, RUN_LENGTH], blocks[:, RUN_ROWS] = whole[as_whole], 1
    once = np.concatenate([runs, blocks])
    cells = np.concatenate([cell[whole[cell] == 0], as_whole])
    copies = np.repeat(once, len(on), axis=0)
    copies[:, RUN_TARGET] += np.tile(on, len(once))
    return copies, np.repeat(cells, len(on))


def _together(axes: list[WalkedAxis], columns: list[Array], unit: int) -> Table:
    """The bytes of each cell's block if the block is contiguous, else 0."""
    inner = axes[-1]
    ends = np.cumsum(inner.counts) - 1
    length = np.where(inner.at[ends] == (inner.counts - 1) * unit, inner.counts * unit, 0)
    length = length[columns[-1]]
    order = sorted(range(len(axes) - 1), key=lambda i: axes[i].stride)
    for i in order:
        count = axes[i].counts[columns[i]]
        grown = np.where(length == axes[i].stride, length * count, 0)
        length = np.where(count == 1, length, grown)
    return length


def _rows(axis: WalkedAxis, found: Table) -> tuple[Table, Table]:
    """For each cell, stretches of rows that all have sources, are all filled, or are all absent.

    Returns, for each stretch, (first entry, rows, offset in the block, 0 or FILL or ABSENT), and
    the span of each cell's stretches.
    """
    there = states(found)
    breaks = np.r_[True, (np.diff(axis.part) != 0) | (np.diff(there) != 0)]
    first = np.flatnonzero(breaks)
    count = np.diff(np.r_[first, len(found)])
    state = np.array([0, FILL, ABSENT])[there[first]]
    spans = spans_of(np.bincount(axis.part[first], minlength=len(axis.tiles)))
    return np.stack([first, count, axis.at[first], state], axis=1), spans


def _runs(axis: WalkedAxis, found: Table, unit: int) -> tuple[Table, Table, Table]:
    """The runs of each row.

    Returns (offset in the block, offset of the source, length, kind) of each run, the span of each
    cell's runs, and the offsets of the pieces of gathered runs.
    """
    there = states(found)
    ends = np.r_[True, np.diff(axis.part) != 0]
    ends[1:] |= (np.diff(there) != 0) | (np.diff(axis.at) != unit)
    breaks = ends.copy()
    breaks[1:] |= (there[1:] == 0) & (np.diff(found) != unit)
    # Pieces of an even number of elements are copied two elements at a time.
    number = np.cumsum(breaks) - 1
    is_even = (np.bincount(number) % 2 == 0)[number]
    turns = breaks & ~ends
    turns[1:] &= np.diff(is_even)
    run = np.cumsum(ends) - 1
    ends |= turns & (np.bincount(run, turns) < MOST_PARITIES)[run]
    run = np.cumsum(ends) - 1
    lengths, parts = np.bincount(run), np.bincount(run, breaks)
    gathered = ((parts > 1) & (lengths < LONG_RUN * parts))[run]
    first = np.flatnonzero(ends | (breaks & ~gathered))
    length = np.diff(np.r_[first, len(found)])
    twos = np.logical_and.reduceat(is_even, first).astype(np.int64)
    which = np.repeat(np.arange(len(first)), length)
    within = np.arange(len(found)) - first[which]
    is_lane = gathered & (within % (1 + twos)[which] == 0)
    size = length * unit
    kind = np.where((size % 4 == 0) & (size <= 4 * LANES), BY_WORDS, BY_BYTES)
    kind = np.where(gathered[first], GATHERED + twos + int(unit).bit_length() - 1, kind)
    kind[there[first] > 0] = FILLED
    where = np.where(kind >= GATHERED, np.cumsum(is_lane)[first] - 1, found[first])
    each = np.array([unit, 4, 1], np.int64)[np.minimum(kind, BY_BYTES)]
    size = np.where(kind >= GATHERED, length >> twos, np.floor_divide(size, each))
    kept = there[first] < 2
    runs = np.stack([axis.at[first], where, size, kind], axis=1)[kept]
    spans = spans_of(np.bincount(axis.part[first][kept], minlength=len(axis.tiles)))
    return runs, spans, found[is_lane]
