"""Blocks of a sparse matrix in buckets: one for each band of rows and part of columns.

rows of blocks    . A . | B C .       bands 2, parts 2: buckets {A}, {B, C}
                  D . . | . . .                                 {D, E}, {F}
                  ------+------
                  . . E | . . F       the largest has 2 blocks, so each has room for 2
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...dialects.nn.base import axis_map
from ...dialects.structured import Body, Structure
from ...ir.geometry.block_lists import from_front
from ...ir.geometry.space import AccessMap, AxisMap, Dim, Relation, Space
from ...ir.support.arrays import Array

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BlockSparse:
    """A block-sparse matrix, whose blocks are in the order of their rows, then of their columns.

    Attributes:
        values: (blocks, height, width).
        rows, columns: of blocks, (blocks,).
        shape: the rows and columns of blocks of the matrix.
    """

    values: Array
    rows: Integers
    columns: Integers
    shape: tuple[int, int]
    _runs: dict[int, tuple[Integers, Integers, Integers]] = field(
        default_factory=dict[int, tuple[Integers, Integers, Integers]], repr=False
    )

    @staticmethod
    def of_list(values: Array, rows: Array, columns: Array, shape: tuple[int, int]) -> BlockSparse:
        """The matrix of a list of blocks in any order, with indices from the front or the end.

        Raises InputError for an index that the matrix does not have.
        """
        row, column = from_front(rows, shape[0], "row"), from_front(columns, shape[1], "column")
        order = np.lexsort((column, row))
        return BlockSparse(values[order], row[order], column[order], shape)

    @staticmethod
    def of_dense(matrix: Array, block: tuple[int, int]) -> BlockSparse:
        """The blocks of a matrix that have an element which is not 0. The block divides it."""
        (m, k), (high, wide) = matrix.shape, block
        blocks = matrix.reshape(m // high, high, k // wide, wide).swapaxes(1, 2)
        rows, columns = np.nonzero((blocks != 0).any(axis=(2, 3)))
        return BlockSparse(blocks[rows, columns], rows, columns, (m // high, k // wide))

    @property
    def block(self) -> tuple[int, int]:
        """The height and width of a block."""
        return self.values.shape[1], self.values.shape[2]

    @property
    def density(self) -> float:
        """The share of the blocks that are in the list."""
        return len(self.values) / max(self.shape[0] * self.shape[1], 1)

    def counts(self, bands: int, parts: int) -> Integers:
        """The blocks of each bucket: (bands, parts)."""
        high, _ = self.sizes(bands, parts)
        rows, part, count = self._in_rows(parts)
        # Whole numbers up to 2^53 are exact as floats.
        sums = np.bincount(rows // high * parts + part, count, bands * parts)
        return sums.astype(np.int64).reshape(bands, parts)

    def _in_rows(self, parts: int) -> tuple[Integers, Integers, Integers]:
        """The rows of blocks in which parts have blocks, those parts, and their numbers of blocks.

        They are kept, because many numbers of bands are tried with each number of parts.
        """
        if parts not in self._runs:
            part = self.columns // self.sizes(1, parts)[1]
            begins = (np.diff(self.rows, prepend=-1) != 0) | (np.diff(part, prepend=-1) != 0)
            first = np.flatnonzero(begins)
            count = np.diff(first, append=len(part))
            self._runs[parts] = self.rows[first], part[first], count
        return self._runs[parts]

    def sizes(self, bands: int, parts: int) -> tuple[int, int]:
        """The rows of blocks of a band, and the columns of a part."""
        return -(-self.shape[0] // bands), -(-self.shape[1] // parts)


@dataclass(frozen=True, eq=False)
class Buckets:
    """A block-sparse matrix in buckets of one size, which blocks of zeros fill up.

    Attributes:
        bands: of rows of blocks; all have as many rows.
        parts: of columns of blocks; the last may have fewer.
    """

    matrix: BlockSparse
    bands: int
    parts: int

    @cached_property
    def room(self) -> int:
        """The blocks of a bucket."""
        return max(int(self.matrix.counts(self.bands, self.parts).max(initial=0)), 1)

    @property
    def index(self) -> np.dtype[np.signedinteger]:
        """The dtype of indices in a band or a part."""
        wide = max(self.matrix.sizes(self.bands, self.parts)) > np.iinfo(np.int16).max
        return np.dtype(np.int32 if wide else np.int16)

    def arrays(self) -> tuple[Array, Array, Array]:
        """Values (bands, parts, room, height, width), and indices in a band and a part."""
        matrix, (high, wide) = self.matrix, self.matrix.sizes(self.bands, self.parts)
        bucket = matrix.rows // high * self.parts + matrix.columns // wide
        order = np.argsort(bucket, kind="stable")
        count = matrix.counts(self.bands, self.parts).ravel()
        first = np.repeat(np.cumsum(count) - count, count)
        at = (bucket[order], np.arange(len(order)) - first)
        whole = (self.bands, self.parts, self.room)
        values = np.zeros((self.bands * self.parts, self.room, *matrix.block), matrix.values.dtype)
        values[at] = matrix.values[order]
        found = [np.zeros((self.bands * self.parts, self.room), self.index) for _ in range(2)]
        found[0][at] = (matrix.rows % high)[order]
        found[1][at] = (matrix.columns % wide)[order]
        rows, columns = (each.reshape(whole) for each in found)
        return values.reshape(*whole, *matrix.block), rows, columns

    def structure(self, others: tuple[int, ...], *, dense_last: bool) -> Structure:
        """The product with a dense matrix, of which some axes are neither rows nor terms.

        The operands are values, the dense matrix, rows and columns of blocks.

        Args:
            others: the sizes of these axes.
            dense_last: whether they come first, as in nn.block_matmul.
        """
        (high, wide), (height, width) = self.matrix.sizes(self.bands, self.parts), self.matrix.block
        rank = len(others)
        dims = (
            *(Dim(f"n{i}" if rank > 1 else "n", n) for i, n in enumerate(others)),
            *(Dim("band", self.bands), Dim("row", high), Dim("y", height)),
            Dim("part", self.parts, "reduction"),
            Dim("block", self.room, "reduction"),
            Dim("column", wide, "reduction"),
            Dim("x", width, "reduction"),
        )
        band, row, y, part, block, column, x = range(rank, rank + 7)

        def access(*at: int) -> AccessMap:
            return AccessMap(tuple(axis_map(dims[d].size, dims, [(d, 1)]) for d in at))

        def beside(*own: AxisMap) -> AccessMap:
            kept = access(*range(rank)).axes
            return AccessMap((*kept, *own) if dense_last else (*own, *kept))

        terms = axis_map(self.matrix.shape[1], dims, [(part, wide), (column, 1)], outside="fill")
        read = beside(terms, *access(x).axes)
        operands = (
            *(access(band, part, block, y, x), read),
            *(access(band, part, block), access(band, part, block)),
        )
        relations = tuple(
            Relation(axis_map(dims[d].size, dims, [(d, 1)]), i) for i, d in ((2, row), (3, column))
        )
        space = Space(dims, operands, (beside(*access(band, row, y).axes),), relations)
        return Structure(space, Body("mul", "sum"))
