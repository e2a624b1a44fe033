"""Executes a vertex set: all cells of a split at once, on strided views of the tiles' memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...dialects.abele import Plan
from ...dialects.coordinates import coordinate_dtypes
from ...dialects.structured import Body, Structure
from ...ir.geometry.blocks import Memory, fill_of, iteration_view
from ...ir.geometry.grid import Run, shape_classes
from ...ir.geometry.layout import Layout, placement_order
from ...ir.geometry.space import Position, positions_of
from ...ir.support.strided import as_strided
from .calls import Array, Call, Scratch, run_calls
from .cells import Cells
from .chain import Codelet, chained
from .combiners import combined
from .contraction import contraction
from .drawing import Generators, drawing_cells
from .elementwise import elementwise
from .indices import HeldIndices, check_indices
from .lookup import begin, lookup
from .packed_product import packed_product
from .reduction import reduction
from .related_product import related_product
from .stamps import Stamp
from .users import users_codelet
from .whole import whole

Kind = Literal[
    "elementwise",
    "contraction",
    "packed_product",
    "reduction",
    "lookup",
    "related_product",
    "whole",
    "users",
    "combined",
]


@dataclass(frozen=True)
class Placed:
    """An operand or result in the memory of all tiles.

    Attributes:
        memory: uint8[tiles, row].
        address: the first byte of the blocks in each row.
        dtype: of elements.
        stamp: version counter of these bytes, or None if nobody tracks writes.
    """

    memory: Memory
    address: int
    dtype: np.dtype[Any]
    stamp: Stamp | None = None


CODELETS: dict[Kind, Codelet] = {
    "elementwise": elementwise,
    "contraction": contraction,
    "packed_product": packed_product,
    "reduction": reduction,
    "lookup": lookup,
    "related_product": related_product,
    "whole": whole,
    "users": users_codelet,
    "combined": combined,
}
"""The codelet of each kind of body."""


def kind_of(body: Body, relations: int = 0) -> Kind:
    """The kind of a body, which chooses its codelet.

    Args:
        relations: those of its space.
    """
    if relations:
        return "related_product" if body.sums_products else "lookup"
    if body.along is not None:
        return "whole" if body.signature is None else "users"
    if body.member_kinds:
        return "combined"
    if body.combiner is None:
        return "elementwise"
    if body.is_packed_product:
        return "packed_product"
    return "contraction" if body.is_product else "reduction"


def merge_nothing(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls of a body with a combiner and no points to merge: they write the identity."""
    result = cells.result_once
    if cells.body.updates:
        return begin(cells)
    return [(np.copyto, (result, fill_of(cells.body.identity, result.dtype)))]


@dataclass(frozen=True)
class VertexSet:
    """The cells of a structure that is split by a plan.

    Attributes:
        order: the dimensions of the space in the order of the grid's axes.
        layouts: of the operands and, last, of the results.
    """

    structure: Structure
    order: tuple[int, ...]
    layouts: tuple[Layout, ...]

    @staticmethod
    def of(structure: Structure, plan: Plan) -> VertexSet:
        """The cells of a structure and a plan.

        Raises ValueError if a parallel dimension of more than one element is not in the result.
        """
        space = structure.space
        written = frozenset[int].intersection(*(access.dims() for access in space.results))
        for d, dim in enumerate(space.dims):
            covers = "parallel" if structure.body.signature else "parallel whole"
            if dim.kind in covers and dim.size > plan.split[d] and d not in written:
                raise ValueError(f"dimension {dim.name}: its {dim.size} points write one element")
        layouts = [plan.layout(space.dims, access) for access in (*space.operands, *space.results)]
        order = placement_order(len(space.dims), plan.order)
        return VertexSet(structure, tuple(order), tuple(layouts))

    def classes(self) -> list[tuple[Run, ...]]:
        """The shape classes of the cells."""
        return list(shape_classes(self.layouts[-1].grid))

    def cells(
        self,
        cls: tuple[Run, ...],
        operands: Sequence[Placed],
        result: Placed,
        further: Sequence[Placed] = (),
    ) -> Cells | None:
        """The cells of a shape class as views of these operands and results; None if they write
        nothing.

        Args:
            further: the results after the first.
        """
        views = [
            iteration_view(p.memory, p.address, layout, p.dtype, cls)
            for p, layout in zip((*operands, result, *further), self.layouts, strict=True)
        ]
        views, (last, *rest) = views[: len(operands)], views[len(operands) :]
        space = self.structure.space
        dims = space.dims
        # A result of a codelet may lack whole dimensions, which each of its cells reads.
        lost = ("reduction",) if self.structure.body.signature is None else ("reduction", "whole")
        merged = (len(self.order) + i for i, d in enumerate(self.order) if dims[d].kind in lost)
        alone = [len(self.order) + i for i, d in enumerate(self.order) if dims[d].kind == "whole"]
        stamps = [p.stamp for p in operands]
        if space.coordinates:
            dtypes = coordinate_dtypes(self.structure, [p.dtype for p in (*operands, result)])
            values = [
                self._coordinate(each, dtype, cls, last.shape)
                for each, dtype in zip(space.coordinates, dtypes, strict=True)
            ]
            views = self.structure.with_coordinates(views, values)
            stamps = self.structure.with_coordinates(stamps, [None] * len(values))
        cells = Cells(
            self.structure.body,
            tuple(views),
            last,
            tuple(d for d in merged if last.shape[d] != 1 and last.strides[d] == 0),
            tuple(stamps),
            self._indices(cls, last.shape),
            tuple(each.axis.size for each in self.structure.space.relations),
            alone[0] if self.structure.body.along is not None and alone else -1,
            tuple(rest),
            self._positions(cls, last.shape),
            self.order,
        )
        return cells if cells.result_once.size else None

    def _indices(self, cls: tuple[Run, ...], shape: Sequence[int]) -> tuple[Array, ...]:
        """For each relation, the index that each point of a shape class reaches."""
        relations = self.structure.space.relations
        if not relations:
            return ()
        points = self.points(cls)
        return tuple(np.broadcast_to(each.indices(points), shape) for each in relations)

    def _positions(self, cls: tuple[Run, ...], shape: Sequence[int]) -> tuple[Array, ...]:
        """For each position that the body reads, its value at each point of a shape class."""
        read = [each for each in self.structure.space.positions if not each.is_coordinate]
        if not read:
            return ()
        points = self.points(cls)
        return tuple(np.broadcast_to(positions_of(each, points), shape) for each in read)

    def _coordinate(
        self,
        position: Position,
        dtype: np.dtype[Any],
        cls: tuple[Run, ...],
        shape: Sequence[int],
    ) -> Array:
        """A coordinate at each point of a shape class, as a strided view of the integers in
        order."""
        if 0 in shape:
            return np.zeros(shape, dtype)
        (axis,) = position.access.axes
        low, high = position.limits
        numbers = np.arange(low, high + 1, dtype=dtype)
        coefficients = dict(axis.terms)
        rank = len(self.order)
        strides, first = [0] * (2 * rank), axis.offset
        for at, (d, run) in enumerate(zip(self.order, cls, strict=True)):
            step = coefficients.get(d, 0)
            first += step * run.start
            strides[at], strides[rank + at] = step * run.size, step
        return as_strided(numbers[first:], shape, [each * dtype.itemsize for each in strides])

    def numbers(self, cls: tuple[Run, ...]) -> NDArray[np.int64]:
        """The number of each cell of a shape class."""
        numbers = np.array(0, np.int64)
        for run, weight in zip(cls, self.layouts[-1].weights, strict=True):
            numbers = numbers[..., None] + (run.first + np.arange(run.count)) * weight
        return numbers

    def points(self, cls: tuple[Run, ...]) -> list[Array]:
        """The numbers of the points of a shape class along each dimension; they broadcast to the
        views.
        """
        rank = len(self.order)
        points: list[Array] = [np.zeros(1, np.int64)] * rank
        for at, (d, run) in enumerate(zip(self.order, cls, strict=True)):
            first = run.start + run.size * np.arange(run.count)
            along = [1] * (2 * rank)
            along[at], along[rank + at] = run.count, run.size
            points[d] = (first[:, None] + np.arange(run.size)).reshape(along)
        return points


def bind_vertices(
    structure: Structure,
    plan: Plan,
    operands: Sequence[Placed],
    result: Placed,
    scratch: Scratch,
    further: Sequence[Placed] = (),
    generators: Generators | None = None,
) -> list[Call]:
    """The calls that compute a vertex set, on views of these operands and this result.

    Raises ValueError if a parallel dimension of more than one element is not in the result.

    Args:
        further: the results after the first.
        generators: those of the workers from which its roundings draw; without any, they round to
            nearest.
    """
    vertices = VertexSet.of(structure, plan)
    calls = index_checks(vertices, operands)
    for cls in vertices.classes():
        cells = vertices.cells(cls, operands, result, further)
        if cells is not None:
            if generators is not None:
                cells, drawn = drawing_cells(cells, vertices.numbers(cls), generators)
                calls += drawn
            calls += chained(codelet_of(cells), cells, scratch)
    return calls


def index_checks(vertices: VertexSet, operands: Sequence[Placed]) -> list[Call]:
    """The calls that raise IndexFault if a vertex set reads an index out of range.

    Only the first replica of each block of indices is read.
    """
    space = vertices.structure.space
    if not space.points:
        return []
    calls: list[Call] = []
    for relation in space.relations:
        access, layout = space.operands[relation.operand], vertices.layouts[relation.operand]
        placed, named, held = operands[relation.operand], access.dims(), list[HeldIndices]()
        fixed = [i for i, d in enumerate(vertices.order) if d not in named]
        for cls in vertices.classes():
            if any(cls[i].first for i in fixed):
                continue
            view = iteration_view(placed.memory, placed.address, layout, placed.dtype, cls)
            once = tuple(
                slice(0, 1) if i % len(cls) in fixed else slice(None) for i in range(view.ndim)
            )
            held.append(HeldIndices(view[once], access, tuple(vertices.points(cls))))
        calls.append((check_indices, (relation.axis.size, tuple(held))))
    return calls


def codelet_of(cells: Cells) -> Codelet:
    """The codelet that computes cells."""
    kind = kind_of(cells.body, len(cells.relations))
    if not cells.result.size and kind != "combined":
        return merge_nothing
    return CODELETS[kind]


def run_vertices(
    structure: Structure,
    plan: Plan,
    operands: Sequence[Placed],
    result: Placed,
    *further: Placed,
) -> None:
    """Compute a vertex set once.

    Args:
        further: the results after the first.
    """
    run_calls(bind_vertices(structure, plan, operands, result, Scratch(), further))
