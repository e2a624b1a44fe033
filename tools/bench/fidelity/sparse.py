"""Predicted cycles of block-sparse by dense matrix products, as PopSparse computes them.

The convolution units take the blocks that are not zero one after the other, each as the weights of
one pass over the dense columns. Rows, terms and columns are split over tiles, and partial sums are
added up. No measurement of the calibration is of this family: the price follows from published
descriptions alone. Source: arXiv 2303.16999 and poplibs lib/popsparse: a dynamic pattern has room
for 30 % more blocks than it has, and is distributed and propagated before it is used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....backends.prices import cost
from ....backends.prices.contractions.amp import amp_cycles
from ....backends.prices.contractions.contraction import Contraction
from ....backends.prices.contractions.workers import mac_cycles
from ....backends.target import Target
from .cases import SparseProduct
from .units import element_bytes

OVERSIZE = 1.3
"""Room for blocks of a dynamic pattern, over the number of blocks. Source: poplibs,
metaInfoBucketOversizeProportion = 0.3."""

PROPAGATIONS = 2
"""Additional exchanges of a dynamic pattern: its distribution, and one propagation of buckets."""


def product(case: SparseProduct, target: Target) -> dict[str, float]:
    """The cycles by phase of the cheapest split of rows, terms and columns over the tiles."""
    rows, terms, columns = _splits(case, target.tiles)
    m, k, n = -(-case.m // rows), -(-case.k // terms), -(-case.n // columns)
    share = case.density * (OVERSIZE if case.dynamic else 1.0)
    # Each row of blocks has as many in a tile's terms as on average, and at least one.
    present = np.maximum(np.ceil(share * k / case.block), 1).astype(np.int64) * case.block
    columns_out = np.minimum(m, present * m)
    tile = Contraction.of(n, present, columns_out, 1, 1, case.operand, case.partials)
    compute = np.minimum(amp_cycles(tile, target), mac_cycles(tile, target))
    each, partial = element_bytes(case.operand), element_bytes(case.partials)
    received = k * n * each + (m * present * each if case.dynamic else 0)
    phases = 1 + (PROPAGATIONS if case.dynamic else 0)
    exchange = phases * cost.least_exchange_cycles(received, 0, target)
    outputs = -(-m * n // terms)
    merged = np.where(terms > 1, (terms - 1) * outputs * partial, 0)
    exchange = exchange + cost.least_exchange_cycles(merged, 0, target)
    adding = cost.reduce_cycles(outputs, terms, case.partials, target)
    sync = cost.sync_cycles(target) * (phases + (terms > 1))
    best = int(np.argmin(compute + exchange + adding + sync))
    return {
        "compute": float(compute[best] + adding[best]),
        "exchange": float(exchange[best]),
        "sync": float(sync[best]),
    }


def _splits(case: SparseProduct, tiles: int) -> tuple[NDArray[np.int64], ...]:
    """Candidate numbers of parts of rows, of terms and of columns: (candidates,) each.

    A candidate has at most `tiles` parts in all. Rows and terms are split between blocks. Of the
    numbers of parts with the same largest part, only the smallest is a candidate.
    """
    rows, terms, columns = (
        _counts(extent, grain, tiles)
        for extent, grain in ((case.m, case.block), (case.k, case.block), (case.n, 1))
    )
    grid = np.meshgrid(rows, terms, columns, indexing="ij")
    fits = grid[0] * grid[1] * grid[2] <= tiles
    return tuple(each[fits] for each in grid)


def _counts(extent: int, grain: int, tiles: int) -> NDArray[np.int64]:
    grains = -(-extent // grain)
    counts = np.arange(1, min(grains, tiles) + 1)
    largest = -(-grains // counts)
    return counts[np.r_[True, largest[1:] != largest[:-1]]]
