"""The numbers of elements that every cell of a layout wants, and that are already on its tile.

A block is a window along each axis. If the windows are runs of elements, the elements that two
blocks share are a product: of those that their runs share along each axis. This takes a few array
operations over all cells, and no table of the pairs of parts that meet (see `traffic`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import parts_of_cells
from ...ir.geometry.space import Space
from ...ir.geometry.tiles import Rows, in_common
from .price import Integers
from .traffic import shifts, traffic


class Counts(NamedTuple):
    """Numbers of elements of each wanted cell: (cells,) each, as in an `Overlap`.

    Attributes:
        wanted: the elements that it needs.
        local: the elements among them that its tile already holds.
    """

    wanted: Integers
    local: Integers


def elements_of_cells(source: Layout, wanted: Layout, move: Space | None) -> Counts:
    """The numbers of elements of each cell of a layout that takes them from another, through a
    move.
    """
    pairs = _pairs(source, wanted, move) if source.is_partition else None
    if pairs is None:
        shared = traffic(source, wanted, move)
        return Counts(shared.wanted, shared.local)
    count = np.ones(wanted.parts, np.int64)
    for _, run in pairs:
        count *= run.count
    return Counts(count.ravel(), _local(source, wanted, pairs))


class _Run:
    """The run of elements, without padding, that every block of a layout has along an axis.

    Attributes:
        size: elements of the layout's axis.
        first, last: the first element and one past the last, in the shape of `Layout.starts`.
        count: the number of elements, 0 or more.
        whole: whether every block has as many elements as the axis.
    """

    def __init__(self, parts: tuple[int, ...], size: int, first: Integers, last: Integers) -> None:
        self.parts, self.size = parts, size
        self.first, self.last = first, np.maximum(last, first)
        self.count = self.last - first
        self.whole = first.size == 1 and self.count.item() == size

    def place(self, cells: Rows) -> Rows:
        """Where `first`, `last` and `count`, flattened, have the values of some cells."""
        if self.first.size == 1:
            return slice(None)
        # A table of all cells would be as long as the machine has tiles, for every layout and axis.
        dims = tuple(d for d, n in enumerate(self.first.shape) if n > 1)
        return parts_of_cells(self.parts, dims)[cells]

    def shifted(self, by: int, low: int, high: int) -> _Run:
        """The run of source elements: each is `by` further on, limited to low..high - 1."""
        if not by and low <= 0 and high >= self.size:
            return self
        first, last = (
            np.minimum(np.maximum(each + by, low), high) for each in (self.first, self.last)
        )
        return _Run(self.parts, self.size, first, last)


_Pairs: TypeAlias = "list[tuple[_Run, _Run]]"


def _pairs(source: Layout, wanted: Layout, move: Space | None) -> _Pairs | None:
    """The runs of two layouts along corresponding axes.

    If there is a move, the wanted runs are those of the source elements. None if a move does more
    than shift, or if a block is not a run of elements.
    """
    own, runs = _runs(source), _runs(wanted)
    if own is None or runs is None:
        return None
    if move is None:
        mine, theirs = _moving(source), _moving(wanted)
        if [own[i].size for i in mine] != [runs[j].size for j in theirs]:
            return None
        return [(own[i], runs[j]) for i, j in zip(mine, theirs, strict=True)]
    if (source.shape, wanted.shape) != (move.operands[0].shape, move.results[0].shape):
        return None
    found = shifts(move)
    if not found:
        return None
    return [(own[i], runs[j].shifted(s.by, s.low, s.high)) for i, j, s in found]


def _local(source: Layout, wanted: Layout, pairs: _Pairs) -> Integers:
    """The number of elements of each wanted cell that are already on its tile: (cells,)."""
    local = np.zeros(wanted.cells, np.int64)
    to, of = in_common(wanted.tiles, source.tiles)
    here = np.ones_like(local[to])
    if not here.size:
        return local
    for own, run in pairs:
        if own.whole:
            here *= run.count.ravel()[run.place(to)]
        elif run.whole and run.size == own.size:
            here *= own.count.ravel()[own.place(of)]
        else:
            held, filled = own.place(of), run.place(to)
            common = np.minimum(own.last.ravel()[held], run.last.ravel()[filled])
            common = common - np.maximum(own.first.ravel()[held], run.first.ravel()[filled])
            here *= np.maximum(common, 0, out=common)
    local[to] = here
    return local


@lru_cache(maxsize=4096)
def _moving(layout: Layout) -> tuple[int, ...]:
    """The indices of all axes, without axes of one element that use no dimension."""
    axes = layout.access.axes
    return tuple([i for i, axis in enumerate(axes) if axis.size != 1 or axis.terms])


@lru_cache(maxsize=512)
def _runs(layout: Layout) -> tuple[_Run, ...] | None:
    """The runs of a layout along every axis; None if a block is not a run of elements."""
    found: list[_Run] = []
    for i, axis in enumerate(layout.access.axes):
        in_runs = axis.divisor == 1 and axis.outside in ("none", "fill") and layout.steps[i] == 1
        if not in_runs or not axis.size:
            return None
        starts = layout.starts(i)
        ends = starts + layout.counts(i)
        if axis.outside == "fill":
            starts, ends = (np.minimum(np.maximum(e, 0), axis.size) for e in (starts, ends))
        found.append(_Run(layout.parts, axis.size, starts, ends))
    return tuple(found)
