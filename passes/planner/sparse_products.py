"""The fastest way to multiply a sparse matrix whose blocks are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...backends.prices import cost
from ...backends.prices.block_products import block_product_cycles
from ...backends.target import Target
from ...dialects.structured import Structure
from ..plans.bands import BlockSparse, Buckets
from .limits import PROPORTION
from .problem import Problem
from .question import unplaced
from .serial import plans

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
            cycles = planned_cycles(
                each.structure(buckets), kinds, [False, True, False, False], target
            )
            found.append(InBuckets(each, buckets, cycles))
    return min(found, key=lambda each: each.cycles)


def planned_cycles(
    structure: Structure,
    dtypes: Sequence[np.dtype[np.generic]],
    dense: Sequence[bool],
    target: Target,
) -> float:
    """The cycles of the fastest plan of a structure; infinite if none fits.

    Args:
        dtypes: of the operands and the result.
        dense: whether each operand is the dense factor, which lies as the plan wants it, each
            element once. The others are known, and lie where they are read.
    """
    usable = target.usable_bytes_per_tile
    resident = tuple(not each for each in dense)
    problem = Problem(structure, tuple(dtypes[:-1]), dtypes[-1], resident, free=tuple(dense))
    terms = replace(problem.terms, temporary_bytes=int(PROPORTION * usable))
    found = plans(unplaced(replace(problem, terms=terms), target, usable))
    if not found:
        return np.inf
    best = found[0]
    return best.compute_cycles + best.exchange_cycles + best.sync_cycles


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
    """About the cycles of a product on a tile for each bucket and some of the columns."""
    bands, parts = buckets.bands, buckets.parts
    (rows, wide), (height, width) = buckets.matrix.sizes(bands, parts), buckets.matrix.block
    across = np.arange(1, min(n, max(target.tiles // (bands * parts), 1)) + 1)
    columns = -(-n // across)
    present = min(rows, buckets.room)
    cycles = block_product_cycles(
        buckets.room, present, (height, width), columns, dtype.name, target
    )
    received = wide * width * columns * dtype.itemsize
    cycles = cycles + cost.least_exchange_cycles(received, 0, target)
    if parts > 1:
        sums = rows * height * columns
        share = -(-sums // parts)
        cycles = cycles + cost.least_exchange_cycles(4 * sums, 0, target)
        cycles = cycles + cost.reduce_cycles(share, parts, "float32", target)
    return float(np.min(cycles))
