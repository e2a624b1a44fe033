"""Relations whose indices are known, as tables in the maps of what they select.

A dimension that must equal a known index and that is merged has one point for each index. So the
operands that it selects rows of can name these rows by a table, and the dimension is not needed.

    y[j] = sum of x[r] where r == indices[j]     ->     y[j] = x[3 after the end + j, by a table]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...dialects.structured import Structure
from ...ir.geometry.space import AccessMap, AxisMap, Dim, Relation, Space
from ...ir.geometry.table import Table
from ...ir.support.arrays import Array


@dataclass(frozen=True)
class ByTables:
    """A structure whose relations are tables.

    Attributes:
        operands: those of the old structure that it still reads.
    """

    structure: Structure
    operands: tuple[int, ...]


def by_tables(structure: Structure, known: Mapping[int, Array]) -> ByTables | None:
    """A sum of products at related points with tables instead of all relations.

    None for other bodies, for indices that are unknown or faults, and for relations whose dimension
    is an axis of the result or is not a whole axis of each operand that has it.

    Args:
        known: the operands whose elements are known.
    """
    space, body = structure.space, structure.body
    if not body.sums_products or body.then or body.updates or not space.relations:
        return None
    axes: dict[int, tuple[AxisMap, Table]] = {}
    for relation in space.relations:
        found = _table(space, relation, known.get(relation.operand))
        if found is None:
            return None
        d, axis, table = found
        if d in axes:
            return None
        axes[d] = (axis, table)
    indices = {relation.operand for relation in space.relations}
    kept = tuple(i for i in range(len(space.operands)) if i not in indices)
    # A place without a row must add nothing.
    if any(space.operands[i].fill for i in kept):
        return None
    operands = [_tabled(space.operands[i], axes) for i in kept]
    if any(each is None for each in operands) or _named(space, axes, kept):
        return None
    dims = tuple(d for d in range(len(space.dims)) if d not in axes)
    number = {d: i for i, d in enumerate(dims)}
    made = Space(
        tuple(space.dims[d] for d in dims),
        tuple(each.renamed(number) for each in operands if each is not None),
        tuple(each.renamed(number) for each in space.results),
    )
    merges = bool(made.of_kind("reduction"))
    if body.narrow is not None and not merges:
        return None
    combiner = body.combiner if merges else None
    return ByTables(Structure(made, replace(body, combiner=combiner)), kept)


def _named(space: Space, axes: Mapping[int, object], kept: Sequence[int]) -> bool:
    """Whether no operand that is kept has one of the dimensions, so that nothing bounds it."""
    named = {d for i in kept for d in space.operands[i].dims()}
    return any(d not in named for d in axes)


def _table(
    space: Space, relation: Relation, indices: Array | None
) -> tuple[int, AxisMap, Table] | None:
    """The dimension that a relation sets, the places of its indices, and their table.

    The axis has no size and no offset yet.
    """
    axis, access = relation.axis, space.operands[relation.operand]
    if indices is None or not _is_whole(axis, space.dims) or not axis.terms:
        return None
    d = axis.terms[0][0]
    if space.dims[d].kind != "reduction":
        return None
    if not all(_is_whole(each, space.dims) for each in access.axes):
        return None
    front = relation.from_front(indices).ravel()
    if ((front < 0) | (front >= axis.size)).any():
        # The run raises the fault.
        return None
    front = np.where(front < space.dims[d].size, front, -1)
    weights = [int(np.prod(access.shape[i + 1 :])) for i in range(len(access.shape))]
    terms = tuple(
        (e, weight)
        for each, weight in zip(access.axes, weights, strict=True)
        for e, _ in each.terms
    )
    return d, AxisMap(0, terms), Table.of(front)


def _is_whole(axis: AxisMap, dims: Sequence[Dim]) -> bool:
    """Whether an axis is a dimension, or an index into the only element."""
    if (axis.offset, axis.divisor) != (0, 1):
        return False
    if not axis.terms:
        return axis.size == 1
    (d, coefficient), *more = axis.terms
    return not more and coefficient == 1 and axis.size >= dims[d].size


def _tabled(access: AccessMap, axes: Mapping[int, tuple[AxisMap, Table]]) -> AccessMap | None:
    """A map that names elements by tables; None where a dimension is no whole axis."""
    made: list[AxisMap] = []
    for axis in access.axes:
        mine = [d for d, _ in axis.terms if d in axes]
        if not mine:
            made.append(axis)
            continue
        if axis != AxisMap(axis.size, ((mine[0], 1),)):
            return None
        places, table = axes[mine[0]]
        if table.highest >= axis.size:
            return None
        made.append(AxisMap(axis.size, places.terms, axis.size, outside=table))
    return AccessMap(tuple(made), access.fill)
