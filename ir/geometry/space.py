"""Iteration spaces and access maps: which elements an operator touches for each result element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..support.hash_once import hash_once
from ..support.same_number import same_number
from .table import Table

Kind = Literal["parallel", "reduction", "whole"]
"""The kind of a dimension. parallel: one result element per point. reduction: the combiner merges
the points. whole: like parallel, but never cut, because a result element may depend on all points
along the dimension.
"""

Division = Literal["exact", "floor"]
"""exact: only numerators divisible by the divisor name an element. floor: rounds down."""

Outside = Literal["none", "fill", "edge", "reflect", "wrap"]
"""What an index outside the tensor means. none: it cannot happen."""

Rule = Outside | Table
"""What an index outside the tensor means, by a word, or by a table of the elements that the indices
after the last one stand for.
"""


def rule_text(rule: Rule) -> str:
    """The text of a rule: a word, and what a table has."""
    return f"table {rule}" if isinstance(rule, Table) else rule


@dataclass(frozen=True)
class Dim:
    """One named dimension of an iteration space. Its size is at least 0."""

    name: str
    size: int
    kind: Kind = "parallel"

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"dimension {self.name}: size {self.size}; need 0 or more")


@dataclass(frozen=True)
class AxisMap:
    """One axis of a tensor as a function of the iteration dimensions.

    index = (sum of coefficient * dimension + offset) / divisor. The value before the division is
    the *numerator*. Blocks in tile memory are dense windows of numerators. The copy that fills a
    block applies the division and the rule for indices outside the tensor.

    Attributes:
        size: elements of the tensor's axis.
        terms: (dimension index, coefficient) pairs.
    """

    size: int
    terms: tuple[tuple[int, int], ...] = ()
    offset: int = 0
    divisor: int = 1
    division: Division = "floor"
    outside: Rule = "none"

    def __post_init__(self) -> None:
        if self.divisor < 1:
            raise ValueError(f"axis map: divisor {self.divisor}; need 1 or more")
        for _, coefficient in self.terms:
            if coefficient == 0:
                raise ValueError("axis map: a coefficient is 0; leave the term out")

    def numerators(self, sizes: tuple[int, ...]) -> tuple[int, int]:
        """Smallest and largest numerator over dimensions of the given sizes (all at least 1)."""
        low = high = self.offset
        for d, coefficient in self.terms:
            if coefficient < 0:
                low += coefficient * (sizes[d] - 1)
            else:
                high += coefficient * (sizes[d] - 1)
        return low, high

    def resolve(self, numerators: NDArray[np.int64]) -> NDArray[np.int64]:
        """The tensor index of each numerator; -1 for a numerator without an element, which is
        filled.
        """
        index = numerators // self.divisor
        n = self.size
        if not n:
            # There is no element to begin again with, nor one at an edge.
            return np.full(index.shape, -1)
        match self.outside:
            case "none" | "fill":
                missing = (index < 0) | (index >= n)
            case "edge":
                index = np.clip(index, 0, n - 1)
                missing = np.zeros(index.shape, bool)
            case "reflect":
                period = max(2 * (n - 1), 1)
                index = np.mod(index, period)
                index = np.where(index >= n, period - index, index)
                missing = np.zeros(index.shape, bool)
            case "wrap":
                index = np.mod(index, n)
                missing = np.zeros(index.shape, bool)
            case Table() as table:
                index = np.where(index < n, index, table.find(index - n))
                missing = index < 0
        if self.division == "exact" and self.divisor > 1:
            missing = missing | (numerators % self.divisor != 0)
        return np.where(missing, -1, index)

    @property
    def may_fill(self) -> bool:
        """Whether an index outside the tensor may read the fill value."""
        return self.outside == "fill" or isinstance(self.outside, Table)

    def reach_problem(self, sizes: tuple[int, ...]) -> str:
        """What is wrong with the indices that the axis reaches; "" if nothing is.

        Args:
            sizes: of the dimensions, all at least 1.
        """
        if isinstance(self.outside, Table):
            if self.outside.highest < self.size:
                return ""
            return f"its table has element {self.outside.highest} of {self.size} elements"
        low, high = (numerator // self.divisor for numerator in self.numerators(sizes))
        if self.outside != "none" or (low >= 0 and high < self.size):
            return ""
        return f"reaches indices {low}..{high} of {self.size} elements"

    def is_plain(self, sizes: tuple[int, ...]) -> bool:
        """True if, for these dimension sizes, every numerator is itself an index in bounds."""
        low, high = self.numerators(sizes)
        return self.divisor == 1 and low >= 0 and high < self.size


@hash_once
@dataclass(frozen=True)
class AccessMap:
    """The addressing of an operand or result: one AxisMap for each axis of the viewed tensor.

    The tensor is viewed row-major in the shape of the axes, which may factor its own axes. For
    example, the weights of a grouped convolution are viewed as [groups, out, in, kernel...].

    Attributes:
        fill: the value of elements that do not exist (padding). -inf means the dtype's smallest
            value.
    """

    axes: tuple[AxisMap, ...]
    fill: float = 0.0

    def __eq__(self, other: object) -> bool:
        """True for the same axes and the same fill, including the sign of zero."""
        if not isinstance(other, AccessMap):
            return NotImplemented
        return self.axes == other.axes and same_number(self.fill, other.fill)

    @property
    def shape(self) -> tuple[int, ...]:
        """The viewed shape."""
        return tuple(axis.size for axis in self.axes)

    def dims(self) -> frozenset[int]:
        """The dimensions that the map depends on."""
        return frozenset(d for axis in self.axes for d, _ in axis.terms)

    def renamed(self, new_index: dict[int, int]) -> AccessMap:
        """The same map over renumbered dimensions. Terms of dimensions not listed are dropped."""
        # Runs for every plan; calling the constructor is several times as fast as replace().
        return AccessMap(
            tuple(
                AxisMap(
                    a.size,
                    tuple([(new_index[d], c) for d, c in a.terms if d in new_index]),
                    a.offset,
                    a.divisor,
                    a.division,
                    a.outside,
                )
                for a in self.axes
            ),
            self.fill,
        )


NO_INDEX = -(1 << 31)
"""Stands for the index of a point outside its axis. No index counted from the front has this
value."""


@dataclass(frozen=True)
class Relation:
    """A condition that the points of a space must meet to contribute to the result.

    The index that a point reaches along an axis must equal an element of an operand.

        table (r, k), indices (j), result (j, k), relation r == indices[j]: rows of a table

    Attributes:
        axis: the index as a function of the dimensions, along an axis of `axis.size` elements. A
            point that is outside this axis never contributes.
        operand: the operand of integers. They name the elements 0..size-1; negative ones,
            -size..-1, count from the end. Any other index is a fault, whether or not a point
            reaches it.
    """

    axis: AxisMap
    operand: int

    def from_front(self, indices: NDArray[np.integer]) -> NDArray[np.int64]:
        """Indices that an operand holds, counted from the front of the axis."""
        wide = indices.astype(np.int64)
        return np.where(wide < 0, wide + self.axis.size, wide)

    def indices(self, points: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The index of each point; NO_INDEX outside the axis.

        Args:
            points: for each dimension, the points to look at. The arrays broadcast together.
        """
        numerators = np.array(self.axis.offset, np.int64)
        for d, coefficient in self.axis.terms:
            numerators = numerators + coefficient * points[d]
        found = self.axis.resolve(numerators)
        return np.where(found < 0, NO_INDEX, found)


@hash_once
@dataclass(frozen=True)
class Position:
    """An access map without an operand: it gives a body the position of a point in a tensor.

    A position that is an operand is called a *coordinate*: an affine expression of the dimensions,
    along one axis that has an element for each of its values.

    Attributes:
        access: the tensor in which positions are counted; the position of a point is the row-major
            number of the element that the map reaches, counted from `first`.
        operand: the operand of the body that the position stands for, counted among all operands;
            -1 if the combiner reads the position. A point outside the tensor contributes nothing to
            a combiner.
    """

    access: AccessMap
    operand: int = -1
    first: int = 0

    @property
    def is_coordinate(self) -> bool:
        """Whether the position is an operand of the body."""
        return self.operand >= 0

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest position."""
        return self.first, self.first + prod(self.access.shape) - 1

    def mapped(self, change: Callable[[AxisMap], AxisMap]) -> Position:
        """The position with a function applied to each axis of its map."""
        return replace(self, access=replace(self.access, axes=tuple(map(change, self.access.axes))))


def coordinate(
    operand: int, terms: Sequence[tuple[int, int]], start: int, sizes: Sequence[int]
) -> Position:
    """A coordinate: start + the sum of coefficient * dimension, as an operand of the body.

    Args:
        operand: its number among the body's operands.
        terms: (dimension, coefficient) pairs.
        sizes: the sizes of the dimensions.
    """
    kept = tuple((d, a) for d, a in terms if a and sizes[d] != 1)
    full = tuple(max(n, 1) for n in sizes)
    low, high = AxisMap(1, kept, start).numerators(full)
    return Position(AccessMap((AxisMap(high - low + 1, kept, start - low),)), operand, low)


def positions_of(position: Position, points: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The position in the viewed tensor that each point reaches; NO_INDEX outside it.

    Args:
        points: as for Relation.indices.
    """
    access = position.access
    at, outside = np.zeros((), np.int64), np.zeros((), np.bool_)
    for axis in access.axes:
        index = Relation(axis, 0).indices(points)
        outside = outside | (index == NO_INDEX)
        at = at * axis.size + index
    return np.where(outside, NO_INDEX, at + position.first)


def identity_map(dims: tuple[int, ...], shape: tuple[int, ...]) -> AccessMap:
    """The map whose axis i is dimension dims[i]."""
    return AccessMap(
        tuple(AxisMap(n, ((d, 1),) if n > 1 else ()) for d, n in zip(dims, shape, strict=True))
    )


@hash_once
@dataclass(frozen=True)
class Space:
    """An operator's iteration space: its dimensions, and one access map per operand and result.

    Result axes are single dimensions, with an offset if the operator writes a part of a larger
    tensor, as concat does.
    Raises ValueError if a map or a relation names a dimension that does not exist, or can reach an
    index outside its tensor without a rule for it.

    Attributes:
        relations: the conditions that points must meet; () if all points contribute.
        positions: the positions that the body reads.
    """

    dims: tuple[Dim, ...]
    operands: tuple[AccessMap, ...]
    results: tuple[AccessMap, ...]
    relations: tuple[Relation, ...] = ()
    positions: tuple[Position, ...] = ()

    def __post_init__(self) -> None:
        sizes = self.sizes
        related = tuple(AccessMap((relation.axis,)) for relation in self.relations)
        for i, relation in enumerate(self.relations):
            if not 0 <= relation.operand < len(self.operands):
                raise ValueError(f"relation {i}: no operand {relation.operand}")
        for role, maps in (
            ("operand", self.operands),
            ("result", self.results),
            ("relation", related),
            ("position", tuple(each.access for each in self.positions)),
        ):
            for i, access in enumerate(maps):
                for j, axis in enumerate(access.axes):
                    for d, _ in axis.terms:
                        if not 0 <= d < len(sizes):
                            raise ValueError(f"{role} {i}, axis {j}: no dimension {d}")
                    problem = "" if 0 in sizes else axis.reach_problem(sizes)
                    if problem:
                        raise ValueError(f"{role} {i}, axis {j}: {problem}")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the dimensions, in order."""
        return tuple(d.size for d in self.dims)

    def of_kind(self, *kinds: Kind) -> tuple[int, ...]:
        """Indices of the dimensions of these kinds."""
        return tuple(i for i, d in enumerate(self.dims) if d.kind in kinds)

    @property
    def axes(self) -> Iterator[AxisMap]:
        """The axes of all operands, of the relations and of the positions."""
        for access in (*self.operands, *(each.access for each in self.positions)):
            yield from access.axes
        for relation in self.relations:
            yield relation.axis

    @property
    def tables(self) -> Iterator[Table]:
        """The tables of all maps."""
        results = (axis for access in self.results for axis in access.axes)
        for axis in (*self.axes, *results):
            if isinstance(axis.outside, Table):
                yield axis.outside

    @property
    def coordinates(self) -> tuple[Position, ...]:
        """The positions that are operands of the body, in their order."""
        if not self.positions:
            return ()
        found = (each for each in self.positions if each.is_coordinate)
        return tuple(sorted(found, key=lambda each: each.operand))

    @property
    def points(self) -> int:
        """Number of iteration points."""
        return prod(self.sizes)


def can_split_unevenly(space: Space, dim: int) -> bool:
    """True if the parts of a reduction dimension may be padded.

    In every operand and relation that has the dimension it must be an axis of its own, so that the
    padding reads the fill value, or meets no relation.
    """
    return all(
        len(axis.terms) == 1 and axis.divisor == 1 and axis.outside in ("none", "fill")
        for axis in space.axes
        if any(d == dim for d, _ in axis.terms)
    )


@lru_cache(maxsize=4096)
def first_entry(shape: tuple[int, ...]) -> Space:
    """The move from a tensor to the first entry of its leading axis.

    Args:
        shape: of the tensor.
    """
    _, *rest = shape
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(rest))
    whole = identity_map(tuple(range(len(rest))), tuple(rest))
    return Space(dims, (AccessMap((AxisMap(shape[0]), *whole.axes)),), (whole,))


@lru_cache(maxsize=4096)
def split_reduction(space: Space, dim: int, parts: int, fill: float) -> Space:
    """Rewrite reduction dimension k as ceil(n/parts)*kp + kk with a parallel kp.

    The result gets a leading axis kp with one partial per part. The last part is padded if parts
    does not divide n. The padding reads fill, the identity of the combiner. Index operands read 0
    there, a legal index: the identity changes nothing where it is merged.

        k: 0 1 2 3 4 5 6, parts 2   ->   kp 0: 0 1 2 3   kp 1: 4 5 6 fill

    Raises ValueError if dim is not a reduction, or must be padded and cannot be.
    """
    old = space.dims[dim]
    if old.kind != "reduction" or not 1 <= parts <= old.size:
        raise ValueError(
            f"dimension {old.name} of {old.size} elements: {parts} parts of a {old.kind}"
        )
    block = ceil(old.size / parts)
    if old.size % parts and not can_split_unevenly(space, dim):
        raise ValueError(f"dimension {old.name}: {parts} parts do not divide {old.size} elements")
    if (parts - 1) * block >= old.size:
        raise ValueError(
            f"dimension {old.name}: {parts} parts of {old.size} elements leave one empty"
        )
    new = len(space.dims)
    # A reduction that has been split before has a dimension of its parts already.
    taken, name = {each.name for each in space.dims}, f"{old.name}p"
    while name in taken:
        name += "p"
    dims = tuple(replace(d, size=block) if i == dim else d for i, d in enumerate(space.dims)) + (
        Dim(name, parts, "parallel"),
    )

    is_padded = old.size % parts > 0

    def refined(axis: AxisMap) -> AxisMap:
        further = tuple((new, c * block) for d, c in axis.terms if d == dim)
        if not further:
            return axis
        outside = "fill" if is_padded else axis.outside
        return replace(axis, terms=axis.terms + further, outside=outside)

    indexing = {r.operand for r in space.relations}

    def refine(access: AccessMap, operand: int) -> AccessMap:
        if dim not in access.dims():
            return access
        padding = 0.0 if operand in indexing else fill
        fills = padding if is_padded else access.fill
        return AccessMap(tuple(refined(axis) for axis in access.axes), fills)

    return Space(
        dims,
        tuple(refine(a, i) for i, a in enumerate(space.operands)),
        tuple(AccessMap((AxisMap(parts, ((new, 1),)), *a.axes), a.fill) for a in space.results),
        tuple(replace(r, axis=refined(r.axis)) for r in space.relations),
        tuple(each.mapped(refined) for each in space.positions),
    )
