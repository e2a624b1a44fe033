"""Grids: an axis cut into parts, and the shape classes of the cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Run:
    """Neighbouring parts of one cut that have the same size.

    Part first + i, for i < count, covers elements [start + i*size, start + (i+1)*size).
    """

    first: int
    count: int
    start: int
    size: int


@dataclass(frozen=True)
class Cut:
    """A dimension of size elements, cut into parts at multiples of grain.

    The first (units % parts) parts have one grain more than the others, so that parts of the same
    size are neighbours. The last part ends at the last element, even inside a grain.

        size 7, parts 3:  |0 1 2|3 4|5 6|        size 7, parts 2, grain 2:  |0 1 2 3|4 5 6|

    Raises ValueError unless size >= 0 and 1 <= parts <= ceil(size / grain), and unless parts is a
    multiple of chips.

    Attributes:
        chips: the chips over which the parts are spread. The parts of a chip are neighbours.
    """

    size: int
    parts: int = 1
    grain: int = 1
    chips: int = 1

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"a dimension of {self.size} elements; need 0 or more")
        if self.grain < 1 or not 1 <= self.parts <= max(1, ceil(self.size / self.grain)):
            raise ValueError(
                f"{self.parts} parts of {self.size} elements in grains of {self.grain}; "
                f"need 1..{max(1, ceil(self.size / max(self.grain, 1)))}"
            )
        if self.chips < 1 or self.parts % self.chips:
            raise ValueError(f"{self.parts} parts across {self.chips} chips; need a multiple")

    def edges(self) -> NDArray[np.int64]:
        """Part boundaries: (parts + 1,), from 0 to size. Read-only."""
        return _edges(self)

    @property
    def largest(self) -> int:
        """Elements of the largest part."""
        return min(ceil(ceil(self.size / self.grain) / self.parts) * self.grain, self.size)

    def runs(self) -> tuple[Run, ...]:
        """The parts grouped into neighbours of equal size on the same chip: at most two runs more
        than there are chips."""
        return _runs(self)


@lru_cache(maxsize=4096)
def _edges(cut: Cut) -> NDArray[np.int64]:
    p = np.arange(cut.parts + 1, dtype=np.int64)
    edges = begin_of(p, cut.size, np.int64(cut.parts), np.int64(cut.grain))
    edges.flags.writeable = False
    return edges


def begin_of(
    part: NDArray[np.int64],
    size: int,
    parts: NDArray[np.int64] | np.int64,
    grain: NDArray[np.int64] | np.int64,
) -> NDArray[np.int64]:
    """Where parts of an axis begin, for cuts of any numbers of parts: broadcast together.

    Args:
        part: the index of each; the number of parts stands for the end of the axis.
        size: of the axis.
        parts, grain: of the cuts.
    """
    q, r = np.divmod(-(-size // grain), parts)
    return np.minimum((part * q + np.minimum(part, r)) * grain, size)


@lru_cache(maxsize=4096)
def _runs(cut: Cut) -> tuple[Run, ...]:
    edges = cut.edges()
    sizes = np.diff(edges)
    begins = np.arange(cut.parts) % (cut.parts // cut.chips) == 0
    begins[1:] |= sizes[1:] != sizes[:-1]
    firsts = np.flatnonzero(begins)
    counts = np.diff(np.r_[firsts, len(sizes)])
    return tuple(
        Run(int(f), int(c), int(edges[f]), int(sizes[f]))
        for f, c in zip(firsts, counts, strict=True)
    )


def shape_classes(grid: tuple[Cut, ...]) -> tuple[tuple[Run, ...], ...]:
    """The cells of a grid grouped by shape. A class is a tuple of runs, one for each cut."""
    return tuple(product(*(cut.runs() for cut in grid)))
