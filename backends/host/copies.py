"""Copies as compiled calls: from tile to tile along routes, else from array to array."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Space
from ..codelets.calls import Array, Call, Scratch, address, coalesced
from ..codelets.stamps import Table
from ..evaluate import blocks as plain
from ..evaluate.blocks import Blocks
from .calls import KernelCall, even_cuts
from .kernels.tables import COPY_CODE, COPY_HEAD, COPY_SOURCE, COPY_TARGET, RUNS, WORDS
from .load import has_kernels, kernels
from .routes import bind_routes, has_routes

UNITS = (1, 2, 4, 8)
"""Sizes of elements, in bytes, that can be copied one by one."""

LONGEST_VECTOR_BYTES = 64
"""The longest run that is copied as a vector. Longer runs are copied as bytes."""

SHARED_BYTES, MOST_PIECES = 1 << 17, 32
"""A copy of at least SHARED_BYTES is cut into at most MOST_PIECES pieces."""

BYTES_PER_NANOSECOND = 4.0
"""A rough estimate of how fast an array is copied."""

MOST_ROUTED = 1 << 24
"""Elements of the largest tensor whose runs are listed. For a larger tensor, the lists may take
several times the bytes that are moved, and minutes to make. It is staged instead, which takes as
many bytes as the tensor.
"""


class HostScratch(Scratch):
    """Scratch whose copies are compiled calls, where the kernel can make them."""

    packs_short_runs = False

    def copy_calls(self, target: Array, source: Array) -> list[Call]:
        """The calls that copy one array into another of its shape and dtype, bit for bit."""
        if target.size and has_kernels("copies"):
            found, into = coalesced(source, target)
            call = copy_call(into, found)
            if call is not None:
                return [(call, ())]
        return super().copy_calls(target, source)


def bind_copy(
    sources: Sequence[Blocks],
    moves: Sequence[Space] | None,
    target: Blocks,
    scratch: Scratch,
    with_replicas: bool = True,
) -> list[Call]:
    """Like evaluate.blocks.bind_copy, along routes where they exist.

    Args:
        with_replicas: False if only the first replicas are ever read.
    """
    if _may_be_routed(target.layout):
        routes = bind_routes(
            [(s.placed, s.layout) for s in sources],
            moves,
            (target.placed, target.layout),
            with_replicas,
        )
        if routes is not None:
            return routes
    return plain.bind_copy(sources, moves, target, scratch)


def is_routed(sources: Sequence[Blocks], moves: Sequence[Space] | None, target: Blocks) -> bool:
    """Whether a copy takes routes."""
    return _may_be_routed(target.layout) and has_routes(
        [(s.placed, s.layout) for s in sources], moves, (target.placed, target.layout)
    )


def _may_be_routed(layout: Layout) -> bool:
    """Whether there are kernels, and a target is neither empty nor too large to list its runs."""
    is_empty = 0 in layout.shape or 0 in (cut.size for cut in layout.grid)
    return not is_empty and prod(layout.shape) <= MOST_ROUTED and has_kernels("routes")


def copy_call(target: Array, source: Array) -> KernelCall | None:
    """The call that copies an array into another of its shape and dtype.

    None if the kernel does not know the size of an element. Both arrays are coalesced, in the order
    of the target's bytes. Dimensions along which the source repeats are replicas: a block is
    assembled once and copied to all of them while it is in the cache.
    """
    unit = target.itemsize
    dims = [(n, s, t) for n, s, t in zip(target.shape, source.strides, target.strides, strict=True)]
    run, kind = unit, unit
    if dims and dims[-1][1:] == (unit, unit):
        run = dims.pop()[0] * unit
        kind = RUNS if run % 4 or run > LONGEST_VECTOR_BYTES else WORDS
        kind = run if run in UNITS else kind
    elif unit not in UNITS:
        return None
    replicas = [dim for dim in dims if dim[1] == 0]
    replica, room = -1, 0
    if replicas:
        nearest = min(t for _, _, t in replicas)
        inner = [dim for dim in dims if dim[1] and dim[2] < nearest]
        outer = [dim for dim in dims if dim[1] and dim[2] >= nearest]
        dims = [*outer, *replicas, *inner]
        length = run
        for n, _, t in reversed(inner):
            if t != length:
                break
            length *= n
        else:
            replica = len(outer)
            room = length
    if replica < 0:
        dims = _ordered(dims)
    compiled = kernels("copies")
    sizes, steps, strides = ([dim[i] for dim in dims] for i in range(3))
    head = [len(dims), run, replica, compiled.COPY_RUNS, address(source), address(target), kind]
    pieces = _pieces(sizes, target.nbytes)
    table = np.array([*head, *sizes, *steps, *strides, *(0 for _ in dims)], np.int64)
    tables = np.tile(table, (len(pieces), 1))
    if len(pieces) > 1:
        first, end = pieces.T
        tables[:, COPY_HEAD] = end - first
        tables[:, COPY_SOURCE] += first * steps[0]
        tables[:, COPY_TARGET] += first * strides[0]
    nanoseconds = target.nbytes / BYTES_PER_NANOSECOND
    cuts = even_cuts(len(pieces), nanoseconds)
    pointers = [tables[:, each] for each in (COPY_CODE, COPY_SOURCE, COPY_TARGET)]
    return KernelCall(compiled.COPY, tables, cuts, (target, source), room, pointers)


def _pieces(sizes: Sequence[int], size: int) -> Table:
    """The pieces of the slowest dimension that threads may copy: the first index and the end of
    each.
    """
    if not sizes or size < SHARED_BYTES:
        return np.array([[0, sizes[0] if sizes else 1]], np.int64)
    count = min(MOST_PIECES, sizes[0])
    edges = np.arange(count + 1, dtype=np.int64) * sizes[0] // count
    return np.stack([edges[:-1], edges[1:]], axis=1)


def _ordered(dims: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Dimensions in an order that walks large strides on either side least often."""
    return sorted(dims, key=lambda dim: -max(abs(dim[1]), abs(dim[2])))
