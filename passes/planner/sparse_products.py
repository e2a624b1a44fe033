"""The fastest way to multiply a sparse matrix whose blocks are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...backends.prices import cost
from ...backends.prices.block_products import block_product_cycles
from ...backends.target import Target
from ...dialects.structured import Structure
from ..plans.bands import BlockSparse, Buckets
from .alone import cycles_alone

FINALISTS = 3
"""The ways to cut a matrix into bands that the planner prices, of those that are estimated."""


@dataclass(frozen=True, eq=False)
class SparseProduct:
    """A product of a block-sparse matrix and a dense one.

    Attributes:
        others: the sizes of the axes of the dense matrix that are no terms.
        last: whether terms are its last axis, as in the layers of networks.
    """

    matrix: BlockSparse
    others: tuple[int, ...]
    last: bool

    def structure(self, buckets: Buckets) -> Structure:
        """The structure of the product with the matrix in buckets."""
        return buckets.structure(self.others, dense_last=self.last)

    @property
    def columns(self) -> int:
        """The columns of the dense matrix."""
        return int(np.prod(self.others, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class InBuckets:
    """A sparse product with its matrix in buckets, and its cycles: infinite if no plan fits."""

    product: SparseProduct
    buckets: Buckets
    cycles: float

    @property
    def structure(self) -> Structure:
        """Its structure."""
        return self.product.structure(self.buckets)


def fastest_buckets(
    products: Iterable[SparseProduct],
    number: np.dtype[np.generic],
    result: np.dtype[np.generic],
    target: Target,
) -> InBuckets:
    """The fastest of several sparse products, in the buckets that are fastest for it.

    Args:
        number: the type of both matrices.
        result: the type of the product.
    """
    found: list[InBuckets] = []
    for each in products:
        for buckets in _promising(each, number, target):
            kinds = [number, number, buckets.index, buckets.index, result]
            cycles = cycles_alone(
                each.structure(buckets), kinds, [False, True, False, False], target
            )
            found.append(InBuckets(each, buckets, cycles))
    return min(found, key=lambda each: each.cycles)


def _promising(each: SparseProduct, dtype: np.dtype[np.generic], target: Target) -> list[Buckets]:
    """The ways to cut a matrix into bands and parts that are estimated to be fastest."""
    matrix, n = each.matrix, each.columns
    high, wide = matrix.shape
    bands = [p for p in range(1, min(high, target.tiles) + 1) if high % p == 0]
    parts = [1 << i for i in range(wide.bit_length()) if 1 << i <= wide]
    ways = [(p, q) for p in bands for q in parts if p * q <= target.tiles]
    estimates: list[tuple[float, int, int]] = []
    for p, q in ways:
        estimates.append((_estimate(Buckets(matrix, p, q), n, dtype, target), p, q))
    return [Buckets(matrix, p, q) for _, p, q in sorted(estimates)[:FINALISTS]]


def _estimate(buckets: Buckets, n: int, dtype: np.dtype[np.generic], target: Target) -> float:
    """About the cycles of a product with a matrix in buckets."""
    matrix, ways = buckets.matrix, (buckets.bands, buckets.parts)
    rows, wide = matrix.sizes(*ways)
    return estimated_cycles(ways, rows, buckets.room, wide, matrix.block, n, dtype, target)


def estimated_cycles(
    buckets: tuple[int, int],
    rows: int,
    room: int,
    read: int,
    block: tuple[int, int],
    n: int,
    dtype: np.dtype[np.generic],
    target: Target,
) -> float:
    """About the cycles of a product on a tile for each bucket and some of the columns.

    Args:
        buckets: bands of the rows of the product, and parts of its terms.
        rows: the rows of blocks of a band.
        room: the blocks of a bucket.
        read: the columns of blocks whose dense rows a tile receives.
        block: the height and width of blocks.
        n: the columns of the dense matrix.
    """
    (bands, parts), (height, width) = buckets, block
    across = np.arange(1, min(n, max(target.tiles // (bands * parts), 1)) + 1)
    columns = -(-n // across)
    cycles = block_product_cycles(room, min(rows, room), block, columns, dtype.name, target)
    received = read * width * columns * dtype.itemsize
    cycles = cycles + cost.least_exchange_cycles(received, 0, target)
    if parts > 1:
        sums = rows * height * columns
        cycles = cycles + cost.least_exchange_cycles(4 * sums, 0, target)
        cycles = cycles + cost.reduce_cycles(-(-sums // parts), parts, "float32", target)
    return float(np.min(cycles))
