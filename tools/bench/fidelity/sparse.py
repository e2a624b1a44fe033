"""Predicted cycles of block-sparse by dense matrix products, as PopSparse computes them.

A static product cuts the terms into bands and the dense columns into parts. The tiles of a band and
a part share its blocks in the order of their rows. A tile receives the dense rows that its blocks
read, multiplies, and the tiles add their partial sums up. The dense operand is rearranged before,
and the result while it is added up. No number is fitted to measurements of this family: the price
follows from published descriptions alone. Source: arXiv 2303.16999 and poplibs lib/popsparse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ....backends.prices import cost
from ....backends.prices.block_products import block_product_cycles
from ....backends.target import Target
from . import planned
from .cases import Product, SparseProduct, SpeedUp
from .units import element_bytes

Integers = NDArray[np.int64]

OVERSIZE = 1.3
"""Room for blocks of a dynamic pattern, over the number of blocks. Source: poplibs,
metaInfoBucketOversizeProportion = 0.3."""

PROPAGATIONS = 2
"""Additional exchanges of a dynamic pattern: its distribution, and one propagation of buckets."""

MEETING_CYCLES = 46 + 56 + 33
"""Cycles in which a worker looks for the blocks of its part in a bucket of a dynamic pattern: a
sub-group that is looked at, a bucket that matches, a foreign sub-group. Source: poplibs
lib/popsparse."""


def product(case: SparseProduct, target: Target) -> dict[str, float]:
    """The cycles by phase of the cheapest split of terms and columns over the tiles."""
    split = _Split.of(case, target.tiles)
    each, partial = element_bytes(case.operand), element_bytes(case.partials)
    block = case.block
    columns = -(-case.n // split.columns)
    compute = block_product_cycles(
        split.blocks, split.rows, (block, block), columns, case.operand, target
    )
    # Dense operand and result lie evenly on all tiles, and change their order.
    share = -(-np.array([case.k, case.m]) * case.n // target.tiles)
    read, written = (int(n) for n in share)
    arranging = cost.rearrange_cycles((read + written) * each, each, target)
    arriving = cost.least_exchange_cycles(read * each, read * each, target)
    received = split.dense_blocks * block * columns * each
    rounds = 1
    if case.dynamic:
        rounds += PROPAGATIONS
        compute = compute + PROPAGATIONS * target.workers * MEETING_CYCLES
        received = received + split.blocks * block**2 * each
    exchange = arriving + rounds * cost.least_exchange_cycles(received, 0, target)
    # The partial sums of a tile: its rows of blocks, by its columns.
    sums = split.rows * block * columns
    depth = -(-split.tiles * sums // (case.m * case.n))
    merges = depth > 1
    exchange = exchange + np.where(merges, cost.least_exchange_cycles(sums * partial, 0, target), 0)
    adding = np.where(merges, cost.reduce_cycles(written, depth, case.partials, target), 0)
    sync = cost.sync_cycles(target) * (rounds + merges)
    best = int(np.argmin(compute + exchange + adding + sync))
    return {
        "compute": float(compute[best] + adding[best]),
        "rearranging": float(arranging),
        "exchange": float(exchange[best]),
        "sync": float(sync[best]),
    }


def speed_up(case: SpeedUp, target: Target) -> dict[str, float]:
    """How many times as long the dense product takes as the sparse one.

    The messages of the sparse one are not known. So both are priced without timetables.
    """
    target = replace(target, exchange=replace(target.exchange, timetables=0))
    sparse = case.product
    dense = Product(sparse.m, sparse.k, sparse.n, 1, sparse.operand, sparse.operand)
    return {"speed-up": _dense_cycles(dense, target) / sum(product(sparse, target).values())}


@lru_cache(maxsize=256)
def _dense_cycles(case: Product, target: Target) -> float:
    return sum(planned.product(case, target).values())


@dataclass(frozen=True)
class _Split:
    """Candidates of a split, and what the fullest tile of each has: (candidates,) each.

    Attributes:
        columns: parts of the dense columns.
        tiles: that have blocks.
        blocks: of the tile.
        rows: rows of blocks in which they lie.
        dense_blocks: blocks of dense rows that they read.
    """

    columns: Integers
    tiles: Integers
    blocks: Integers
    rows: Integers
    dense_blocks: Integers

    @staticmethod
    def of(case: SparseProduct, tiles: int) -> _Split:
        """The candidates of a case on some tiles.

        Blocks lie at random, so the numbers of rows and columns that have any are those of a
        binomial distribution; the fullest tile reads one deviation more blocks of dense rows.
        """
        across, high = case.k // case.block, case.m // case.block
        share = case.density * (OVERSIZE if case.dynamic else 1.0)
        bands, columns = (
            each.ravel()
            for each in np.meshgrid(_counts(across, tiles), _counts(case.n, tiles), indexing="ij")
        )
        fits = bands * columns <= tiles
        bands, columns = bands[fits], columns[fits]
        in_all = share * across * high
        # No more tiles than blocks.
        sharing = np.clip(np.ceil(in_all / bands), 1, tiles // (bands * columns)).astype(np.int64)
        blocks = np.ceil(in_all / (bands * sharing)).astype(np.int64)
        wide = across / bands
        in_a_row = share * wide / (1 - (1 - min(share, 1 - 1e-9)) ** wide)
        rows = np.clip(np.ceil(blocks / in_a_row), 1, high).astype(np.int64)
        read = np.where(wide > 1, wide * (1 - (1 - 1 / np.maximum(wide, 1 + 1e-9)) ** blocks), 1)
        deviation = np.sqrt(np.maximum(read * (1 - read / np.maximum(wide, 1)), 0))
        dense = np.ceil(np.minimum(np.minimum(read + deviation, wide), blocks)).astype(np.int64)
        return _Split(columns, bands * columns * sharing, blocks, rows, np.maximum(dense, 1))


def _counts(extent: int, most: int) -> Integers:
    """Numbers of parts of an extent. Of those with the same largest part, only the smallest."""
    counts = np.arange(1, min(extent, most) + 1)
    largest = -(-extent // counts)
    return counts[np.r_[True, largest[1:] != largest[:-1]]]
