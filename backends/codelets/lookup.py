"""Lookups and updates: bodies at the points where relations hold.

A point contributes only if, for each relation, the index that it reaches equals an element of the
index operand. The codelet does not walk all points. It reads each index once, and computes the
place in the cell that the index names, so the work grows with the lookups and not with the table.
If the result is written over the updated operand, only the rows that indices name are touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.geometry.blocks import fill_of
from ...ir.geometry.space import NO_INDEX
from ...ir.support.number_kinds import is_floating
from .calls import Array, Call, Scratch, address
from .cells import Cells
from .conversion import convert_into
from .float_rounding import round_stochastically
from .reduction import MERGE, merging_dtype
from .scalar import ScalarFunction, scalar_function
from .ufuncs import bits

Places = list[NDArray[np.int64]]
"""The positions of the contributing points along each axis of the views."""


@dataclass(frozen=True)
class Lookup:
    """A lookup on fixed views.

    Attributes:
        along: for each relation, the axis along which the index of a point rises, or -1.
        sizes: for each relation, the size of the indexed axis, which is added to negative indices.
        varying: the axes on which the positions of contributing points are listed; along the other
            axes, all points contribute or none does.
    """

    cells: Cells
    function: ScalarFunction
    dtype: np.dtype[Any]
    along: tuple[int, ...]
    varying: tuple[int, ...]
    sizes: tuple[int, ...]


def lookup(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls that compute a body at the points that meet the relations of its space."""
    del scratch
    body = cells.body
    assert body.combiner is not None
    function = scalar_function(body.function)
    arity = body.function_arity
    value = function.result_dtype(*(a.dtype for a in cells.operands[:arity]))
    dtype = merging_dtype(value, cells.result.dtype)
    is_exact = body.combiner in ("max", "min") and not is_floating(value)
    moves = body.combiner in ("pick", "last")
    if moves or (is_exact and not is_floating(dtype) and not body.updates):
        dtype = value
    task = find_lookup(cells, dtype)
    return [*begin(cells), (_update, (task,))] if body.updates else [(_run, (task,))]


def find_lookup(cells: Cells, dtype: np.dtype[Any]) -> Lookup:
    """The lookup that cells are, whose points are merged in a dtype."""
    wanted = indices_of(cells)
    along: list[int] = []
    for i, index in enumerate(cells.relations):
        others = (*wanted, *cells.relations[:i], *cells.relations[i + 1 :])
        axis = axis_along(index)
        # The index determines the position along the axis only if nothing else varies along it.
        along.append(-1 if any(axis in varying_axes(each) for each in others) else axis)
    varying = {d for a in (*wanted, *cells.relations) for d in varying_axes(a)}
    # List points along at least one axis, so that the list may be empty.
    listed = sorted({*varying, *along} - {-1}) or [0]
    function = scalar_function(cells.body.function)
    return Lookup(cells, function, dtype, tuple(along), tuple(listed), cells.axis_sizes)


def indices_of(cells: Cells) -> tuple[Array, ...]:
    """The index operand of each relation."""
    arity = cells.body.function_arity
    return cells.operands[arity : arity + len(cells.relations)]


def begin(cells: Cells) -> list[Call]:
    """The calls that copy the updated operand to the result; none if the result is written over
    it."""
    held, result = cells.once(cells.operands[cells.own_operands - 1]), cells.result_once
    if address(held) == address(result) and held.dtype == result.dtype:
        return []
    if held.dtype == result.dtype:
        return [(np.copyto, (result, held))]
    return [(convert_into, (held, result))]


def varying_axes(array: Array) -> list[int]:
    """The axes along which the elements of a view may differ."""
    return [d for d in range(array.ndim) if array.strides[d] and array.shape[d] > 1]


def axis_along(index: Array) -> int:
    """The axis of a cell along which an index rises by one from point to point, until it ends.

    -1 if there is no such axis.
    """
    varies = varying_axes(index)
    within = [d for d in varies if d >= index.ndim // 2]
    if len(within) != 1:
        return -1
    once = tuple(slice(None) if d in varies else slice(0, 1) for d in range(index.ndim))
    held = np.moveaxis(index[once], within[0], 0)
    rises = (held[1:] - held[:-1] == 1) | (held[1:] == NO_INDEX)
    return within[0] if rises.all() else -1


def find_places(task: Lookup) -> Places:
    """The positions of the contributing points on the varying axes, in row-major order."""
    cells = task.cells
    first = tuple(
        slice(None) if d in task.varying else slice(0, 1) for d in range(cells.result.ndim)
    )
    given = indices_of(cells)
    # Normalise each index once, however many points read it.
    wanted = [
        np.broadcast_to(_from_front(_distinct(a[first]), n), a[first].shape)
        for a, n in zip(given, task.sizes, strict=True)
    ]
    reached = [a[first] for a in cells.relations]
    if len(set(task.along)) < len(task.along) or -1 in task.along:
        held = np.ones((), bool)
        for want, reach in zip(wanted, reached, strict=True):
            held = held & (want == reach)
        return [*np.nonzero(held)]
    outer = tuple(slice(0, 1) if d in task.along else slice(None) for d in range(len(first)))
    held = np.ones((), bool)
    steps: list[Array] = []
    for want, reach, axis in zip(wanted, reached, task.along, strict=True):
        step = want[outer] - reach[outer]
        held = held & (step >= 0) & (step < reach.shape[axis])
        steps.append(step)
    places = [*np.nonzero(held)]
    for step, axis in zip(steps, task.along, strict=True):
        places[axis] = np.broadcast_to(step, held.shape)[held]
    # The last points of a part may be padding, which no index reaches.
    inside = np.ones(len(places[0]), bool)
    for reach in reached:
        fixed = (p if n > 1 else 0 for p, n in zip(places, reach.shape, strict=True))
        inside &= reach[tuple(fixed)] != NO_INDEX
    return [place[inside] for place in places]


def _distinct(array: Array) -> Array:
    """A view with one element along axes of stride 0, along which its elements are equal."""
    return array[tuple(slice(None) if step else slice(0, 1) for step in array.strides)]


def _from_front(indices: Array, size: int) -> NDArray[np.int64]:
    """Indices counted from the front of an axis; negative ones are counted from its end."""
    wide = indices.astype(np.int64)
    return np.where(wide < 0, wide + size, wide)


@dataclass(frozen=True)
class _Found:
    """The contributing points and their values.

    Attributes:
        kept: their positions in the result, on the varying axes, which come first in `result`.
        values: the values of the function, (points, free axes...).
        merged: the axes of values that are merged.
        result: the result, with one element along merged axes.
    """

    kept: tuple[NDArray[np.int64], ...]
    values: Array
    merged: tuple[int, ...]
    result: Array


def _found(task: Lookup) -> _Found:
    cells, body = task.cells, task.cells.body
    places = find_places(task)
    order = _order(task)
    free = order[len(task.varying) :]
    found = tuple(places[d] for d in task.varying)
    operands = [a.transpose(order)[found] for a in cells.operands[: body.function_arity]]
    values = np.empty(operands[0].shape, task.dtype)
    task.function.apply(body.parameters, *operands, out=values)
    return _Found(
        tuple(
            np.zeros_like(p) if d in cells.merged else p
            for d, p in zip(task.varying, found, strict=True)
        ),
        values,
        tuple(1 + i for i, d in enumerate(free) if d in cells.merged),
        cells.result_once.transpose(order),
    )


def _run(task: Lookup) -> None:
    body = task.cells.body
    assert body.combiner is not None
    with np.errstate(all="ignore"):
        found = _found(task)
        values = found.values
        merge = MERGE[body.combiner]
        if merge is np.bitwise_or:
            # No bits, and not the number 0, which float8_e8m0fnu does not have.
            total, values = np.zeros(found.result.shape, bits(values).dtype), bits(values)
        else:
            total = np.full(found.result.shape, fill_of(body.identity, task.dtype), task.dtype)
        if found.merged:
            values = merge.reduce(values, axis=found.merged, keepdims=True, dtype=total.dtype)
        merge.at(total, found.kept, values)
        convert_into(total.view(task.dtype), found.result)


def _update(task: Lookup) -> None:
    """Merge updates into the rows of the result that indices name; other rows stay unchanged."""
    combiner = task.cells.body.combiner
    assert combiner is not None
    with np.errstate(all="ignore"):
        found = _found(task)
        values, count = found.values, len(found.kept[0])
        if not count:
            return
        rows = np.ravel_multi_index(found.kept, found.result.shape[: len(found.kept)])
        if combiner == "last":
            for axis in found.merged:
                values = np.take(values, [-1], axis)
            # The points of a row are in the order of the only merged dimension.
            _, latest = np.unique(rows[::-1], return_index=True)
            taken = count - 1 - latest
            total = values[taken]
            named = tuple(each[taken] for each in found.kept)
        else:
            _, first, place = np.unique(rows, return_index=True, return_inverse=True)
            named = tuple(each[first] for each in found.kept)
            total = found.result[named].astype(task.dtype)
            merge = MERGE[combiner]
            if found.merged:
                values = merge.reduce(values, axis=found.merged, keepdims=True, dtype=total.dtype)
            merge.at(total, place.reshape(-1), values)
        made = np.empty(total.shape, found.result.dtype)
        words = task.cells.words
        if words is None:
            convert_into(total, made)
        else:
            order = _order(task)
            numbers = (task.cells.once(a).transpose(order)[named] for a in words.numbers)
            round_stochastically(words.parameters, (total, *numbers), made, made.dtype)
        found.result[named] = made


def _order(task: Lookup) -> tuple[int, ...]:
    """The axes of the views: the varying ones, then the others."""
    rank = task.cells.result.ndim
    return (*task.varying, *(d for d in range(rank) if d not in task.varying))
