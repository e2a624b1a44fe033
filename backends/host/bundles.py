"""Bundles: gathered rows whose pieces are neighbours in the source, copied by transposing.

A gathered row reads pieces from many places. If other rows read the neighbours of the same pieces,
a vector holds one piece of each row. As many vectors are read, transposed in registers, and written
as vectors of the rows. No offset is looked up per piece and row.

    source:  a0 b0 c0 d0 .. a1 b1 c1 d1 .. a2 b2 c2 d2     rows:  a0 a1 a2   b0 b1 b2   ...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..codelets.stamps import Table
from .kernels.tables import (
    GATHERED,
    LEAST_SIDE,
    RUN_LENGTH,
    RUN_PIECES,
    RUN_ROW_TABLE,
    RUN_ROWS,
    RUN_SOURCE,
    RUN_TARGET,
    TRANSPOSED,
)

ROWS_AT_ONCE = 16
"""Rows of a bundle of several cells, which has less than twice as many. Each row is on another
tile, and the written lines stay in the first-level cache until the next bundle of these cells.
"""

CELLS_AT_ONCE = 64
"""Cells whose runs are made kind by kind before their replicas are made."""

FEWEST_GROUPS = 16
"""The least number of groups into which cells are divided, so that several threads may share
them."""

GATHERED_WORDS, GATHERED_LONGS = GATHERED + 2, GATHERED + 3

BUNDLES: Mapping[int, int] = {GATHERED_WORDS: TRANSPOSED, GATHERED_LONGS: TRANSPOSED + 1}
"""The kind of a bundle, by the kind of its runs without bundling."""


class Runs(NamedTuple):
    """Runs of a copy: their table, the kind of each, its first and last cell, and the listed
    offsets.
    """

    table: Table
    kind: Table
    first: Table
    last: Table
    entries: Table


def with_bundles(table: Table, kind: Table, cell: Table, entries: Table, step: int) -> Runs:
    """The runs of a copy, with bundles instead of the gathered runs that can be bundled.

    Args:
        table, kind, cell, entries: the runs, the kind of each, its cell, and the offsets of rows.
        step: bytes from a row of a run to the next.
    """
    found = Runs(table, kind, cell, cell, entries)
    for gathered in BUNDLES:
        found = _across(_along(found, gathered, step), gathered, step)
    order = np.argsort(found.first, kind="stable")
    table, kind, first, last, entries = found
    return Runs(table[order], kind[order], first[order], last[order], entries)


def _candidates(runs: Runs, gathered: int) -> Table:
    """The runs that are gathered in pieces of this kind and have enough pieces."""
    return np.flatnonzero((runs.kind == gathered) & (runs.table[:, RUN_LENGTH] >= LEAST_SIDE))


def _replaced(runs: Runs, which: Table, others: Runs) -> Runs:
    """The runs with some of them replaced by others, whose offsets are appended to the list."""
    kept = np.ones(len(runs.kind), bool)
    kept[which] = False
    return Runs(
        np.concatenate([runs.table[kept], others.table]),
        np.concatenate([runs.kind[kept], others.kind]),
        np.concatenate([runs.first[kept], others.first]),
        np.concatenate([runs.last[kept], others.last]),
        np.concatenate([runs.entries, others.entries]),
    )


def _along(runs: Runs, gathered: int, step: int) -> Runs:
    """Bundles of the rows of one run each.

    Only runs in which most rows are neighbours in the source of the row before.
    """
    table, entries = runs.table, runs.entries
    follows = np.r_[False, np.diff(entries) == 1 << (gathered - GATHERED)]
    stretches = np.cumsum(~follows)
    which = _candidates(runs, gathered)
    first, rows = table[which, RUN_ROW_TABLE], table[which, RUN_ROWS]
    breaks = stretches[first + rows - 1] - stretches[first]
    which = which[rows >= LEAST_SIDE * (breaks + 1)]
    if not len(which):
        return runs
    run, row = entries_of(table[which, RUN_ROWS])
    entry = table[which[run], RUN_ROW_TABLE] + row
    start = np.flatnonzero((row == 0) | ~follows[entry])
    count = np.diff(np.r_[start, len(row)])
    origin, entry = which[run[start]], entry[start]
    made = table[origin]
    made[:, RUN_TARGET] += row[start] * step
    made[:, RUN_ROWS], made[:, RUN_ROW_TABLE] = count, entry
    is_long = count >= LEAST_SIDE
    made[is_long, RUN_SOURCE] += entries[entry[is_long]]
    made[is_long, RUN_ROW_TABLE] = len(entries)
    kind = np.where(is_long, BUNDLES[gathered], gathered)
    listed = np.arange(count.max(), dtype=np.int64) * step
    return _replaced(runs, which, Runs(made, kind, runs.first[origin], runs.last[origin], listed))


def _across(runs: Runs, gathered: int, step: int) -> Runs:
    """Bundles of rows from several cells, one row per cell."""
    which = _candidates(runs, gathered)
    if len(which) < LEAST_SIDE:
        return runs
    key = runs.table[which][:, [RUN_PIECES, RUN_LENGTH, RUN_ROWS, RUN_ROW_TABLE]]
    source = runs.table[which, RUN_SOURCE]
    order = np.lexsort((source, *key.T))
    which, key, source = which[order], key[order], source[order]
    is_new = np.r_[True, (np.diff(key, axis=0) != 0).any(axis=1)]
    number = np.cumsum(is_new)
    # Cells that read the same elements are in different bundles.
    at = np.arange(len(which))
    differs = is_new | np.r_[True, np.diff(source) != 0]
    rank = at - np.maximum.accumulate(np.where(differs, at, 0))
    order = np.lexsort((source, rank, number))
    which, source, number, rank = which[order], source[order], number[order], rank[order]
    is_next = np.diff(source) == 1 << (gathered - GATHERED)
    begins = np.r_[True, ~is_next | (np.diff(number) != 0) | (np.diff(rank) != 0)]
    length = np.diff(np.r_[np.flatnonzero(begins), len(which)])
    stretch, within = entries_of(length)
    part = within * np.maximum(length // ROWS_AT_ONCE, 1)[stretch] // length[stretch]
    begins[1:] |= np.diff(part) != 0
    count = np.diff(np.r_[np.flatnonzero(begins), len(which)])
    which = which[np.repeat(count >= LEAST_SIDE, count)]
    if not len(which):
        return runs
    count = count[count >= LEAST_SIDE]
    start = np.cumsum(count) - count
    table, entries, origin = runs.table, runs.entries, which[start]
    targets = table[which, RUN_TARGET] - np.repeat(table[origin, RUN_TARGET], count)
    bundle, row = entries_of(table[origin, RUN_ROWS])
    made = table[origin[bundle]]
    made[:, RUN_SOURCE] += entries[made[:, RUN_ROW_TABLE] + row]
    made[:, RUN_TARGET] += row * step
    made[:, RUN_ROWS] = count[bundle]
    made[:, RUN_ROW_TABLE] = len(entries) + start[bundle]
    first = np.minimum.reduceat(runs.first[which], start)[bundle]
    last = np.maximum.reduceat(runs.last[which], start)[bundle]
    kind = np.full(len(made), BUNDLES[gathered])
    return _replaced(runs, which, Runs(made, kind, first, last, targets))


def entries_of(counts: Table) -> tuple[Table, Table]:
    """For parts of these lengths, the part of each element, and the element's index in the part."""
    part = np.repeat(np.arange(len(counts)), counts)
    return part, np.arange(len(part)) - np.repeat(np.cumsum(counts) - counts, counts)


def groups(first: Table, last: Table) -> Table:
    """The group of cells of each run. No run has cells of several groups.

    Args:
        first, last: the first and the last cell of each run.
    """
    cells = int(last.max(initial=-1)) + 1
    at_once = min(CELLS_AT_ONCE, cells // FEWEST_GROUPS) or cells
    # The number of runs with cells on both sides of each boundary between cells.
    across = np.cumsum(np.bincount(first + 1, minlength=cells + 2))
    across -= np.cumsum(np.bincount(last + 1, minlength=cells + 2))
    free = np.flatnonzero(across[: cells + 1] == 0)
    wanted = np.arange(at_once, cells, max(at_once, 1))
    ends = np.unique(free[np.searchsorted(free, wanted)])
    return np.searchsorted(ends, first, side="right")
