"""Strided views of blocks in the memory of all tiles, and bulk moves to and from dense tensors.

Memory is uint8[tiles, row bytes]. A variable is an address, a layout and a dtype. Loops in this
file run over the few shape classes of a grid, never over tiles or elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.arrays import Array
from ..support.number_kinds import is_whole, whole_limits
from ..support.strided import as_strided
from .grid import Run, shape_classes
from .layout import Layout
from .space import AccessMap, AxisMap, Dim, Space, identity_map

Memory = NDArray[np.uint8]

SMALL_BYTES = 1 << 20
"""A tensor of at most this many bytes is spread over all numerators in one step."""


def fill_of(fill: float, dtype: np.dtype[Any]) -> Any:
    """The fill value in a dtype. An integer dtype drops the fraction and clamps to its range."""
    if is_whole(dtype):
        limits = whole_limits(dtype)
        return dtype.type(int(min(max(fill, limits.min), limits.max)))
    if dtype.kind == "b":
        return dtype.type(fill > 0)
    return dtype.type(fill)


def _view(
    memory: Memory,
    address: int,
    layout: Layout,
    dtype: np.dtype[Any],
    cls: tuple[Run, ...],
    inner: tuple[tuple[int, int], ...],
    origin: int,
) -> Array:
    row = memory.strides[0]
    cell = sum(run.first * weight for run, weight in zip(cls, layout.weights, strict=True))
    return np.ndarray(
        tuple(run.count for run in cls) + tuple(n for n, _ in inner),
        dtype,
        memory,
        layout.tiles.of(cell) * row + address + origin * dtype.itemsize,
        tuple(row * w for w in layout.tiles.weights) + tuple(s * dtype.itemsize for _, s in inner),
    )


def block_view(
    memory: Memory, address: int, layout: Layout, dtype: np.dtype[Any], cls: tuple[Run, ...]
) -> Array:
    """The valid part of the blocks of one shape class: (parts of the class..., axes...)."""
    sizes = tuple(run.size for run in cls)
    inner = tuple((layout.window(i, sizes), stride) for i, stride in enumerate(layout.strides))
    return _view(memory, address, layout, dtype, cls, inner, 0)


def iteration_view(
    memory: Memory, address: int, layout: Layout, dtype: np.dtype[Any], cls: tuple[Run, ...]
) -> Array:
    """An operand's blocks seen from the iteration dimensions: (parts..., dimensions...).

    Args:
        layout: a raw layout, with every dimension of the space in placement order. Dimensions that
            the operand does not have get stride 0.
    """
    origin = 0
    steps: list[int] = [0] * len(cls)
    for axis, step, stride in zip(layout.access.axes, layout.steps, layout.strides, strict=True):
        for d, a in axis.terms:
            steps[d] += a * stride // step
            if a < 0:
                # An empty dimension is never read, so its start does not matter.
                origin += -a * max(cls[d].size - 1, 0) * stride // step
    inner = tuple((run.size, steps[d]) for d, run in enumerate(cls))
    return _view(memory, address, layout, dtype, cls, inner, origin)


def window_view(
    dense: Array, origins: tuple[int, ...], layout: Layout, cls: tuple[Run, ...]
) -> Array:
    """The elements of a dense array of numerators that the blocks of one shape class hold.

    Returns a view of shape (parts of the class..., axes...), which overlaps where the blocks do.

    Args:
        dense: one axis for each axis of the layout; index 0 is numerator origins[axis].
    """
    sizes = tuple(run.size for run in cls)
    first: list[slice] = []
    steps = [0] * len(cls)
    inner: list[tuple[int, int]] = []
    for i, axis in enumerate(layout.access.axes):
        stride = dense.strides[i]
        start = axis.offset - origins[i]
        for d, a in axis.terms:
            run = cls[d]
            start += a * (run.start if a > 0 else run.start + run.size - 1)
            steps[d] += a * run.size * stride
        first.append(slice(start, start + 1))
        inner.append((layout.window(i, sizes), layout.steps[i] * stride))
    return as_strided(
        dense[(*first, ...)],
        tuple(run.count for run in cls) + tuple(n for n, _ in inner),
        tuple(steps) + tuple(s for _, s in inner),
    )


def numerators(
    dense: Array, access: AccessMap, sizes: tuple[int, ...]
) -> tuple[Array, tuple[int, ...]]:
    """A tensor spread over the numerators that a map reaches, with division, padding and edges
    applied.

    Returns the spread array, and the numerator of its first element on each axis. The array is a
    view if the map reaches plain indices only.

    Args:
        dense: the tensor, in the map's viewed shape.
        sizes: of the dimensions, all at least 1.
    """
    return _spread(dense, access, [axis.numerators(sizes) for axis in access.axes])


def _spread(
    dense: Array, access: AccessMap, spans: list[tuple[int, int]]
) -> tuple[Array, tuple[int, ...]]:
    """A tensor spread over a span of numerators on each axis, both ends included.

    Returns the same as `numerators`.
    """
    origins = tuple(low for low, _ in spans)
    shape = tuple(high - low + 1 for low, high in spans)
    take: list[slice] = []
    into: list[slice] = []
    fill = fill_of(access.fill, dense.dtype)
    for i, (axis, (low, high)) in enumerate(zip(access.axes, spans, strict=True)):
        if axis.divisor == 1 and 0 <= low <= high < axis.size:
            take.append(slice(low, high + 1))
            into.append(slice(None))
            continue
        index = axis.resolve(np.arange(low, high + 1))
        where = np.flatnonzero(index >= 0)
        step = int(where[1] - where[0]) if len(where) > 1 else 1
        if len(where) and not (
            (np.diff(where) == step).all() and (np.diff(index[where]) == 1).all()
        ):
            dense = np.take(dense, np.maximum(index, 0), axis=i)
            np.moveaxis(dense, i, 0)[index < 0] = fill
            index = np.arange(high - low + 1)
            where, step = index, 1
        if len(where) == 0:
            return np.full(shape, fill, dense.dtype), origins
        take.append(slice(int(index[where[0]]), int(index[where[-1]]) + 1))
        into.append(slice(int(where[0]), int(where[-1]) + 1, step))
    taken = dense[(*take, ...)]
    if taken.shape == shape:
        return taken, origins
    spread = np.full(shape, fill, dense.dtype)
    spread[(*into, ...)] = taken
    return spread, origins


def windows_of(
    dense: Array, origins: tuple[int, ...], access: AccessMap, rank: int, sizes: tuple[int, ...]
) -> Array:
    """A view of an array of numerators from all dimensions at once, of shape sizes.

    Dimensions that the map does not name get stride 0.
    """
    first: list[slice] = []
    steps = [0] * rank
    for i, axis in enumerate(access.axes):
        start = axis.offset - origins[i]
        for d, a in axis.terms:
            steps[d] += a * dense.strides[i]
        first.append(slice(start, start + 1))
    return as_strided(dense[(*first, ...)], sizes, tuple(steps))


def owner_classes(layout: Layout) -> list[tuple[Run, ...]]:
    """The shape classes of the cells that a copy reads from: the first replicas only."""
    replica = set(layout.replica_dims)
    return [
        tuple(Run(0, 1, run.start, run.size) if d in replica else run for d, run in enumerate(cls))
        for cls in shape_classes(layout.grid)
        if not any(cls[d].first for d in replica)
    ]


def gather(memory: Memory, address: int, layout: Layout, dtype: np.dtype[Any]) -> Array:
    """The dense tensor that the blocks hold, in the layout's viewed shape.

    Elements that several cells hold come from the first replica. The layout must be a
    partition. Elements that no block holds are left unset.
    """
    sizes = tuple(cut.size for cut in layout.grid)
    spans = [axis.numerators(sizes) for axis in layout.access.axes]
    low = tuple(lo for lo, _ in spans)
    spread = np.empty([hi - lo + 1 for lo, hi in spans], dtype)
    for cls in owner_classes(layout):
        window_view(spread, low, layout, cls)[...] = block_view(memory, address, layout, dtype, cls)
    for i, lo in enumerate(low):
        # A wrapped axis: a block may begin anywhere, and continues with the first element after the
        # last.
        spread = spread.take(layout.held(i)[1] - lo, axis=i)
    return spread


def placed_parts(
    dense: Array,
    memory: Memory,
    address: int,
    layout: Layout,
    with_replicas: bool = True,
) -> list[tuple[Array, Array]]:
    """The blocks of a layout, each with the part of a dense tensor that belongs there.

    Both arrays of a pair have the same shape, padding included. This function writes nothing.

    Args:
        with_replicas: if False, only the blocks of the first replica.
    """
    dense, access = dense.reshape(layout.shape), layout.access
    classes = shape_classes(layout.grid) if with_replicas else owner_classes(layout)
    whole = [axis.numerators(tuple(cut.size for cut in layout.grid)) for axis in access.axes]
    groups = [(whole, classes)]
    if dense.nbytes > SMALL_BYTES:
        parts = [part for cls in classes for part in _by_edges(access, cls)]
        groups = [([_span(axis, part) for axis in access.axes], [part]) for part in parts]
    found: list[tuple[Array, Array]] = []
    for spans, parts in groups:
        spread, origins = _spread(dense, access, spans)
        found += [
            (
                block_view(memory, address, layout, dense.dtype, part),
                window_view(spread, origins, layout, part),
            )
            for part in parts
        ]
    return found


def _span(axis: AxisMap, cls: Sequence[Run]) -> tuple[int, int]:
    """The smallest and largest numerator that the cells of a shape class reach along an axis."""
    low = high = axis.offset
    for d, coefficient in axis.terms:
        run = cls[d]
        ends = (coefficient * run.start, coefficient * (run.start + run.count * run.size - 1))
        low, high = low + min(ends), high + max(ends)
    return low, high


def _by_edges(access: AccessMap, cls: tuple[Run, ...]) -> Iterator[tuple[Run, ...]]:
    """Split a shape class so that most cells lie inside the tensor.

    The blocks of cells inside are a view of the tensor. Only a few cells reach over its edges.
    """
    return product(*(_runs_by_edges(access, cls, d) for d in range(len(cls))))


def _runs_by_edges(access: AccessMap, cls: tuple[Run, ...], d: int) -> list[Run]:
    """The run of one dimension, split into cells before, inside and after the tensor.

    The split holds for any index of the other dimensions.
    """
    run = cls[d]
    first = (*cls[:d], replace(run, count=1), *cls[d + 1 :])
    is_inside = np.ones(run.count, bool)
    for axis in access.axes:
        low, high = _span(axis, first)
        for coefficient in (c for dim, c in axis.terms if dim == d):
            moved_by = coefficient * run.size * np.arange(run.count)
            is_inside &= (low + moved_by >= 0) & (high + moved_by < axis.size * axis.divisor)
    edges = np.flatnonzero(np.diff(is_inside)) + 1
    ends = [0, *edges.tolist(), run.count]
    return [
        Run(run.first + begin, end - begin, run.start + begin * run.size, run.size)
        for begin, end in pairwise(ends)
    ]


def scatter(dense: Array, memory: Memory, address: int, layout: Layout) -> None:
    """Write a dense tensor into the blocks of a layout, padding included."""
    for block, window in placed_parts(dense, memory, address, layout):
        block[...] = window


def moved(sources: tuple[Array, ...], moves: tuple[Space, ...]) -> Array:
    """The tensor assembled from several sources, each moved by a space with one operand and one
    result.

    Returns an array of the moves' common result shape. It is a view of the source if one move
    covers all of it.
    """
    result: Array | None = None
    for source, space in zip(sources, moves, strict=True):
        piece, region = moved_piece(source, space)
        shape = space.results[0].shape
        if piece.shape == shape:
            result = piece
            continue
        if result is None:
            result = np.empty(shape, source.dtype)
        result[region] = piece
    if result is None:
        raise ValueError("a move of no tensors")
    return result


def moved_piece(source: Array, space: Space) -> tuple[Array, tuple[slice, ...]]:
    """The elements that a move takes from its source, and the region of the result that they fill.

    Returns an array of the region's shape, which may be a view of the source.
    """
    (operand,), (target,) = space.operands, space.results
    spread, origins = numerators(source.reshape(operand.shape), operand, space.sizes)
    points = windows_of(spread, origins, operand, len(space.dims), space.sizes)
    order = [axis.terms[0][0] for axis in target.axes if axis.terms]
    order += [d for d in range(len(space.dims)) if d not in order]
    shape = [space.sizes[axis.terms[0][0]] if axis.terms else 1 for axis in target.axes]
    region = tuple(
        slice(axis.offset, axis.offset + n) for axis, n in zip(target.axes, shape, strict=True)
    )
    return points.transpose(order).reshape(shape), region


def plain_move(shape: tuple[int, ...]) -> Space:
    """The move that changes nothing."""
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(shape))
    access = identity_map(tuple(range(len(shape))), shape)
    return Space(dims, (access,), (access,))
