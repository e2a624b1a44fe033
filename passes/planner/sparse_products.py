"""The fastest way to multiply a sparse matrix whose blocks are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...backends.prices import cost
from ...backends.prices.block_products import block_product_cycles
from ...backends.target import Target
from ...dialects.nn.take import taken_rows
from ...dialects.structured import Structure
from ...ir.geometry.layout import linear_layout
from ...ir.geometry.space import Space
from ...ir.geometry.table import Table
from ...ir.support.arrays import Array, Integers
from ..plans.bands import BlockPattern, Buckets
from .alone import cycles_alone, cycles_from
from .problem import movement_problem

FINALISTS = 3
"""The ways to cut a matrix into bands that the planner prices, of those that are estimated."""

EVEN_FINALISTS = 2
"""How many it prices besides, of those whose bands have equally many rows and whose parts are a
power of two. Plans cut these evenly, which the estimate does not see."""


@dataclass(frozen=True, eq=False)
class SparseProduct:
    """A product of a block-sparse matrix and a dense one.

    Attributes:
        others: the sizes of the axes of the dense matrix that are no terms.
        before: how many of them come before the terms: 0 for a matrix by its columns, all in the
            layers of networks, and 1 in a convolution.
        values: of the blocks, in the order of the pattern; None if only a run knows them.
    """

    pattern: BlockPattern
    others: tuple[int, ...]
    before: int
    values: Array | None = None

    def structure(self, buckets: Buckets) -> Structure:
        """The structure of the product with the matrix in buckets."""
        return buckets.structure(self.others, self.before)

    def dealt(self, buckets: Buckets) -> tuple[int, ...]:
        """The shape of the product while its rows are in the order of the bands: with axes for all
        rows of blocks, and for the rows of a block."""
        rows = (buckets.bands * buckets.high, self.pattern.block[0])
        return (*self.others[: self.before], *rows, *self.others[self.before :])

    def ordering(self, buckets: Buckets) -> Space | None:
        """The movement that puts the rows of the product back in their order; None if they are."""
        order = buckets.order()
        if order is None:
            return None
        return taken_rows(self.dealt(buckets), self.before, Table.of(order))

    def filling(self, buckets: Buckets) -> Space | None:
        """The movement that puts values of a run into the buckets; None if they are constants, or
        there are none."""
        if self.values is not None or not len(self.pattern.rows):
            return None
        shape = (len(self.pattern.rows), *self.pattern.block)
        return taken_rows(shape, 0, Table.of(buckets.members()))

    @property
    def columns(self) -> int:
        """The columns of the dense matrix."""
        return int(np.prod(self.others, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class InBuckets:
    """A sparse product with its matrix in buckets.

    Attributes:
        alone: the cycles of the product, whose rows stay in the order of the bands.
        cycles: with those of the movements that put values into the buckets, if only a run knows
            them, and the rows back. Both are infinite if no plan fits.
    """

    product: SparseProduct
    buckets: Buckets
    alone: float
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
    found = [each for product in products for each in in_buckets(product, number, result, target)]
    return min(found, key=lambda each: each.cycles)


def in_buckets(
    product: SparseProduct,
    number: np.dtype[np.generic],
    result: np.dtype[np.generic],
    target: Target,
) -> list[InBuckets]:
    """A sparse product in the most promising buckets. Types are those of `fastest_buckets`."""
    found: list[InBuckets] = []
    for buckets in _promising(product, number, target):
        kinds = [number, number, buckets.index, buckets.index, result]
        given = product.structure(buckets), kinds, [False, True, False, False], target
        alone, whole = cycles_alone(*given), cycles_alone(*given, product.ordering(buckets))
        filling = product.filling(buckets)
        if filling is not None:
            lies = linear_layout(
                filling.operands[0].shape, number.itemsize, target.tiles, chips=target.chips
            )
            whole += cycles_from(movement_problem((filling,), number), (lies,), target)
        found.append(InBuckets(product, buckets, alone, whole))
    return found


def _promising(each: SparseProduct, dtype: np.dtype[np.generic], target: Target) -> list[Buckets]:
    """The ways to cut a matrix into bands and parts that are estimated to be fastest."""
    pattern, n = each.pattern, each.columns
    rows, columns = pattern.shape
    most_bands = max(min(rows, target.tiles), 1)
    divisors = [p for p in range(1, most_bands + 1) if rows % p == 0]
    counts = np.union1d(_counts(rows, target.tiles), divisors)
    most = np.array([pattern.in_bands(p).max(initial=0) for p in counts.tolist()])
    powers = 1 << np.arange(max(columns, 1).bit_length())
    shares = np.union1d(_counts(columns, target.tiles), powers[powers <= max(columns, 1)])
    ways = np.meshgrid(np.arange(len(counts)), shares, indexing="ij")
    at, parts = (each.ravel() for each in ways)
    fits = counts[at] * parts <= target.tiles
    at, parts = at[fits], parts[fits]
    bands, high = counts[at], -(-rows // counts[at])
    room = np.maximum(-(-most[at] // parts), 1)
    # A band has blocks in this share of the columns if they lie at random.
    share = 1 - (1 - pattern.density) ** high
    read = np.ceil(np.minimum(columns / parts * share, room)).astype(np.int64)
    cycles = estimated_cycles(
        (bands, parts), high, room, np.maximum(read, 1), pattern.block, n, dtype, target
    )
    order = np.argsort(cycles, kind="stable")
    even = (rows % bands == 0) & ((parts & (parts - 1)) == 0)
    best = dict.fromkeys((*order[:FINALISTS], *order[even[order]][:EVEN_FINALISTS]))
    return [Buckets(pattern, int(bands[i]), int(parts[i])) for i in best]


def _counts(extent: int, most: int) -> Integers:
    """Numbers of parts of an extent. Of those with the same largest part, only the smallest."""
    counts = np.arange(1, max(min(extent, most), 1) + 1)
    largest = -(-extent // counts)
    return counts[np.r_[True, largest[1:] != largest[:-1]]]


def estimated_cycles(
    buckets: tuple[ArrayLike, ArrayLike],
    rows: ArrayLike,
    room: ArrayLike,
    read: ArrayLike,
    block: tuple[int, int],
    n: int,
    dtype: np.dtype[np.generic],
    target: Target,
) -> NDArray[np.float64]:
    """About the cycles of a product on a tile for each bucket and some of the columns.

    The cycles of each candidate: (candidates,).

    Args:
        buckets: bands of the rows of the product, and parts of its terms.
        rows: the rows of blocks of a band.
        room: the blocks of a bucket.
        read: the columns of blocks whose dense rows a tile receives.
        block: the height and width of blocks.
        n: the columns of the dense matrix.
    """
    given = (*buckets, rows, room, read)
    bands, parts, high, blocks, needs = np.atleast_1d(*np.broadcast_arrays(*given))
    height, width = block
    across = np.clip(target.tiles // (bands * parts), 1, max(n, 1))
    columns = -(-n // across)
    present = np.minimum(high, blocks)
    cycles = block_product_cycles(blocks, present, block, columns, dtype.name, target)
    received = needs * width * columns * dtype.itemsize
    cycles = cycles + cost.least_exchange_cycles(received, 0, target)
    sums = high * height * columns
    merging = cost.least_exchange_cycles(4 * sums, 0, target)
    merging = merging + cost.reduce_cycles(-(-sums // parts), parts, "float32", target)
    return cycles + np.where(parts > 1, merging, 0)
