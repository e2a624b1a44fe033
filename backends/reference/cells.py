"""Evaluates users' codelets: the same function in float64, on cells that are read by their maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ...dialects.structured import Structure
from ...ir.support.number_kinds import is_floating
from ..codelets.conversion import FLOAT64, Doubles, float_limits
from ..codelets.users import arranged, stacked, users_codelet_of
from .gather import Array, Box, boxes, gathered
from .parts import Parts
from .roles import BOX_ELEMENTS, Roles
from .rounding import as_kind_of


def of_result(structure: Structure, number: int) -> Structure:
    """A structure with one of its results."""
    space = structure.space
    if len(space.results) == 1:
        return structure
    return replace(structure, space=replace(space, results=(space.results[number],)))


def evaluate_cells(roles: Roles, operands: Sequence[Array], number: int, *, bounded: bool) -> Parts:
    """A result of a codelet, over the kept dimensions.

    Args:
        operands: in their viewed shapes.
        number: the index of the result.
        bounded: whether to compute errors too.
    """
    along, sizes = roles.along, roles.space.sizes
    assert along is not None
    known = users_codelet_of(along.name)
    signature = known.signature
    wide = [a.astype(np.float64) if is_floating(a.dtype) else a for a in operands]
    write = list(signature.writes.values())[number]
    axes = [*signature.cell_dims, *signature.whole_of(write)]
    shape = [sizes[d] for d in axes]
    is_float = is_floating(roles.result_dtype)
    value = as_kind_of(np.zeros(shape), roles.result_dtype)
    error = np.zeros(shape)
    unit = float_limits(roles.computing).roundoff
    wholes = prod(n for d, n in enumerate(sizes) if signature.dims[d].whole)
    cells = list(signature.cell_dims)
    for box in boxes(sizes, [cells], max(1, BOX_ELEMENTS // max(wholes, 1))) if prod(sizes) else ():
        reads = cells_read(roles, wide, box)
        made = known.apply(reads, along.parameters)[number]
        place = tuple(slice(*box[d]) for d in cells)
        there = value[place].shape
        value[place] = as_kind_of(made, roles.result_dtype).reshape(there)
        if bounded and is_float:
            error[place] = known.bound.error(reads, made, unit).reshape(there)
    kept = [axes.index(d) for d in roles.kept]
    dropped = tuple(i for i in range(len(axes)) if i not in kept)
    order = [*kept, *dropped]
    final = tuple(shape[i] for i in kept)
    value = value.transpose(order).reshape(final)
    if not bounded:
        return Parts(value, None, None)
    return Parts(value, np.zeros(final), error.transpose(order).reshape(final) / unit)


def cells_read(roles: Roles, operands: Sequence[Array], box: Box) -> list[Array]:
    """What the cells of a box read, one array for each read, with a leading axis of cells."""
    signature = None if roles.along is None else roles.along.signature
    assert signature is not None
    cells = signature.cell_dims
    sizes = [end - begin for begin, end in box]
    # Operands of the chain follow.
    maps = roles.space.operands[: len(operands)]
    made: list[Array] = []
    for array, access, read in zip(operands, maps, signature.reads.values(), strict=True):
        points = gathered(array, access, box)
        full = [sizes[d] if d in cells else n for d, n in enumerate(points.shape)]
        view = arranged(np.broadcast_to(points, full), cells, signature.whole_of(read))
        made.append(stacked(view, len(cells), view.dtype))
    return made


def deviation_of_cells(structure: Structure, errors: Sequence[Doubles], *, whole: bool) -> Doubles:
    """The largest change of a result that errors of the operands can cause, in its viewed shape.

    Args:
        errors: in the viewed shapes.
        whole: whether the result has integers, which any error may change.
    """
    space, body = structure.space, structure.body
    assert body.along is not None
    known = users_codelet_of(body.along.name)
    factor = np.inf if whole or known.sensitivity is None else known.sensitivity
    largest = np.zeros(
        [n if d in known.signature.cell_dims else 1 for d, n in enumerate(space.sizes)]
    )
    every = tuple((0, n) for n in space.sizes)
    for error, access in zip(errors, space.operands, strict=True):
        points = gathered(error, replace(access, fill=0.0), every)
        inner = tuple(d for d, n in enumerate(points.shape) if largest.shape[d] == 1 and n > 1)
        largest = np.maximum(largest, points.max(axis=inner, keepdims=True) if inner else points)
    moved = np.where(largest > 0, largest * factor, 0.0)
    (result,) = space.results
    named = [axis.terms[0][0] for axis in result.axes if axis.terms]
    full = np.broadcast_to(moved, [n if d in named else 1 for d, n in enumerate(space.sizes)])
    left = sorted(named)
    flat = full.reshape([full.shape[d] for d in left])
    return flat.transpose([left.index(d) for d in named]).reshape(result.shape).astype(FLOAT64)
