"""Copies between the blocks of variables, as calls on fixed views; blocks and the host.

A copy gathers the owners' blocks into a dense staging tensor and applies the movement. It spreads
the result over the numerators that the receivers' windows reach, which is where padding and
divisions happen, and writes each shape class of windows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ...ir.geometry.blocks import (
    block_view,
    fill_of,
    owner_classes,
    placed_parts,
    window_view,
    windows_of,
)
from ...ir.geometry.grid import Cut, shape_classes
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import AccessMap, Space, identity_map
from ..codelets.calls import Array, Call, Scratch, coalesced, run_calls
from ..codelets.numerics import Placed
from ..codelets.ufuncs import fill_with

SHORT_RUN_BYTES = 128
"""Blocks whose runs in a dense tensor are shorter are assembled once, not once per replica."""


@dataclass(frozen=True)
class Blocks:
    """A variable in the memory of all tiles: the address of its blocks, and their layout."""

    placed: Placed
    layout: Layout

    def views(self) -> list[Array]:
        """The valid part of all blocks, by shape class: (parts of the class..., axes...)."""
        p = self.placed
        return [
            block_view(p.memory, p.address, self.layout, p.dtype, cls)
            for cls in shape_classes(self.layout.grid)
        ]


def dense_blocks(values: Array) -> Blocks:
    """A contiguous array as the only block of a single tile."""
    axes = tuple(range(values.ndim))
    layout = Layout(tuple(Cut(n) for n in values.shape), identity_map(axes, values.shape))
    return Blocks(Placed(values.reshape(-1).view(np.uint8)[None], 0, values.dtype), layout)


def write_blocks(values: Array, blocks: Blocks) -> None:
    """Fill every block, padding included, from a dense tensor of the same dtype."""
    for block, window in filling(values, blocks):
        np.copyto(block, window)


def filling(values: Array, blocks: Blocks, with_replicas: bool = True) -> list[tuple[Array, Array]]:
    """Pairs of a target and a source array: copying each fills the blocks from a dense tensor.

    Args:
        with_replicas: whether to include all replicas; if not, only the first.
    """
    layout, placed = blocks.layout, blocks.placed
    if 0 in (cut.size for cut in layout.grid):
        return []
    return placed_parts(values, placed.memory, placed.address, layout, with_replicas)


def read_blocks(blocks: Blocks) -> Array:
    """The tensor that blocks hold, in the layout's viewed shape.

    Blocks may overlap, unlike those of a copy's source. Elements that no block holds are 0.
    """
    layout, dtype = blocks.layout, blocks.placed.dtype
    dense = np.zeros(layout.shape, dtype)
    if dense.size == 0 or 0 in (cut.size for cut in layout.grid):
        return dense
    low, sizes, elements, numerators = _held(layout)
    spread = np.zeros(sizes, dtype)
    for window, block in _owned(blocks, spread, low):
        window[...] = block
    if holds_in_order(layout) and holds_all(layout):
        return spread
    dense[elements] = spread[numerators]
    return dense


def holds_all(layout: Layout) -> bool:
    """Whether blocks hold all elements of a tensor."""
    if 0 in layout.shape or 0 in (cut.size for cut in layout.grid):
        return 0 in layout.shape
    # If there are as many ascending elements as the tensor has, they are all of them, and slices.
    elements = _held(layout)[2]
    return all(
        isinstance(each, slice) and each == slice(0, n)
        for each, n in zip(elements, layout.shape, strict=True)
    )


def holds_in_order(layout: Layout) -> bool:
    """Whether the numerators that blocks reach are all elements of a tensor, in order."""
    reached = (layout.reachable(i) for i in range(len(layout.shape)))
    return all(span == (0, n - 1) for span, n in zip(reached, layout.shape, strict=True))


def holds_once(layout: Layout) -> bool:
    """Whether blocks hold each element of a tensor exactly once, and nothing else."""
    sizes = tuple(cut.size for cut in layout.grid)
    is_plain = all(axis.is_plain(sizes) for axis in layout.access.axes)
    return is_plain and not layout.replica_dims and layout.is_partition


_Index: TypeAlias = tuple[slice | Array, ...]


# Cached: training reads all weights after each step.
@lru_cache(maxsize=1024)
def _held(layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...], _Index, _Index]:
    """The elements of a tensor that blocks hold, along each axis.

    Returns the smallest numerators, the numbers of numerators, the index of the elements, and the
    index of their numerators.
    """
    spans = [layout.reachable(i) for i in range(len(layout.shape))]
    low = tuple(lo for lo, _ in spans)
    sizes = tuple(hi - lo + 1 for lo, hi in spans)
    found = [layout.held(i) for i in range(len(layout.shape))]
    index = [each for each, _ in found]
    held = [each - lo for (_, each), lo in zip(found, low, strict=True)]
    return low, sizes, _chosen(index), _chosen(held)


def only_element(blocks: Blocks) -> Array | None:
    """A view of a variable's single element; None if the tensor or its blocks have more."""
    layout, p = blocks.layout, blocks.placed
    if prod(layout.shape) != 1 or layout.block_elements != 1 or not layout.is_partition:
        return None
    (owner,) = owner_classes(layout)
    return block_view(p.memory, p.address, layout, p.dtype, owner)


def _chosen(index: Sequence[Array]) -> _Index:
    """The index that selects these elements: slices, which are faster, where possible.

    A wrapped axis may have its numerators in another order than its elements.
    """
    ranges = [
        slice(int(each[0]), int(each[-1]) + 1)
        for each in index
        if each.size and (np.diff(each) == 1).all()
    ]
    return tuple(ranges) if len(ranges) == len(index) else np.ix_(*index)


def _chosen_elements(into: Array, elements: _Index, spread: Array, numerators: _Index) -> None:
    into[elements] = spread[numerators]


def _owned(blocks: Blocks, spread: Array, low: tuple[int, ...]) -> list[tuple[Array, Array]]:
    """For each shape class, pairs of windows in an array of numerators and the first replicas'
    blocks.
    """
    layout, p = blocks.layout, blocks.placed
    return [
        (
            window_view(spread, low, layout, cls),
            block_view(p.memory, p.address, layout, p.dtype, cls),
        )
        for cls in owner_classes(layout)
    ]


def copy_blocks(sources: Sequence[Blocks], moves: Sequence[Space] | None, target: Blocks) -> None:
    """Copy once. The arguments are those of bind_copy."""
    run_calls(bind_copy(sources, moves, target, Scratch()))


def bind_copy(
    sources: Sequence[Blocks], moves: Sequence[Space] | None, target: Blocks, scratch: Scratch
) -> list[Call]:
    """The calls that fill a variable's blocks with the elements of others.

    Args:
        moves: one space per source. None takes the elements of the only source, row-major.
    """
    layout, dtype = target.layout, target.placed.dtype
    sizes = tuple(cut.size for cut in layout.grid)
    if 0 in sizes:
        return []
    if 0 in layout.shape:
        # There are no elements to copy, but cells beyond the ends get padding.
        fill = fill_of(layout.access.fill, dtype)
        return [(fill_with, (block, fill)) for block in target.views()]
    order = _staging_order(layout)
    spread = _Spread.of(layout.shape, layout.access, sizes, dtype, scratch, "copy", order)
    if moves is None:
        (source,) = sources
        gather = _bind_gather(source, spread.dense, scratch)
    else:
        gather = _bind_moves(sources, moves, spread.dense, scratch)
    return [*spread.before, *gather, *spread.after, *_bind_windows(spread, target, scratch)]


def _staging_order(layout: Layout) -> list[int]:
    """An order of a dense tensor's axes in which blocks have long contiguous runs.

    Axes along which a block has one element come first.
    """
    sizes = [
        max(run.size for run in runs) for runs in zip(*shape_classes(layout.grid), strict=True)
    ]
    return sorted(range(len(layout.shape)), key=lambda i: layout.window(i, tuple(sizes)) > 1)


@dataclass(frozen=True)
class _Spread:
    """A dense tensor that is spread over numerators.

    Attributes:
        dense: the array to write the tensor to.
        before: the calls to run before the tensor is written.
        after: the calls that spread it then.
        array: the numerators, of which the first is `origins`.
    """

    dense: Array
    before: list[Call]
    after: list[Call]
    array: Array
    origins: tuple[int, ...]

    @staticmethod
    def of(
        shape: tuple[int, ...],
        access: AccessMap,
        sizes: tuple[int, ...],
        dtype: np.dtype[Any],
        scratch: Scratch,
        purpose: str,
        order: Sequence[int],
    ) -> _Spread:
        def take_room(name: str, shape: Sequence[int]) -> Array:
            room = scratch.take(f"{purpose} {name}", [shape[i] for i in order], dtype)
            return room.transpose(np.argsort(order))

        spans = [axis.numerators(sizes) for axis in access.axes]
        origins = tuple(low for low, _ in spans)
        extent = tuple(high - low + 1 for low, high in spans)
        indices = [
            axis.resolve(np.arange(low, high + 1))
            for axis, (low, high) in zip(access.axes, spans, strict=True)
        ]
        regular = [_regular(index) for index in indices]
        fill = fill_of(access.fill, dtype)
        if all(r is not None for r in regular):
            known = [r for r in regular if r is not None]
            take, into = tuple(t for t, _ in known), tuple(i for _, i in known)
            lengths = tuple(t.stop - t.start for t in take)
            if lengths == extent:
                dense = take_room("dense", shape)
                return _Spread(dense, [], [], dense[(*take, ...)], origins)
            array = take_room("spread", extent)
            fills = _fill_around(array, into, fill)
            if lengths == shape:
                return _Spread(array[(*into, ...)], fills, [], array, origins)
            dense = take_room("dense", shape)
            spreading = scratch.copy_calls(array[(*into, ...)], dense[(*take, ...)])
            return _Spread(dense, [], [*fills, *spreading], array, origins)
        dense = current = scratch.take(f"{purpose} dense", shape, dtype)
        calls: list[Call] = []
        for i, index in enumerate(indices):
            taken = scratch.take(f"{purpose} axis {i}", (*extent[: i + 1], *shape[i + 1 :]), dtype)
            calls.append((_take, (current, index, i, fill, taken)))
            current = taken
        return _Spread(dense, [], calls, current, origins)


def _regular(index: Array) -> tuple[slice, slice] | None:
    """A slice of elements and the slice of numerators that reach them; None if either is no
    slice."""
    where = np.flatnonzero(index >= 0)
    if len(where) == 0:
        return slice(0, 0), slice(0, 0)
    step = int(where[1] - where[0]) if len(where) > 1 else 1
    if not ((np.diff(where) == step).all() and (np.diff(index[where]) == 1).all()):
        return None
    first, last = int(index[where[0]]), int(index[where[-1]])
    return slice(first, last + 1), slice(int(where[0]), int(where[-1]) + 1, step)


def _fill_around(array: Array, into: tuple[slice, ...], fill: Any) -> list[Call]:
    """The calls that fill an array outside a region: slab by slab, or everywhere if the region has
    holes.
    """
    if any((s.step or 1) > 1 for s in into) or 0 in array[(*into, ...)].shape:
        return [(fill_with, (array, fill))]
    calls: list[Call] = []
    rest: tuple[slice, ...] = ()
    for s, n in zip(into, array.shape, strict=True):
        for slab in (slice(0, s.start), slice(s.stop, n)):
            if slab.start < slab.stop:
                calls.append((fill_with, (array[(*rest, slab)], fill)))
        rest = (*rest, s)
    return calls


def _take(source: Array, index: Array, axis: int, fill: Any, out: Array) -> None:
    if source.size == 0:
        # NumPy takes nothing from an empty axis, even if every index is replaced.
        out.fill(fill)
        return
    np.take(source, np.maximum(index, 0), axis, out, "clip")
    np.moveaxis(out, axis, 0)[index < 0] = fill


def _viewed(array: Array, shape: tuple[int, ...]) -> Array | None:
    """The array viewed in another shape; None if that needs a copy."""
    if array.shape == shape:
        return array
    try:
        return np.reshape(array, shape, copy=False)
    except ValueError:
        return None


def _bind_gather(source: Blocks, dense: Array, scratch: Scratch) -> list[Call]:
    """The calls that put a variable's elements, row-major, into an array."""
    layout, dtype = source.layout, source.placed.dtype
    shape = layout.shape
    after: list[Call] = []
    into = _viewed(dense, shape)
    if into is None:
        into = scratch.take("gather", shape, dtype)
        after += scratch.copy_calls(dense, into.reshape(dense.shape))
    low, sizes, elements, numerators = _held(layout)
    spread = into
    if not holds_in_order(layout):
        # A wrapped axis: a block may begin anywhere, and continues with the first element after the
        # last.
        spread = scratch.take("gather spread", sizes, dtype)
        if all(isinstance(each, slice) for each in (*elements, *numerators)):
            found = scratch.copy_calls(into[elements], spread[numerators])
        else:
            found = [(_chosen_elements, (into, elements, spread, numerators))]
        after = [*found, *after]
    calls: list[Call] = []
    for window, block in _owned(source, spread, low):
        calls += scratch.copy_calls(window, block)
    return calls + after


def _bind_moves(
    sources: Sequence[Blocks], moves: Sequence[Space], dense: Array, scratch: Scratch
) -> list[Call]:
    """The calls that put several tensors, each through its move, into an array."""
    shape = moves[0].results[0].shape
    calls: list[Call] = []
    into = _viewed(dense, shape)
    staged = into is None
    if into is None:
        into = scratch.take("moved", shape, dense.dtype)
    for source, space in zip(sources, moves, strict=True):
        (operand,), (result,) = space.operands, space.results
        if 0 in space.sizes:
            continue
        spread = _Spread.of(
            operand.shape,
            operand,
            space.sizes,
            source.placed.dtype,
            scratch,
            "move",
            range(len(operand.shape)),
        )
        calls += [*spread.before, *_bind_gather(source, spread.dense, scratch), *spread.after]
        points = windows_of(spread.array, spread.origins, operand, len(space.dims), space.sizes)
        order = [axis.terms[0][0] for axis in result.axes if axis.terms]
        order += [d for d in range(len(space.dims)) if d not in order]
        piece = points.transpose(order).reshape(
            [space.sizes[axis.terms[0][0]] if axis.terms else 1 for axis in result.axes]
        )
        region = tuple(
            slice(axis.offset, axis.offset + n)
            for axis, n in zip(result.axes, piece.shape, strict=True)
        )
        calls += scratch.copy_calls(into[(*region, ...)], piece)
    if staged:
        calls += scratch.copy_calls(dense, into.reshape(dense.shape))
    return calls


def _bind_windows(spread: _Spread, target: Blocks, scratch: Scratch) -> list[Call]:
    """The calls that write every block of a variable from an array of numerators."""
    layout, p = target.layout, target.placed
    calls: list[Call] = []
    for cls in shape_classes(layout.grid):
        block = block_view(p.memory, p.address, layout, p.dtype, cls)
        window = window_view(spread.array, spread.origins, layout, cls)
        if block.size == 0:
            continue
        window, block = coalesced(window, block)
        copies = [d for d, step in enumerate(window.strides) if step == 0 and window.shape[d] > 1]
        is_short = _run_bytes(window, block) < SHORT_RUN_BYTES
        if copies and scratch.packs_short_runs and is_short:
            first = [slice(0, 1) if d in copies else slice(None) for d in range(window.ndim)]
            once = window[(*first, ...)]
            packed = scratch.take("windows", once.shape, p.dtype)
            calls += scratch.copy_calls(packed, once)
            window = np.broadcast_to(packed, window.shape)
        calls += scratch.copy_calls(block, window)
    return calls


def _run_bytes(window: Array, block: Array) -> int:
    """The bytes of a run that is contiguous in both of two coalesced arrays."""
    if window.ndim == 0:
        return window.itemsize
    if window.strides[-1] != window.itemsize or block.strides[-1] != block.itemsize:
        return window.itemsize
    return window.shape[-1] * window.itemsize


def tensor_of(values: Array, shape: Sequence[int]) -> Array:
    """A copy of an array in the tensor's own shape."""
    return np.array(values.reshape(shape) if prod(shape) else np.empty(shape, values.dtype))
