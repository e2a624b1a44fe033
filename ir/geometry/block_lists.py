"""Lists of blocks in buckets whose sizes are chosen before the pattern of blocks is known.

A matrix is cut into bands of rows and parts of columns, with a bucket of blocks for each. Buckets
have room for more blocks than the average one is expected to get. Blocks that find no room in their
bucket *spill* into a further bucket, which may have blocks of the whole matrix:

    rows of blocks    A B | C .       bands 2, parts 2, room 2, spill 1
                      . D | . .       buckets {A, B} {C, -}    spill {D}
                      ----+----               {E, -} {F, G}
                      . . | F .
                      E . | . G
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, lgamma, log, sqrt

import numpy as np
from numpy.typing import NDArray

from ..support.arrays import Array
from ..support.errors import InputError

Integers = NDArray[np.int64]
Buckets = tuple[Array, Array, Array]
"""The blocks of all buckets of a tier: values [bands, parts, room, height, width], and the row and
the column of blocks of each in its band and part. In the place of a block that is missing, the row
is the number of rows of a band."""

OVERSIZE = 0.3
"""The share by which a bucket has more room than the average one needs. Source: poplibs,
metaInfoBucketOversizeProportion."""

SELDOM = 1e-4
"""The share of random patterns that may spill although there is no room for it."""

DEVIATIONS = 4
"""By how many standard deviations the room for spilled blocks is above the expected number."""


@dataclass(frozen=True)
class Tier:
    """Buckets of equal room, one for each band of rows and part of columns."""

    bands: int
    parts: int
    room: int

    def sizes(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The rows of blocks of a band, and the columns of blocks of a part."""
        return shape[0] // self.bands, shape[1] // self.parts

    def index(self, shape: tuple[int, int]) -> np.dtype[np.signedinteger]:
        """The dtype of indices in a band or a part."""
        wide = max(self.sizes(shape)) >= np.iinfo(np.int16).max
        return np.dtype(np.int32 if wide else np.int16)


@dataclass(frozen=True)
class BlockLists:
    """How the blocks of a matrix are put into buckets.

    Attributes:
        shape: the rows and columns of blocks of the matrix.
        bands, parts: numbers that divide the shape.
        room: the blocks of a bucket.
        spill: the blocks that may spill.
        oversize: the share by which a bucket is larger than the average one needs.
    """

    shape: tuple[int, int]
    bands: int
    parts: int
    room: int
    spill: int
    oversize: float = OVERSIZE

    @staticmethod
    def planned(
        shape: tuple[int, int], buckets: tuple[int, int], capacity: int, oversize: float
    ) -> BlockLists:
        """The buckets for patterns of a number of blocks, with room for what a random one spills.

        Args:
            buckets: bands and parts.
        """
        count = buckets[0] * buckets[1]
        room = ceil(capacity / count * (1 + oversize))
        return BlockLists(shape, *buckets, room, _spilled(capacity, count, room), oversize)

    @cached_property
    def tiers(self) -> tuple[Tier, ...]:
        """The buckets, and that of spilled blocks if there is one."""
        first = Tier(self.bands, self.parts, self.room)
        return (first, Tier(1, 1, self.spill)) if self.spill else (first,)

    @property
    def most(self) -> int:
        """The blocks for which there is room."""
        return self.bands * self.parts * self.room + self.spill

    def encode(self, values: Array, rows: Array, columns: Array) -> tuple[Buckets, ...]:
        """Blocks in the buckets of each tier.

        Raises InputError for lists of different lengths, an index that the matrix does not have,
        and a pattern that does not fit.

        Args:
            values: [blocks, height, width].
            rows, columns: of blocks, in any order; negative ones count from the end. Blocks that
                lie in one place add up.
        """
        if values.ndim != 3 or rows.shape != values.shape[:1] or columns.shape != rows.shape:
            raise InputError(
                f"lists of values {list(values.shape)}, rows {list(rows.shape)} and columns "
                f"{list(columns.shape)}; need a row and a column for each block"
            )
        named = (("row", rows), ("column", columns))
        found = [
            from_front(each, size, what)
            for (what, each), size in zip(named, self.shape, strict=True)
        ]
        rest = np.arange(len(values))
        made: list[Buckets] = []
        for tier in self.tiers:
            high, wide = tier.sizes(self.shape)
            row, column = (each[rest] for each in found)
            bucket = row // high * tier.parts + column // wide
            order = np.argsort(bucket, kind="stable")
            count = np.bincount(bucket, minlength=tier.bands * tier.parts)
            rank = np.arange(len(rest)) - np.repeat(np.cumsum(count) - count, count)
            fits = rank < tier.room
            held = order[fits]
            # In a bucket, blocks are in the order of their rows, so that a row is added to once.
            held = held[np.lexsort((row[held], bucket[held]))]
            at = bucket[held], rank[fits]
            whole = (tier.bands * tier.parts, tier.room)
            block = np.zeros((*whole, *values.shape[1:]), values.dtype)
            inner = np.full(whole, high, tier.index(self.shape))
            across = np.zeros_like(inner)
            block[at] = values[rest[held]]
            inner[at], across[at] = row[held] % high, column[held] % wide
            places = (tier.bands, tier.parts, tier.room)
            shaped = block.reshape(*places, *values.shape[1:])
            made.append((shaped, inner.reshape(places), across.reshape(places)))
            rest = rest[order[~fits]]
        if len(rest):
            raise InputError(self._refusal(*found))
        return tuple(made)

    def decode(self, tiers: tuple[Buckets, ...]) -> Buckets:
        """The list of all blocks that buckets hold: values, rows and columns."""
        lists: list[Buckets] = []
        for tier, (values, rows, columns) in zip(self.tiers, tiers, strict=True):
            high, wide = tier.sizes(self.shape)
            at = np.nonzero(rows < high)
            lists.append(
                (
                    values[at],
                    rows[at].astype(np.int64) + at[0] * high,
                    columns[at].astype(np.int64) + at[1] * wide,
                )
            )
        values, rows, columns = (np.concatenate(each) for each in zip(*lists, strict=True))
        return values, rows, columns

    def sample(self, random: np.random.Generator) -> tuple[Integers, Integers]:
        """The rows and columns of as many random blocks as are expected, evenly over buckets."""
        tier = self.tiers[0]
        high, wide = tier.sizes(self.shape)
        each = int(self.room / (1 + self.oversize))
        places = self.bands, self.parts, each
        row: Integers = random.integers(0, max(high, 1), places)
        column: Integers = random.integers(0, max(wide, 1), places)
        row += high * np.arange(self.bands).reshape(-1, 1, 1)
        column += wide * np.arange(self.parts).reshape(-1, 1)
        return row.ravel(), column.ravel()

    def _refusal(self, rows: Integers, columns: Integers) -> str:
        """What to say of a pattern that does not fit: the fullest bucket, and what would fit."""
        high, wide = self.tiers[0].sizes(self.shape)
        buckets = self.bands * self.parts
        count = np.bincount(rows // high * self.parts + columns // wide, minlength=buckets)
        fullest = int(count.argmax())
        spilled = int(np.maximum(count - self.room, 0).sum())
        return (
            f"a pattern of {len(rows)} blocks does not fit: bucket "
            f"[{fullest // self.parts}, {fullest % self.parts}] has {count[fullest]} blocks and "
            f"room for {self.room}, and {spilled} blocks spill, with room for {self.spill}; need "
            f"capacity {self._capacity_of(count)} with buckets [{self.bands}, {self.parts}]"
        )

    def _capacity_of(self, count: Integers) -> int:
        """A capacity with which buckets of these numbers of blocks fit: the smallest, or nearly."""
        none, enough = 0, int(count.max()) * len(count)
        while enough - none > 1:
            middle = (none + enough) // 2
            tried = BlockLists.planned(self.shape, (self.bands, self.parts), middle, self.oversize)
            if np.maximum(count - tried.room, 0).sum() <= tried.spill:
                enough = middle
            else:
                none = middle
        return enough


def from_front(indices: Array, size: int, what: str) -> Integers:
    """Indices counted from the front. Raises InputError for one that is out of range."""
    # Indices are compared as they are: unsigned ones of 64 bits may be too large for int64.
    wrong = (indices < -size) | (indices >= size)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"{what} {indices[at]} of block {at}; the matrix has {size} {what}s of blocks"
        )
    wide = indices.astype(np.int64)
    return np.where(wide < 0, wide + size, wide)


def _spilled(blocks: int, buckets: int, room: int) -> int:
    """About the most blocks that find no room in their buckets, if each lies in a random one."""
    if room >= blocks or buckets == 1:
        return 0
    share = 1 / buckets
    # The probability of each number of blocks in a bucket that is above its room. Beyond some
    # deviations it is 0.
    above = 1 + int(12 * sqrt(blocks * share)) + 40
    counts = np.arange(room + 1, min(blocks, room + above) + 1)
    first = room + 1
    begin = lgamma(blocks + 1) - lgamma(first + 1) - lgamma(blocks - first + 1)
    begin += first * log(share) + (blocks - first) * log(1 - share)
    steps = np.log((blocks - counts[:-1]) / (counts[:-1] + 1) * (share / (1 - share)))
    probability = exp(begin) * np.exp(np.concatenate([[0.0], np.cumsum(steps)]))
    if buckets * probability.sum() < SELDOM:
        return 0
    more = counts - room
    expected, square = (buckets * float(np.sum(probability * more**i)) for i in (1, 2))
    return ceil(expected + DEVIATIONS * sqrt(square))
