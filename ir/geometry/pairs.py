"""Pairs of cells of two grids that touch a common element, listed without testing every pair.

What a cell touches is a product over groups of axes that depend only on each other, and so are the
pairs. The pairs of a group are found by following every element's owner. All pairs are sums of the
pairs of the groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..support.arrays import Integers
from ..support.distinct import distinct
from .blocks import plain_move
from .layout import Bounds
from .overlap import Component, carried, components
from .space import AccessMap, AxisMap, Space

INNER = 1 << 16
"""Pairs that the innermost factor should have, so that one NumPy addition does enough work."""

INNERS = 16
"""The innermost factor has at most this many times INNER pairs, because it is held in memory."""


@dataclass(frozen=True)
class Side:
    """A tensor, and the cells of a grid that touch it.

    Cells are numbered row-major over the parts.

    Attributes:
        access: the tensor seen from the grid's dimensions.
        bounds: the parts of each dimension, consecutive and not empty.
    """

    access: AccessMap
    bounds: Bounds

    @cached_property
    def parts(self) -> tuple[int, ...]:
        """Parts of each dimension."""
        return tuple(len(first) for first, _ in self.bounds)

    @cached_property
    def cells(self) -> int:
        """Number of cells."""
        return prod(self.parts)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Distance in cells from one part to the next, for each dimension."""
        return tuple(prod(self.parts[d + 1 :]) for d in range(len(self.parts)))

    @cached_property
    def free_dims(self) -> tuple[int, ...]:
        """Dimensions with several parts that the tensor does not depend on."""
        named = self.access.dims()
        return tuple(d for d, k in enumerate(self.parts) if k > 1 and d not in named)


@dataclass(frozen=True, eq=False)
class Factor:
    """Pairs along some dimensions of two grids: (pairs,) each.

    Attributes:
        source, destination: the pair's contributions to the numbers of its source cell and
            destination cell.
        shared: the elements that both cells share along the axes of these dimensions.
    """

    source: Integers
    destination: Integers
    shared: Integers

    def __len__(self) -> int:
        return len(self.source)

    def times(self, inner: Factor) -> Factor:
        """The product of this factor and another one, whose pairs vary faster."""
        return Factor(
            np.add.outer(self.source, inner.source).ravel(),
            np.add.outer(self.destination, inner.destination).ravel(),
            np.multiply.outer(self.shared, inner.shared).ravel(),
        )


ONE = Factor(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64))
NONE = Factor(*(np.zeros(0, np.int64) for _ in range(3)))

Block = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
"""Source cells, destination cells and the elements that they share: (pairs,) each."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of cells that share an element: each combination of one pair from every factor."""

    factors: tuple[Factor, ...]

    @cached_property
    def count(self) -> int:
        """Number of pairs."""
        return prod(len(factor) for factor in self.factors)

    @cached_property
    def shared_elements(self) -> int:
        """Shared elements, summed over all pairs."""
        return prod(int(factor.shared.sum()) for factor in self.factors)

    def blocks(self, most: int) -> Iterator[Block]:
        """The pairs in blocks of at most `most`. The arrays are writable."""
        outer, inner = self._halves
        for rows, columns in runs(0, self.count, len(inner), most):
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            block = tuple(np.empty(shape, np.int32) for _ in range(3))
            for ufunc, name, into in zip(
                (np.add, np.add, np.multiply), ("source", "destination", "shared"), block
            ):
                left = getattr(outer, name)[rows].astype(np.int32)
                ufunc.outer(left, getattr(inner, name)[columns].astype(np.int32), out=into)
            source, destination, shared = (each.ravel() for each in block)
            yield source, destination, shared

    def listed(self) -> Factor:
        """All pairs as one factor."""
        return reduce(Factor.times, self.factors, ONE)

    @cached_property
    def _halves(self) -> tuple[Factor, Factor]:
        """Two factors whose product is all pairs; the second one is long."""
        left = sorted(self.factors, key=len)
        inner = ONE
        while left and len(inner) < INNER and len(left[-1]) * len(inner) <= INNER * INNERS:
            inner = left.pop().times(inner)
        return reduce(Factor.times, left, ONE), inner


def runs(first: int, last: int, row: int, most: int) -> Iterator[tuple[slice, slice]]:
    """Cut the numbers [first, last), counted row by row, into rectangles of (rows, columns).

    Each rectangle has at most `most` elements. Rows are kept whole if a row is not longer than
    that.
    """
    while first < last:
        at, column = divmod(first, row)
        if column or last - first < row or most < row:
            stop = min(row, column + most, column + last - first)
            yield slice(at, at + 1), slice(column, stop)
            first += stop - column
        else:
            rows = min(most // row, (last - first) // row)
            yield slice(at, at + rows), slice(0, row)
            first += rows * row


def pairs(source: Side, destination: Side, moves: tuple[Space, ...] = ()) -> Pairs:
    """The pairs of cells that share an element, through a chain of moves.

    Without moves, both sides are the same tensor, perhaps reshaped. Source cells own the elements
    that they touch. If several cells along a dimension that the source's access names touch an
    element, the first owns it.

    Args:
        moves: spaces with one operand (the tensor before) and one result (the tensor after).
    """
    chain = moves or (plain_move(source.access.shape),)
    shapes = source.access.shape, destination.access.shape, *(m.sizes for m in chain)
    if any(0 in shape for shape in (*shapes, source.parts, destination.parts)):
        return Pairs((NONE,))
    found = [
        (None if moves else _factor_of_runs(component, source, destination))
        or _factor(component, source, destination, chain)
        for component in components(source.access, destination.access, chain)
    ]
    found += destination_factors(destination)
    for d in source.free_dims:
        of = np.arange(source.parts[d]) * source.weights[d]
        found.append(Factor(of, np.zeros_like(of), np.ones_like(of)))
    return Pairs(tuple(found))


def destination_factors(side: Side) -> list[Factor]:
    """The factors that repeat each pair for the destination cells that touch the same elements."""
    every = [np.arange(side.parts[d]) * side.weights[d] for d in side.free_dims]
    return [Factor(np.zeros_like(cells), cells, np.ones_like(cells)) for cells in every]


def touched(side: Side) -> tuple[Integers, Integers]:
    """Every (cell, element) of a tensor, once: the elements that cells touch, row-major.

    Of cells that touch the same elements, only the first is listed: see `destination_factors`.
    """
    if 0 in (*side.access.shape, *side.parts):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return _touched(side, range(len(side.access.axes)))


def _factor(
    component: Component, source: Side, destination: Side, chain: tuple[Space, ...]
) -> Factor:
    """The pairs along the axes of one component."""
    axes = component.get("source", [])
    part, index = _touched(source, axes)
    owner = np.full(prod(source.access.shape[i] for i in axes), -1, np.int64)
    owner[index[::-1]] = part[::-1]
    owner = carried(owner, component, chain)
    to, index = _touched(destination, component.get("destination", []))
    of = owner[index]
    to, of = to[of >= 0], of[of >= 0]
    pair, shared = np.unique(to * source.cells + of, return_counts=True)
    return Factor(pair % source.cells, pair // source.cells, shared)


def _factor_of_runs(component: Component, source: Side, destination: Side) -> Factor | None:
    """The pairs along one axis that both grids cut into runs; None for other axes.

    The pairs follow from the boundaries of the runs, so memory is bounded by the number of cells.
    Element by element, an axis of 100 million elements would take 6 GB.
    """
    of = _runs_along(source, component.get("source", []))
    to = _runs_along(destination, component.get("destination", []))
    if of is None or to is None or of[1][-1] != to[1][-1]:
        return None
    edges: Integers = np.union1d(of[1], to[1]).astype(np.int64)
    # The elements between two edges belong to one part of each side. No empty part begins at the
    # last edge.
    first = edges[:-1]
    owner: Integers = np.searchsorted(of[1], first, "right") - 1
    taker: Integers = np.searchsorted(to[1], first, "right") - 1
    return Factor(owner * of[0], taker * to[0], np.diff(edges))


def _runs_along(side: Side, axes: Sequence[int]) -> tuple[int, Integers] | None:
    """The distance in cells from one part of an axis to the next, and the boundaries of its runs.

    None unless the axis is a whole dimension in consecutive parts.
    """
    if len(axes) != 1:
        return None
    axis = side.access.axes[axes[0]]
    if len(axis.terms) != 1 or (axis.terms[0][1], axis.offset, axis.divisor) != (1, 0, 1):
        return None
    d = axis.terms[0][0]
    first, last = side.bounds[d]
    edges = np.append(first, last[-1])
    follow = first[0] == 0 and last[-1] == axis.size and bool((first[1:] == last[:-1]).all())
    alone = not any(d in {e for e, _ in a.terms} for a in side.access.axes if a is not axis)
    return (side.weights[d], edges) if follow and alone else None


def _touched(side: Side, axes: Sequence[int]) -> tuple[Integers, Integers]:
    """Every (cell, element) of some axes, once: the elements that each cell touches.

    cell: the contribution of the parts along the dimensions of these axes to the cell's number.
    element: row-major over the axes.
    """
    after = {i: prod(side.access.shape[j] for j in axes[k + 1 :]) for k, i in enumerate(axes)}
    cell, element = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for cluster in _clusters(side.access, axes):
        more_cells, more = _cluster(side, cluster, after)
        cell = np.add.outer(cell, more_cells).ravel()
        element = np.add.outer(element, more).ravel()
    return cell, element


def _clusters(access: AccessMap, axes: Sequence[int]) -> list[list[int]]:
    """The axes in groups that have no dimension in common."""
    found: list[tuple[set[int], list[int]]] = []
    for i in axes:
        dims, members = {d for d, _ in access.axes[i].terms}, [i]
        for each in [f for f in found if f[0] & dims]:
            dims, members = dims | each[0], each[1] + members
            found.remove(each)
        found.append((dims, members))
    return [sorted(members) for _, members in found]


def _cluster(
    side: Side, axes: Sequence[int], weights: Mapping[int, int]
) -> tuple[Integers, Integers]:
    """Every (cell, element) of axes that share dimensions, once.

    Args:
        weights: the weight of each axis's index in the element's number.
    """
    maps = [side.access.axes[i] for i in axes]
    dims = sorted({d for axis in maps for d, _ in axis.terms})
    sizes = [int(side.bounds[d][1][-1]) for d in dims]
    cell = np.zeros(1, np.int64)
    for d in dims:
        first, last = side.bounds[d]
        part = np.repeat(np.arange(len(first)) * side.weights[d], last - first)
        cell = np.add.outer(cell, part).ravel()
    element = np.zeros_like(cell)
    inside = np.ones(len(cell), bool)
    for i, axis in zip(axes, maps, strict=True):
        index = _indices(axis, dims, sizes)
        inside &= index >= 0
        element += index * weights[i]
    cell, element = cell[inside], element[inside]
    if len(cell) and any(not _is_injective(axis) for axis in maps):
        span = int(element.max()) + 1
        cell, element = np.divmod(distinct(cell * span + element), span)
    return cell, element


def _indices(axis: AxisMap, dims: Sequence[int], sizes: Sequence[int]) -> Integers:
    """The index of every point of some dimensions, row-major; -1 where there is no element."""
    numerator = np.full((1,) * len(dims), axis.offset, np.int64)
    for d, a in axis.terms:
        along = [-1 if e == d else 1 for e in dims]
        numerator = numerator + a * np.arange(sizes[dims.index(d)]).reshape(along)
    return axis.resolve(np.broadcast_to(numerator, sizes).ravel())


def _is_injective(axis: AxisMap) -> bool:
    """True if no two points of the axis's dimensions can touch the same element."""
    return len(axis.terms) == 1 and axis.divisor == 1 and axis.outside in ("none", "fill")
