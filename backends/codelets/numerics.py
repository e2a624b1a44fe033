"""A vertex set, executed: every cell of a split at once, on strided views of the tiles' memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...dialects.abele import Plan
from ...dialects.structured import Body, Structure
from ...ir.geometry.blocks import Memory, fill_of, iteration_view
from ...ir.geometry.grid import Run, shape_classes
from ...ir.geometry.layout import Layout, placement_order, raw_layout
from ..host.chains import points_call
from ..host.fast import Stamp
from .calls import Array, Call, Index, Scratch, run_calls
from .cells import Cells, alike_calls
from .chain import Codelet, chained
from .contraction import contraction, term_points
from .elementwise import element_points, elementwise
from .reduction import reduction, walked_points

Kind = Literal["elementwise", "contraction", "reduction"]


@dataclass(frozen=True)
class Placed:
    """An operand or result in the memory of all tiles.

    memory: uint8[tiles, row]. address: of the blocks' first byte in each row. dtype: of elements.
    stamp: what becomes of its bytes, where somebody tells.
    """

    memory: Memory
    address: int
    dtype: np.dtype[Any]
    stamp: Stamp | None = None


CODELETS: dict[str, dict[Kind, Codelet]] = {
    "plain": {"elementwise": elementwise, "contraction": contraction, "reduction": reduction},
}
"""By mode, the codelet of each kind of body. plain: every tile reads its own bytes."""


POINTS: dict[Kind, Callable[[Cells], list[Index] | None]] = {
    "elementwise": element_points,
    "contraction": term_points,
    "reduction": walked_points,
}
"""The points of a body's operands, where they are merged one point after another."""


@dataclass(frozen=True)
class BoundVertices:
    """The calls of a vertex set. spared: operands of which they read the first replica alone."""

    calls: list[Call]
    spared: frozenset[int]


def kind_of(body: Body) -> Kind:
    """Which codelet computes a body."""
    if body.combiner is None:
        return "elementwise"
    return "contraction" if (body.function, body.combiner) == ("mul", "sum") else "reduction"


def _merge_nothing(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls of a body with a combiner that has no points to merge."""
    result = cells.result_once
    return [(np.copyto, (result, fill_of(cells.body.identity, result.dtype)))]


def _shared(
    view: Array, placed: Placed, layout: Layout, cls: tuple[Run, ...], replicas: Collection[int]
) -> Array:
    """The view of the blocks of a shape class of which all replicas that cuts make are the first.

    replicas: the dimensions of the grid that make them.
    """
    if all(view.shape[d] == 1 and not cls[d].first for d in replicas):
        return view
    first = tuple(replace(run, first=0) if d in replicas else run for d, run in enumerate(cls))
    seen = iteration_view(placed.memory, placed.address, layout, placed.dtype, first)
    strides = [0 if d in replicas else step for d, step in enumerate(seen.strides)]
    return as_strided(seen, seen.shape, strides)


def _meet(a: Placed, a_layout: Layout, b: Placed, b_layout: Layout) -> bool:
    """Whether blocks have bytes in common: a replica may be written before it is read."""
    a_end, b_end = (
        p.address + layout.block_elements * p.dtype.itemsize
        for p, layout in ((a, a_layout), (b, b_layout))
    )
    return a.memory is b.memory and a.address < b_end and b.address < a_end


def _one_call(cells: Cells, scratch: Scratch) -> list[Call]:
    """A body and its chain as one compiled call; nothing where there is none."""
    if not scratch.fast:
        return []
    own = cells.body.own_arity
    plain = replace(cells.body, then=())
    points = POINTS[kind_of(plain)](replace(cells, body=plain, operands=cells.operands[:own]))
    if points is None:
        return []

    def call(operands: Sequence[Array]) -> Call | None:
        # Points are walked in the order in which each tile walks its own.
        seen = [[a[at] for a in operands[:own]] for at in points]
        extras = [cells.once(a) for a in operands[own:]]
        return points_call(plain, seen, cells.body.then, extras, cells.result_once)

    return alike_calls(cells, range(len(cells.operands)), call)


def bind_vertices(
    structure: Structure,
    plan: Plan,
    operands: Sequence[Placed],
    result: Placed,
    scratch: Scratch,
    mode: str = "plain",
    alike: Collection[int] = (),
) -> BoundVertices:
    """The calls that compute a vertex set, on views of these operands and this result.

    alike: operands whose replicas are equal whenever the calls are made; one that has bytes in
    common with the result may not be so for long, and is read in each replica.
    Raises ValueError if a parallel dimension of more than one element is not in the result.
    """
    space, body = structure.space, structure.body
    order = placement_order(len(space.dims), plan.order)
    layouts = [
        raw_layout(space.dims, access, plan.split, plan.order, plan.first_tile)
        for access in (*space.operands, *space.results)
    ]
    rank = len(order)
    written = space.results[0].dims()
    for d, dim in enumerate(space.dims):
        if dim.kind == "parallel" and dim.size > plan.split[d] and d not in written:
            raise ValueError(f"dimension {dim.name}: its {dim.size} points write one element")
    merged = tuple(rank + i for i, d in enumerate(order) if space.dims[d].kind != "parallel")
    codelet = CODELETS[mode][kind_of(body)]
    replicas = [
        [axis for axis, d in enumerate(order) if d not in access.dims()]
        for access in space.operands
    ]
    calls: list[Call] = []
    meets = [_meet(p, layout, result, layouts[-1]) for p, layout in zip(operands, layouts)]
    alike = spared = frozenset(i for i in alike if not meets[i])
    for cls in shape_classes(layouts[-1].grid):
        views = [
            iteration_view(p.memory, p.address, layout, p.dtype, cls)
            for p, layout in zip((*operands, result), layouts, strict=True)
        ]
        cells = Cells(
            body,
            tuple(views[:-1]),
            views[-1],
            tuple(d for d in merged if views[-1].shape[d] != 1 and views[-1].strides[d] == 0),
            tuple(
                view if meeting else _shared(view, p, layout, cls, dims)
                for view, meeting, p, layout, dims in zip(
                    views[:-1], meets, operands, layouts[:-1], replicas, strict=True
                )
            ),
            tuple(p.stamp for p in operands),
            alike,
        )
        if cells.result_once.size == 0:
            continue
        if views[-1].size == 0:
            calls += chained(_merge_nothing, cells, scratch)
        else:
            calls += _one_call(cells, scratch) or chained(codelet, cells, scratch)
        spared &= cells.spared
    return BoundVertices(calls, spared)


def run_vertices(
    structure: Structure, plan: Plan, operands: Sequence[Placed], result: Placed
) -> None:
    """Compute a vertex set once."""
    run_calls(bind_vertices(structure, plan, operands, result, Scratch()).calls)
