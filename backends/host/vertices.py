"""Vertex sets as compiled calls, or as the NumPy calls that define them where kernels are
missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ...dialects.abele import Plan
from ...dialects.structured import Structure
from ...ir.geometry.blocks import iteration_view
from ...ir.geometry.grid import Run
from ...ir.geometry.layout import Layout
from ...ir.support.strided import as_strided
from ..codelets.calls import Array, Call, Index, Scratch
from ..codelets.cells import Cells
from ..codelets.chain import Codelet, chained
from ..codelets.contraction import adding_dtype, is_short, roles, terms
from ..codelets.drawing import Generators, drawing_cells, inserted, words_places
from ..codelets.numerics import Kind, Placed, VertexSet, codelet_of, index_checks, kind_of
from ..codelets.reduction import merged_points, walks
from .bound_products import join_products
from .cells import HostCells, replica_calls
from .chains import host_stage_calls, points_call
from .lookups import host_lookup
from .products import host_contraction
from .users import host_users_codelet


@dataclass(frozen=True)
class BoundVertices:
    """The calls of a vertex set.

    Attributes:
        read_once: the operands of which they read the first replica only.
    """

    calls: list[Call]
    read_once: frozenset[int]


def bind_vertices(
    structure: Structure,
    plan: Plan,
    operands: Sequence[Placed],
    result: Placed,
    scratch: Scratch,
    equal: Collection[int] = (),
    further: Sequence[Placed] = (),
    generators: Generators | None = None,
) -> BoundVertices:
    """The calls that compute a vertex set, on views of these operands and this result.

    Raises ValueError if a parallel dimension of more than one element is not in the result.

    Args:
        equal: operands whose replicas are equal whenever the calls are made. An operand that shares
            bytes with a result may change during the calls, so all its replicas are read.
        further: the results after the first.
        generators: those of the workers from which its roundings draw.
    """
    vertices = VertexSet.of(structure, plan)
    layouts, made = vertices.layouts[: len(operands)], vertices.layouts[len(operands) :]
    written = tuple(zip((result, *further), made, strict=True))
    replicas = [
        [axis for axis, d in enumerate(vertices.order) if d not in access.dims()]
        for access in structure.space.operands
    ]
    overlaps = [
        any(_overlaps(p, layout, *each) for each in written)
        for p, layout in zip(operands, layouts, strict=True)
    ]
    equal = read_once = frozenset(i for i in equal if not overlaps[i])
    # Coordinates are operands of the body, but no variable holds them.
    count = len(structure.space.coordinates)
    held: Sequence[int] = structure.with_coordinates(range(len(operands)), [-1] * count)
    if generators is not None:
        places = words_places(structure.body, structure.own_places)
        held = inserted(held, places, [-1] * len(places))
    calls = index_checks(vertices, operands)
    for cls in vertices.classes():
        plain = vertices.cells(cls, operands, result, further)
        if plain is None:
            continue
        if generators is not None:
            plain, drawn = drawing_cells(plain, vertices.numbers(cls), generators)
            calls += drawn
        firsts = tuple(
            view
            if i < 0 or overlaps[i]
            else _first_replica(view, operands[i], layouts[i], cls, replicas[i])
            for view, i in zip(plain.operands, held, strict=True)
        )
        cells = HostCells(
            plain.body,
            plain.operands,
            plain.result,
            plain.merged,
            plain.stamps,
            plain.relations,
            plain.axis_sizes,
            plain.whole,
            plain.further,
            plain.positions,
            plain.order,
            first_replicas=firsts,
            equal=frozenset(place for place, i in enumerate(held) if i in equal),
        )
        calls += _one_call(cells) or _codelet_calls(cells, scratch)
        read_once &= {held[place] for place in cells.read_once}
    # If bytes are shared, a class may read bytes that the class before has written.
    return BoundVertices(calls if any(overlaps) else join_products(calls), read_once)


def _first_replica(
    view: Array, placed: Placed, layout: Layout, cls: tuple[Run, ...], replicas: Collection[int]
) -> Array:
    """The view of a shape class's blocks with every replica replaced by the first.

    Args:
        replicas: the dimensions of the grid along which an operand has replicas.
    """
    if all(view.shape[d] == 1 and not cls[d].first for d in replicas):
        return view
    first = tuple(replace(run, first=0) if d in replicas else run for d, run in enumerate(cls))
    seen = iteration_view(placed.memory, placed.address, layout, placed.dtype, first)
    strides = [0 if d in replicas else step for d, step in enumerate(seen.strides)]
    return as_strided(seen, seen.shape, strides)


def _overlaps(a: Placed, a_layout: Layout, b: Placed, b_layout: Layout) -> bool:
    """Whether blocks share bytes, so that a replica may be written before it is read."""
    a_end, b_end = (
        p.address + layout.block_elements * p.dtype.itemsize
        for p, layout in ((a, a_layout), (b, b_layout))
    )
    return a.memory is b.memory and a.address < b_end and b.address < a_end


def _codelet_calls(cells: HostCells, scratch: Scratch) -> list[Call]:
    """The calls of a codelet and of the chain, each compiled if kernels have it."""
    kind = kind_of(cells.body, len(cells.relations))
    codelet = _COMPILED.get(kind) if cells.result.size else None
    codelet = codelet or codelet_of(cells)
    return chained(codelet, cells, scratch, host_stage_calls)


def _one_call(cells: HostCells) -> list[Call]:
    """A body and its chain as one compiled call; [] if kernels lack it."""
    if not cells.result.size or cells.relations or cells.further or cells.body.along is not None:
        return []
    own = cells.own_operands
    plain = replace(cells.body, then=())
    points = POINTS[kind_of(plain)](replace(cells, body=plain, operands=cells.operands[:own]))
    if points is None:
        return []

    def call(operands: Sequence[Array]) -> Call | None:
        # Points are merged in the order in which each tile merges its own points.
        seen = [[a[at] for a in operands[:own]] for at in points]
        extras = [cells.once(a) for a in operands[own:]]
        return points_call(plain, seen, cells.body.then, extras, cells.result_once)

    return replica_calls(cells, range(len(cells.operands)), call)


def _element_points(cells: Cells) -> list[Index]:
    """The only point of an elementwise body."""
    del cells
    return [(...,)]


def _walked_points(cells: Cells) -> list[Index] | None:
    """The points of a reduction in order; None if NumPy chooses the order."""
    return merged_points(cells) if walks(cells) else None


def _term_points(cells: Cells) -> list[Index] | None:
    """The terms of a sum of products in order; None if they are matrix products."""
    groups = roles(cells)
    if groups is None:
        return _walked_points(cells)
    dtype = adding_dtype([a.dtype for a in cells.operands], cells.result.dtype)
    is_listed = not groups.inner or is_short(cells, groups, dtype)
    return terms(cells, groups) if is_listed else None


def _no_points(cells: Cells) -> None:
    """No points: the integers of a packed product are taken apart before anything is merged."""
    del cells


_COMPILED: Mapping[Kind, Codelet] = {
    "contraction": host_contraction,
    "lookup": host_lookup,
    "users": host_users_codelet,
}
"""The codelets that have a compiled form of their own."""

POINTS: Mapping[Kind, Callable[[Cells], list[Index] | None]] = {
    "elementwise": _element_points,
    "contraction": _term_points,
    "packed_product": _no_points,
    "reduction": _walked_points,
}
"""The points at which operands are merged one by one, in order; None if they are not."""
