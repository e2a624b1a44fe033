"""Merges the points at which the relations of a space hold."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from .gather import Array
from .meeting_points import MeetingPoints, meeting_points
from .parts import MERGE, Parts, as_bits, errors_to_merge
from .roles import Roles

MOST_POINTS = 1 << 22
"""The most points that are merged at once, so that the memory they take stays small."""


def begin_with(roles: Roles, held: Array, parts: Parts) -> None:
    """Initialise the result of updates with the elements that are updated."""
    parts.value[...] = held
    if parts.size is None or parts.error is None:
        return
    if roles.combiner == "sum":
        parts.size[...] = np.abs(parts.value)
    elif roles.combiner == "prod":
        parts.size[...] = np.maximum(np.abs(parts.value), 1)
        parts.error[...] = np.abs(parts.value)


def merge_related_points(
    roles: Roles, operands: Sequence[Array], indices: Sequence[Array], parts: Parts
) -> None:
    """Merge the points at which all relations of the space hold into the parts of a result.

    Args:
        indices: the operands of the relations.
    """
    space = roles.space
    found = meeting_points(space, indices)
    each = prod(space.dims[d].size for d in found.free)
    for some in found.parts(max(MOST_POINTS // max(each, 1), 1)):
        _merge_points(roles, operands, some, parts)


def _merge_points(
    roles: Roles, operands: Sequence[Array], found: MeetingPoints, parts: Parts
) -> None:
    """Merge some of the points at which all relations hold."""
    space, function = roles.space, roles.function
    reads = tuple(
        found.read(array, access).astype(as_type, copy=False)
        for array, access, as_type in zip(operands, space.operands, roles.read_as, strict=False)
    )
    raw = function.apply(roles.parameters, *reads)
    listed = [d for d in roles.kept if d in found.at]
    complete = [d for d in found.free if d in roles.kept]
    shape = (found.count, *(space.dims[d].size for d in found.free))
    reduced = tuple(1 + i for i, d in enumerate(found.free) if d in roles.reduced)
    turn = [roles.kept.index(d) for d in (*listed, *complete)]
    where = tuple(found.at[d] for d in listed)

    def merge(into: Array, points: Array, by: np.ufunc) -> None:
        # A view with the listed axes first, then the other kept dimensions.
        into = into.transpose(turn)
        points = np.broadcast_to(points, shape)
        if roles.combiner == "last":
            _replace(into, points, where, reduced)
            return
        if by is np.bitwise_or:
            into, points = as_bits(into), as_bits(points)
        points = by.reduce(points, axis=reduced)
        if where:
            by.at(into, where, points)
        elif len(points):
            into[...] = by(into, by.reduce(points, axis=0))

    assert roles.combiner is not None
    by = MERGE.get(roles.combiner, np.maximum)
    merge(parts.value, raw.astype(parts.value.dtype, copy=False), by)
    for into, points, by in errors_to_merge(roles, parts, reads, raw):
        merge(into, points, by)


def _replace(
    into: Array, points: Array, where: Sequence[NDArray[np.int64]], reduced: Sequence[int]
) -> None:
    """Replace rows by their last point.

    Args:
        points: (list..., free dimensions...).
        where: the rows of the listed points.
        reduced: the axes of points that are merged.
    """
    for axis in reversed(reduced):
        points = points.take(-1, axis)
    if not len(points):
        return
    if not where:
        into[...] = points[-1]
        return
    latest = np.full(into.shape[: len(where)], -1)
    np.maximum.at(latest, tuple(where), np.arange(len(points)))
    touched = latest >= 0
    into[touched] = points[latest[touched]]
