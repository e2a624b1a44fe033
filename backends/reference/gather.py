"""The elements that an access map reads, found with explicit index arrays.

This is slow and simple on purpose. No code is shared with the codelets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.geometry.space import AccessMap, AxisMap
from ...ir.support.arrays import Array
from ...ir.support.number_kinds import is_whole, whole_limits

Indices = NDArray[np.int64]

Box = tuple[tuple[int, int], ...]
"""For each dimension, the first point and one past the last point."""


def whole_box(sizes: Sequence[int]) -> Box:
    """The box of all points."""
    return tuple((0, n) for n in sizes)


def boxes(sizes: Sequence[int], groups: Sequence[Sequence[int]], elements: int) -> Iterator[Box]:
    """Boxes that cover all points, in which no group of dimensions has more than `elements` points.

    Dimensions are halved, so that boxes are within a factor of two of the largest possible.

    Args:
        groups: lists of dimensions, each in the order in which to cut them.
    """
    tile = list(sizes)
    for group in groups:
        while prod(tile[d] for d in group) > elements:
            longest = next((d for d in group if tile[d] > 1), None)
            if longest is None:
                break
            tile[longest] = (tile[longest] + 1) // 2
    steps = [range(0, n, max(t, 1)) for n, t in zip(sizes, tile, strict=True)]
    for starts in product(*steps):
        yield tuple((s, min(s + t, n)) for s, t, n in zip(starts, tile, sizes, strict=True))


def fill_value(fill: float, dtype: np.dtype[Any]) -> float | int | bool:
    """The value of an element outside a tensor; for integers, an infinity becomes the limit of the
    dtype.
    """
    if dtype.kind == "b":
        return fill > 0
    if is_whole(dtype):
        limits = whole_limits(dtype)
        return int(min(max(fill, limits.min), limits.max))
    return fill


def gathered(tensor: Array, access: AccessMap, box: Box) -> Array:
    """The elements that a map reads at the points of a box, with one axis per dimension.

    Dimensions that the map does not name have length 1. The result may be the tensor itself or a
    view of it, so callers must not write to it.

    Args:
        tensor: in the map's viewed shape.
    """
    way = _way(access, box)
    if 0 in tensor.shape or 0 in way.shape:
        return np.full(way.shape, fill_value(access.fill, tensor.dtype), tensor.dtype)
    if way.is_all:
        return tensor
    if way.spread is None:
        return _by_points(tensor, access, box)
    tensor = tensor[way.index]
    indices = {i: _indices(access.axes[i], box).ravel() for i in way.scattered}
    # Read the axes that shrink the tensor first.
    for i in sorted(indices, key=lambda i: len(indices[i]) / tensor.shape[i]):
        tensor = _taken(tensor, i, indices[i], fill_value(access.fill, tensor.dtype))
    return tensor.reshape(way.spread).transpose(way.turn).reshape(way.shape)


@dataclass(frozen=True)
class _Way:
    """The way in which a map reads a box, independent of the tensor.

    Attributes:
        shape: of the result, one axis per dimension.
        index: a slice for each axis that is read element after element, and the full slice for the
            others.
        scattered: those others.
        spread: one size per dimension that the axes name, in their order; None if two axes name the
            same dimension.
        turn: the positions of the dimensions in spread, in ascending order of the dimensions.
        is_all: whether the map reads the whole tensor as it is.
    """

    shape: tuple[int, ...]
    index: tuple[Any, ...]
    scattered: tuple[int, ...]
    spread: tuple[int, ...] | None
    turn: tuple[int, ...]
    is_all: bool


@lru_cache(maxsize=4096)
def _way(access: AccessMap, box: Box) -> _Way:
    order = tuple(d for axis in access.axes for d in sorted({d for d, _ in axis.terms}))
    shape = tuple(b - a if d in order else 1 for d, (a, b) in enumerate(box))
    plain = [_plain(axis, box) for axis in access.axes]
    # The ellipsis keeps arrays of rank 0 arrays.
    index = (*(each or slice(None) for each in plain), ...)
    scattered = tuple(i for i, each in enumerate(plain) if each is None)
    spread = tuple(shape[d] for d in order) if len(order) == len(set(order)) else None
    turn = tuple(map(order.index, sorted(order)))
    is_all = (
        not scattered
        and shape == access.shape
        and turn == tuple(range(len(turn)))
        and all(part == slice(0, n) for part, n in zip(plain, shape, strict=True))
    )
    return _Way(shape, index, scattered, spread, turn, is_all)


def _plain(axis: AxisMap, box: Box) -> slice | None:
    """The slice that an axis reads; None unless it is contiguous and inside the tensor."""
    first, count = axis.offset, 1
    if axis.divisor != 1 or len(axis.terms) > 1:
        return None
    for d, coefficient in axis.terms:
        if coefficient != 1:
            return None
        first, count = first + box[d][0], box[d][1] - box[d][0]
    return slice(first, first + count) if 0 <= first <= axis.size - count else None


def _indices(axis: AxisMap, box: Box) -> Indices:
    """The indices that an axis reads, with one array axis per dimension that it names."""
    dims = sorted({d for d, _ in axis.terms})
    numerators = np.full([1] * len(dims), axis.offset, np.int64)
    for d, coefficient in axis.terms:
        points = np.arange(*box[d], dtype=np.int64)
        along = [-1 if e == d else 1 for e in dims]
        numerators = numerators + coefficient * points.reshape(along)
    return axis.resolve(numerators)


def _taken(tensor: Array, axis: int, index: Indices, fill: float | int | bool) -> Array:
    missing = index < 0
    result = np.take(tensor, np.maximum(index, 0), axis=axis, mode="clip")
    if missing.any():
        result[(slice(None),) * axis + (missing,)] = fill
    return result


def _by_points(tensor: Array, access: AccessMap, box: Box) -> Array:
    """Like gathered, for maps that name a dimension in several axes."""
    rank = len(box)
    indices: list[Indices] = []
    missing = np.zeros([1] * rank, bool)
    for axis in access.axes:
        dims = {d for d, _ in axis.terms}
        shape = [box[d][1] - box[d][0] if d in dims else 1 for d in range(rank)]
        index = _indices(axis, box).reshape(shape)
        missing = missing | (index < 0)
        indices.append(np.maximum(index, 0))
    points = tensor[tuple(indices)]
    fill = np.asarray(fill_value(access.fill, tensor.dtype)).astype(tensor.dtype)
    return np.where(missing, fill, points)
