"""Blocks of a sparse matrix in buckets: one for each band of rows and part of columns.

The rows of blocks are dealt to the bands so that all have about as many blocks. The blocks of a
band are cut into parts in the order of their columns, each with as many blocks. A bucket needs only
the columns in which it has blocks, and a table names them.

rows of blocks    0  . A . B C .       bands 2, parts 2: rows {0, 3} and {1, 2}
                  1  D . . . . .       buckets {A, B}, {C, H}    columns {1, 3}, {4, 5}
                  2  . . E F G .               {D, E}, {F, G}            {0, 2}, {3, 4}
                  3  . . . . . H
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...dialects.structured import Structure
from ...ir.geometry.block_lists import from_front
from ...ir.geometry.table import Table
from ...ir.support.arrays import Array, Integers
from .bucket_product import BucketSizes, Columns, bucket_structure


@dataclass(frozen=True, eq=False)
class BlockPattern:
    """Where the blocks of a matrix lie.

    Attributes:
        rows, columns: of blocks, (blocks,), in any order.
        shape: the rows and columns of blocks of the matrix.
        block: the height and width of a block.
    """

    rows: Integers
    columns: Integers
    shape: tuple[int, int]
    block: tuple[int, int]
    _dealt: dict[int, tuple[Integers, Integers]] = field(
        default_factory=dict[int, "tuple[Integers, Integers]"], repr=False
    )

    @staticmethod
    def of_list(
        rows: Array, columns: Array, shape: tuple[int, int], block: tuple[int, int]
    ) -> BlockPattern:
        """The pattern of a list of blocks, with indices from the front or the end.

        Raises InputError for an index that the matrix does not have.
        """
        row, column = from_front(rows, shape[0], "row"), from_front(columns, shape[1], "column")
        return BlockPattern(row, column, shape, block)

    @staticmethod
    def of_dense(matrix: Array, block: tuple[int, int]) -> BlockPattern:
        """The blocks of a matrix that have an element which is not 0. The block divides it."""
        rows, columns = np.nonzero((in_blocks(matrix, block) != 0).any(axis=(2, 3)))
        (m, k), (high, wide) = matrix.shape, block
        return BlockPattern(rows, columns, (m // high, k // wide), block)

    @property
    def density(self) -> float:
        """The share of the places that have a block."""
        return len(self.rows) / max(self.shape[0] * self.shape[1], 1)

    @cached_property
    def in_rows(self) -> Integers:
        """The number of blocks of each row: (rows,)."""
        return np.bincount(self.rows, minlength=self.shape[0])

    @cached_property
    def by_columns(self) -> Integers:
        """The numbers of the blocks in the order of their columns."""
        return _in_order(self.columns)

    def in_bands(self, bands: int) -> Integers:
        """The number of blocks of each band: (bands,)."""
        band, _ = self.dealt(bands)
        # Whole numbers up to 2^53 are exact as floats.
        return np.bincount(band, self.in_rows, bands).astype(np.int64)

    def dealt(self, bands: int) -> tuple[Integers, Integers]:
        """The band of each row of blocks, and its place in the band: (rows,) each.

        Bands have equally many rows, but for one. Rows are dealt in rounds, those with most blocks
        first. In each round, the band with fewest blocks so far gets the row with most. They are
        kept, because each number of bands is tried with many numbers of parts.
        """
        if bands not in self._dealt:
            self._dealt[bands] = _deal(self.in_rows, bands)
        return self._dealt[bands]


def in_blocks(matrix: Array, block: tuple[int, int]) -> Array:
    """A view of a matrix as blocks: [rows of blocks, columns of blocks, height, width]."""
    (m, k), (high, wide) = matrix.shape, block
    return matrix.reshape(m // high, high, k // wide, wide).swapaxes(1, 2)


def _in_order(keys: Integers) -> Integers:
    """The order of keys that are 0 or more. Equal ones stay in their order."""
    # NumPy sorts integers of 16 bits several times as fast as wider ones.
    narrow = int(keys.max(initial=0)) <= np.iinfo(np.uint16).max
    return np.argsort(keys.astype(np.uint16) if narrow else keys, kind="stable")


def _deal(count: Integers, bands: int) -> tuple[Integers, Integers]:
    """The band of each row, and its place in it. See BlockPattern.dealt."""
    high = -(-len(count) // bands)
    even = count.reshape(bands, high) if len(count) == bands * high else None
    if even is not None and np.ptp(even.sum(axis=1)) == 0:
        # Rows stay in their order where that is as good.
        band, place = np.divmod(np.arange(len(count)), high)
        return band, place
    order = np.argsort(-count, kind="stable")
    band, place = np.zeros(len(count), np.int64), np.zeros(len(count), np.int64)
    held = np.zeros(bands, np.int64)
    for turn, first in enumerate(range(0, len(count), bands)):
        rows = order[first : first + bands]
        takers = np.argsort(held, kind="stable")[: len(rows)]
        band[rows], place[rows] = takers, turn
        held[takers] += count[rows]
    return band, place


@dataclass(frozen=True, eq=False)
class Buckets:
    """A pattern of blocks in buckets of one size, with room that blocks of zeros fill.

    Attributes:
        bands: of rows of blocks.
        parts: of the blocks of each band.
    """

    pattern: BlockPattern
    bands: int
    parts: int

    @property
    def high(self) -> int:
        """The rows of blocks of a band."""
        return -(-self.pattern.shape[0] // self.bands)

    @cached_property
    def _placed(self) -> tuple[Integers, Integers, Integers]:
        """The blocks in the order of bands and columns, and for each its bucket and its place."""
        pattern = self.pattern
        band, _ = pattern.dealt(self.bands)
        order = pattern.by_columns
        of = band[pattern.rows[order]]
        by_band = _in_order(of)
        order, of = order[by_band], of[by_band]
        count = np.bincount(of, minlength=self.bands)
        rank = np.arange(len(of)) - (np.cumsum(count) - count)[of]
        # Part p of a band of n blocks has the blocks from p * n // parts on.
        part = ((rank + 1) * self.parts - 1) // np.maximum(count[of], 1)
        bucket = of * self.parts + part
        held = np.bincount(bucket, minlength=self.bands * self.parts)
        place = np.arange(len(of)) - (np.cumsum(held) - held)[bucket]
        return order, bucket, place

    @cached_property
    def room(self) -> int:
        """The blocks of a bucket."""
        most = int(self.pattern.in_bands(self.bands).max(initial=0))
        return max(-(-most // self.parts), 1)

    @cached_property
    def _needed(self) -> tuple[Integers, Integers]:
        """The columns that buckets need, and for each block the place of its column among them.

        (buckets, most columns of a bucket), filled up with -1; and (blocks,), as in `_placed`.
        """
        order, bucket, _ = self._placed
        column = self.pattern.columns[order]
        fresh = np.diff(bucket, prepend=-1) != 0
        new = fresh | (np.diff(column, prepend=-1) != 0)
        # The number of different columns before each block, counted in its bucket.
        total = np.cumsum(new) - 1
        first = np.maximum.accumulate(np.where(fresh, total, 0))
        slot = total - first
        width = int(slot.max(initial=0)) + 1
        needed = np.full((self.bands * self.parts, width), -1)
        needed[bucket[new], slot[new]] = column[new]
        return needed, slot

    @property
    def read(self) -> int:
        """The columns of blocks whose dense rows a bucket needs, at most."""
        return self._needed[0].shape[1]

    @cached_property
    def index(self) -> np.dtype[np.signedinteger]:
        """The dtype of rows and columns in a bucket."""
        wide = max(self.high, self.read) > np.iinfo(np.int16).max
        return np.dtype(np.int32 if wide else np.int16)

    def indices(self) -> tuple[Array, Array]:
        """The row of each block in its band, and the place of its column: (bands, parts, room)."""
        order, bucket, place = self._placed
        _, row = self.pattern.dealt(self.bands)
        made = [np.zeros((self.bands * self.parts, self.room), self.index) for _ in range(2)]
        # No row of the band, for places without a block.
        made[0][...] = self.high
        made[0][bucket, place] = row[self.pattern.rows[order]]
        made[1][bucket, place] = self._needed[1]
        rows, columns = (each.reshape(self.bands, self.parts, self.room) for each in made)
        return rows, columns

    def members(self) -> Integers:
        """The number of the block in each place of all buckets, or -1: (places,)."""
        order, bucket, place = self._placed
        made = np.full((self.bands * self.parts, self.room), -1)
        made[bucket, place] = order
        return made.ravel()

    def structure(self, others: tuple[int, ...], before: int) -> Structure:
        """The product with a dense matrix, of rows of blocks in the order of the bands.

        The operands are values, the dense matrix, rows and columns of blocks, as in
        nn.block_matmul.

        Args:
            others: the sizes of the axes of the dense matrix that the result keeps.
            before: how many of them come before the terms.
        """
        sizes = BucketSizes(
            *(self.bands, self.high, self.parts, self.read, self.room), self.pattern.block
        )
        columns = Columns(Table.of(self._needed[0]), self.pattern.shape[1])
        return bucket_structure(sizes, others, before=before, columns=columns)

    def order(self) -> Integers | None:
        """For each row of blocks, its place in the rows of all bands; None if they are the same."""
        band, place = self.pattern.dealt(self.bands)
        found = band * self.high + place
        same = len(found) == self.bands * self.high and (np.diff(found) == 1).all()
        return None if same else found
