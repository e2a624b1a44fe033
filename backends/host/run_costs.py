"""The bytes and the time of the runs of a copy, and their division into calls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..codelets.stamps import Table
from .calls import unit_cuts
from .kernels.tables import (
    BY_BYTES,
    GATHERED,
    REPLICA,
    RUN_LENGTH,
    RUN_ROWS,
    TRANSPOSED,
)

BYTES_PER_NANOSECOND = 10.0
NANOSECONDS_PER_PIECE, NANOSECONDS_PER_TRANSPOSED = 0.35, 0.1
"""Rough estimates, in nanoseconds, for a gathered and for a transposed piece."""


def stages_of(table: Table, kind: Table, group: Table, unit: int) -> list[Table]:
    """The cuts of the calls that make all runs, one call after another.

    Within a group of cells, replicas need the runs before them. With one group, all runs but the
    replicas come first.

    Args:
        group: the group of each run.
    """
    costs = _nanoseconds(table, kind, unit)
    if len(group) and group[-1]:
        return [unit_cuts(costs, np.flatnonzero(np.r_[np.diff(group) > 0, True]) + 1)]
    first = int(np.count_nonzero(kind != REPLICA))
    stages = [unit_cuts(costs[:first]), unit_cuts(costs[first:]) + first]
    if all(len(cuts) == 2 for cuts in stages):
        return [np.array([0, len(kind)], np.int64)]
    return [cuts for cuts in stages if cuts[0] < cuts[-1]]


def _nanoseconds(table: Table, kind: Table, unit: int) -> NDArray[np.float64]:
    """A rough estimate of the time of each run."""
    # The length of a replica is in bytes.
    how = np.where(kind == REPLICA, BY_BYTES, kind)
    bytes_ = bytes_of(how, table[:, RUN_LENGTH], unit)
    each = 2.0 + bytes_ / BYTES_PER_NANOSECOND
    for first, end, per_piece in (
        (GATHERED, TRANSPOSED, NANOSECONDS_PER_PIECE),
        (TRANSPOSED, REPLICA, NANOSECONDS_PER_TRANSPOSED),
    ):
        is_such = (kind >= first) & (kind < end)
        each[is_such] += table[is_such, RUN_LENGTH] * per_piece
    return 2.0 + table[:, RUN_ROWS] * each


def bytes_of(kind: Table, length: Table, unit: int) -> Table:
    """The bytes of runs of these kinds and lengths."""
    # The length of a filled run is in elements.
    gathered = [1 << n for n in range(TRANSPOSED - GATHERED)]
    transposed = [4 << n for n in range(REPLICA - TRANSPOSED)]
    return length * np.array([unit, 4, 1, *gathered, *transposed], np.int64)[kind]
