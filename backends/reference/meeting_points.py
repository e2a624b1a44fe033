"""The points at which the relations of a space hold, and the elements that operands have there.

Wanted indices are looked up in sorted arrays. No code is shared with the codelets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ...ir.geometry.space import NO_INDEX, AccessMap, Relation, Space
from ..faults import IndexFault
from .gather import Array, Indices, fill_value


@dataclass(frozen=True)
class MeetingPoints:
    """Points of a space, listed along some dimensions and complete along the others.

    Arrays over the points have one axis for the list, and one for each free dimension.

    Attributes:
        at: for each listed dimension, the index of each point.
        free: the other dimensions, in order.
        count: of the listed points.
    """

    space: Space
    at: dict[int, Indices]
    free: tuple[int, ...]
    count: int

    def read(self, tensor: Array, access: AccessMap) -> Array:
        """The elements that a map reads.

        Args:
            tensor: in the map's viewed shape.
        """
        shape = [1] * (1 + len(self.free))
        missing = np.zeros(shape, bool)
        index: list[Indices] = []
        for axis in access.axes:
            numerators = np.full(shape, axis.offset, np.int64)
            for d, coefficient in axis.terms:
                numerators = numerators + coefficient * self._along(d)
            reached = axis.resolve(numerators)
            missing = missing | (reached < 0)
            index.append(np.maximum(reached, 0))
        full = np.broadcast_shapes(shape, *(each.shape for each in index))
        fill = np.asarray(fill_value(access.fill, tensor.dtype)).astype(tensor.dtype)
        if 0 in tensor.shape:
            return np.full(full, fill)
        points = tensor[tuple(index)].reshape(full)
        return np.where(missing, fill, points) if missing.any() else points

    def parts(self, most: int) -> Iterator[MeetingPoints]:
        """The same points in parts of at most `most` listed points, at least one part."""
        for start in range(0, max(self.count, 1), most):
            at = {d: index[start : start + most] for d, index in self.at.items()}
            yield replace(self, at=at, count=min(most, self.count - start))

    def _along(self, d: int) -> Indices:
        rank = 1 + len(self.free)
        if d in self.at:
            return self.at[d].reshape(-1, *[1] * (rank - 1))
        along = [1] * rank
        along[1 + self.free.index(d)] = -1
        return np.arange(self.space.dims[d].size).reshape(along)


def check_indices(space: Space, operands: Sequence[Array]) -> None:
    """Raise IndexFault for the first index that the axis of its relation does not have.

    A space without points reads none.

    Args:
        operands: in the viewed shapes of their maps.
    """
    for relation in space.relations if space.points else ():
        array, size = operands[relation.operand], relation.axis.size
        outside = np.argwhere((array < -size) | (array >= size))
        if len(outside):
            position = tuple(int(i) for i in outside[0])
            raise IndexFault(int(array[position]), position, size)


def meeting_points(space: Space, indices: Sequence[Array]) -> MeetingPoints:
    """The points of a space at which all of its relations hold.

    Args:
        indices: the operand of each relation, in the viewed shape of its map.
    """
    solved = [sorted({d for d, _ in relation.axis.terms}) for relation in space.relations]
    maps = [space.operands[relation.operand] for relation in space.relations]
    named = {d for access in maps for d in access.dims()}
    unknown = [d for dims in solved for d in dims]
    listed = sorted({*named, *unknown})
    free = tuple(d for d in range(len(space.dims)) if d not in listed)
    outer = [d for d in listed if d not in unknown or d in named or unknown.count(d) > 1]
    at, count = _all_points(space, outer)
    for relation, dims, access, array in zip(space.relations, solved, maps, indices, strict=True):
        points = MeetingPoints(space, at, (), count)
        wanted = np.broadcast_to(points.read(array, access).reshape(-1), count)
        wanted = relation.from_front(wanted)
        further = [d for d in dims if d not in at]
        source, found = _solved(space, relation, further, at, wanted)
        there, _ = _all_points(space, further)
        at = {d: index[source] for d, index in at.items()}
        at |= {d: index[found] for d, index in there.items()}
        count = len(source)
    return MeetingPoints(space, at, free, count)


def _all_points(space: Space, dims: Sequence[int]) -> tuple[dict[int, Indices], int]:
    """All points of some dimensions as a list: their index along each dimension, and their
    number."""
    shape = [space.dims[d].size for d in dims]
    return {d: each.ravel() for d, each in zip(dims, np.indices(shape), strict=True)}, prod(shape)


def _solved(
    space: Space,
    relation: Relation,
    dims: Sequence[int],
    at: dict[int, Indices],
    wanted: Indices,
) -> tuple[Indices, Indices]:
    """Extend given points along further dimensions to all points that meet a relation.

    Returns pairs: the number of a given point, and the number of a point of the further dimensions.

    Args:
        at: the given points.
        wanted: for each of them, the index that the relation has to reach.
    """
    there, more = _all_points(space, dims)
    count = len(wanted)
    if not dims or any(d in at for d, _ in relation.axis.terms):
        # The index depends on the given point: try all pairs.
        source, found = (each.ravel() for each in np.indices((count, more)))
        joined = {d: index[source] for d, index in at.items()}
        joined |= {d: index[found] for d, index in there.items()}
        held = _reached(relation, joined, count * more) == wanted[source]
        return source[held], found[held]
    reached = _reached(relation, there, more)
    order = np.argsort(reached, kind="stable")
    first = np.searchsorted(reached[order], wanted, "left")
    last = np.searchsorted(reached[order], wanted, "right")
    counts = np.where(wanted == NO_INDEX, 0, last - first)
    source = np.repeat(np.arange(count), counts)
    within: Indices = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    return source, order[np.repeat(first, counts) + within]


def _reached(relation: Relation, at: dict[int, Indices], count: int) -> Indices:
    """The index that each of `count` points reaches along the axis of a relation."""
    points = [at.get(d, np.zeros(1, np.int64)) for d in range(max(at, default=0) + 1)]
    return np.broadcast_to(relation.indices(points), count)
