"""Reduce-scatter: partials are merged in place and then scattered, instead of gathered and merged.

The machine brings all partials of an element to one tile, which merges them. Here, blocks of the
same elements are merged where they are, in the same order, and their totals are copied to the place
of the first gathered partial. So a fraction of the bytes moves, in long runs. The rest of the
variable into which partials are gathered is not written, because no other operation reads it.

    gather:  tile 0: a0 a1 | b0 b1    tile 1: a2 a3 | b2 b3    partials a, b of elements 0..3
    here:    s = a + b in place of a, tile 0: s0 s1 | -- --    tile 1: s2 s3 | -- --
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ...dialects.abele import Plan
from ...dialects.steps import Copy, Vertices
from ...dialects.structured import Structure
from ...ir.geometry.grid import Cut, shape_classes
from ...ir.geometry.layout import Layout, placement_order, raw_layout
from ...ir.geometry.space import AccessMap, AxisMap
from ..codelets.calls import BYTE, Call, Scratch, address
from ..codelets.numerics import Placed
from ..codelets.reduction import is_walked
from ..evaluate.blocks import Blocks
from .bound_products import Partials, Products
from .chains import MERGES, merge_call
from .copies import bind_copy
from .load import has_kernels
from .vertices import BoundVertices, bind_vertices

FLOAT32 = np.dtype(np.float32)
"""The dtype of partials that are merged in place. Narrower ones would be rounded in between."""

ROW_BYTES = 64
"""Merged blocks begin at multiples of this, in bytes."""


def bind_reduce_scatter(
    move: Copy,
    vertices: Vertices,
    blocks: Mapping[str, Blocks],
    scratch: Scratch,
    writers: Sequence[Call] = (),
    equal: Collection[int] = (),
) -> tuple[list[Call], BoundVertices] | None:
    """The calls of a move, which merge partials, and those of the vertices that read its result.

    None if the two operations do something else, or do not merge in the order of the blocks.

    Args:
        move: copies a variable unchanged to the first operand of the vertices, which is its only
            reader.
        writers: the calls that write the partials, if only this move reads them. If they are sums
            of products, they add up all partials in the first one from now on, and the move reads
            that.
        equal: as for bind_vertices.
    """
    partials, gathered = blocks[move.sources[0]], blocks[move.destination]
    structure, plan = vertices.structure(), vertices.plan.data
    is_plain = len(vertices.destinations) == 1 and vertices.generators is None
    merged = _merged(structure, plan) if is_plain else None
    if merged is None or {partials.placed.dtype, gathered.placed.dtype} != {FLOAT32}:
        return None
    source_layout, target_layout = partials.layout, gathered.layout
    axes = [axis for _, axis in merged]
    sizes = [structure.space.dims[d].size for d, _ in merged]
    if source_layout.shape != target_layout.shape or source_layout.apart or target_layout.apart:
        return None
    if source_layout.replica_dims or not source_layout.is_partition:
        return None
    many, merged_in = _dims_of(source_layout, axes, sizes), _dims_of(target_layout, axes, sizes)
    if many is None or merged_in is None:
        return None
    if any(source_layout.parts[d] != n for d, n in zip(many, sizes, strict=True)):
        return None
    # The first partial is at the beginning of a block.
    if any(n > 1 for i, n in enumerate(target_layout.box[: max(axes)]) if i not in axes):
        return None
    dims = tuple(zip((source_layout.weights[d] for d in many), sizes, strict=True))
    calls: list[Call] = []
    if structure.body.combiner == "sum" and _adds_up(writers, partials, dims):
        # To the copy, the other partials look like replicas of the first.
        one = replace(source_layout, access=_once(source_layout.access, axes))
        source = replace(partials, layout=one)
    elif not has_kernels("chains"):
        return None
    else:
        once = Layout(_cut_once(source_layout, many), _once(source_layout.access, axes))
        source = Blocks(_room(once, scratch), once)
        calls.append(_merge_call(structure, partials, source, dims))
    grid, access = _cut_once(target_layout, merged_in), _once(target_layout.access, axes)
    first = Layout(grid, access, target_layout.first_tile, target_layout.apart)
    calls += bind_copy([source], None, replace(gathered, layout=first), scratch)
    operands = [blocks[name].placed for name in vertices.sources]
    result = blocks[vertices.destination].placed
    single = _of_one_partial(structure, merged)
    return calls, bind_vertices(single, plan, operands, result, scratch, equal=equal)


def _of_one_partial(structure: Structure, merged: Sequence[tuple[int, int]]) -> Structure:
    """The structure of a merge of partials, reduced to a single partial."""
    dims, axes = zip(*merged, strict=True)
    space = structure.space
    sizes = (1 if d in dims else dim.size for d, dim in enumerate(space.dims))
    return replace(
        structure,
        space=replace(
            space,
            dims=tuple(replace(dim, size=n) for dim, n in zip(space.dims, sizes, strict=True)),
            operands=(_once(space.operands[0], axes), *space.operands[1:]),
        ),
    )


def _adds_up(writers: Sequence[Call], partials: Blocks, dims: tuple[tuple[int, int], ...]) -> bool:
    """Make the writers of partials add them up; returns False, without a change, if they cannot."""
    layout, memory = partials.layout, partials.placed.memory
    begin = address(memory[layout.first_tile, partials.placed.address :])
    where = Partials(begin, memory.strides[0], dims)
    products = [call for call, _ in writers if isinstance(call, Products)]
    if not products or len(products) < len(writers):
        return False
    if not all(p.can_add_up(where) for p in products):
        return False
    for each in products:
        each.add_up(where)
    return True


def _merged(structure: Structure, plan: Plan) -> list[tuple[int, int]] | None:
    """The merged dimensions, slowest first, each with its axis of the first operand.

    None unless all are walked point by point, each along a separate axis.
    """
    space, body = structure.space, structure.body
    if body.function != "identity" or body.combiner not in MERGES or structure.space.relations:
        return None
    grid = raw_layout(space.dims, space.results[0], plan.split, plan.order).grid
    order = placement_order(len(space.dims), plan.order)
    reduced = [space.dims[d].kind != "parallel" for d in order]
    if any(cut.parts > 1 for cut, is_merged in zip(grid, reduced, strict=True) if is_merged):
        return None
    points = prod(cut.size for cut, is_merged in zip(grid, reduced, strict=True) if is_merged)
    kept = [cut for cut, is_merged in zip(grid, reduced, strict=True) if not is_merged]
    for cls in shape_classes(tuple(kept)):
        if not is_walked(points, prod(run.count * run.size for run in cls)):
            return None
    axes = space.operands[0].axes
    found: list[tuple[int, int]] = []
    for d, is_merged in zip(order, reduced, strict=True):
        if not is_merged or space.dims[d].size == 1:
            continue
        along = [i for i, axis in enumerate(axes) if d in [term for term, _ in axis.terms]]
        if len(along) != 1 or axes[along[0]] != AxisMap(space.dims[d].size, ((d, 1),)):
            return None
        found.append((d, along[0]))
    return found or None


def _dims_of(layout: Layout, axes: Sequence[int], sizes: Sequence[int]) -> list[int] | None:
    """The dimension of a layout's grid along each of some axes.

    None unless each of them belongs to its axis only.
    """
    named = [d for axis in layout.access.axes for d, _ in axis.terms]
    found: list[int] = []
    for i, size in zip(axes, sizes, strict=True):
        terms = layout.access.axes[i].terms
        if len(terms) != 1 or named.count(terms[0][0]) != 1:
            return None
        if layout.access.axes[i] != AxisMap(size, terms) or terms[0][1] != 1:
            return None
        found.append(terms[0][0])
    return found


def _cut_once(layout: Layout, dims: Sequence[int]) -> tuple[Cut, ...]:
    """A layout's grid with some dimensions reduced to one element."""
    return tuple(Cut(1) if d in dims else cut for d, cut in enumerate(layout.grid))


def _once(access: AccessMap, axes: Sequence[int]) -> AccessMap:
    """An access map with some axes reduced to one element."""
    kept = (AxisMap(1) if i in axes else axis for i, axis in enumerate(access.axes))
    return replace(access, axes=tuple(kept))


def _room(layout: Layout, scratch: Scratch) -> Placed:
    """Scratch memory for the blocks of a layout, one row per block."""
    row = -(-layout.block_elements * FLOAT32.itemsize // ROW_BYTES) * ROW_BYTES
    return Placed(scratch.take("merged", (layout.cells, row), BYTE), 0, FLOAT32)


def _merge_call(
    structure: Structure, partials: Blocks, merged: Blocks, dims: tuple[tuple[int, int], ...]
) -> Call:
    """The call that merges all blocks of the same elements, one partial after another."""
    assert structure.body.combiner is not None
    layout, memory, into = partials.layout, partials.placed.memory, merged.placed.memory
    tile = memory.strides[0]
    cells = np.indices(merged.layout.parts).reshape(len(layout.parts), -1).T @ layout.weights
    weights, sizes = zip(*dims, strict=True)
    points = np.indices(sizes).reshape(len(sizes), -1).T @ weights
    start = memory[layout.first_tile, partials.placed.address :]
    results = np.arange(len(cells), dtype=np.int64) * into.strides[0]
    return merge_call(
        MERGES[structure.body.combiner],
        address(start) + cells.astype(np.int64) * tile,
        points.astype(np.int64) * tile,
        address(into) + results,
        layout.block_elements,
        (start, into),
    )
