"""Slices at places that another tensor holds: gather and scatter.

A slice that would reach out of a tensor is moved inside by a gather. By a scatter it is left out as
a whole, as XLA does it; by the specification, only the elements outside would be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...dialects import stablehlo
from ...ir.support.arrays import Array
from .elements import wide

Arrays = Sequence[Array]

Merge = Callable[[Arrays], Arrays]
"""Applies a scatter's region to arrays of elements and of updates."""


def _starts(
    places: Array,
    at: int,
    numbers: Sequence[int],
    batching: Sequence[int],
    places_batching: Sequence[int],
    rank: int,
) -> Array:
    """Where each slice begins along each axis of the tensor, [batch..., rank].

    Args:
        at: the axis of the places along which the numbers of a place lie.
        numbers: the axis of the tensor that each number is for.
        batching, places_batching: axes of the tensor that are one with axes of the places.
    """
    moved = places[..., None] if at == places.ndim else np.moveaxis(places, at, -1)
    found = np.zeros((*moved.shape[:-1], rank), np.int64)
    found[..., list(numbers)] = moved
    for axis, other in zip(batching, places_batching, strict=True):
        own = other - (other > at)
        along = [-1 if d == own else 1 for d in range(moved.ndim - 1)]
        found[..., axis] = np.arange(moved.shape[own]).reshape(along)
    return found


def gather(axes: stablehlo.GatherAxes, sizes: Sequence[int], value: Array, places: Array) -> Array:
    """The slices of a tensor.

    Args:
        axes: what the axes are for.
        sizes: of a slice.
    """
    starts = _starts(
        places,
        axes.index_vector_dim,
        axes.start_index_map,
        axes.operand_batching_dims,
        axes.start_indices_batching_dims,
        value.ndim,
    )
    starts = np.clip(starts, 0, np.subtract(value.shape, sizes))
    batch = starts.shape[:-1]
    if not value.ndim:
        return np.broadcast_to(value, batch)
    within: Array = np.indices(tuple(sizes))
    found = value[
        tuple(
            starts[..., a].reshape(*batch, *[1] * value.ndim) + within[a] for a in range(value.ndim)
        )
    ]
    gone = {*axes.collapsed_slice_dims, *axes.operand_batching_dims}
    kept = [n for a, n in enumerate(sizes) if a not in gone]
    found = found.reshape((*batch, *kept))
    inner = range(len(batch), found.ndim)
    return np.moveaxis(found, tuple(inner), sorted(axes.offset_dims))


def scatter(op: stablehlo.ScatterOp, operands: Arrays, merge: Merge) -> list[Array]:
    """Tensors with which slices are merged, in the order of the slices."""
    count, axes = len(op.inputs), op.scatter_dimension_numbers.data
    made = operands[:count]
    places, updates = operands[count], operands[count + 1 :]
    shape = made[0].shape
    starts = _starts(
        places,
        axes.index_vector_dim,
        axes.scatter_dims_to_operand_dims,
        axes.input_batching_dims,
        axes.scatter_indices_batching_dims,
        len(shape),
    )
    gone = {*axes.inserted_window_dims, *axes.input_batching_dims}
    window = sorted(axes.update_window_dims)
    rows = [np.moveaxis(each, window, range(-len(window), 0)) for each in updates]
    inner = iter(rows[0].shape[starts.ndim - 1 :])
    sizes = [1 if a in gone else next(inner) for a in range(len(shape))]
    fits = ((starts >= 0) & (starts + sizes <= shape)).all(-1)
    batch = starts.shape[:-1]
    within: Array = np.indices(sizes)
    at = np.zeros((*batch, *sizes), np.int64)
    for a, n in enumerate(shape):
        at = at * n + starts[..., a].reshape(*batch, *[1] * len(shape)) + within[a]
    given = [each.reshape(at.shape)[fits].ravel() for each in rows]
    found = merged_at([each.ravel() for each in made], at[fits].ravel(), given, merge)
    return [each.reshape(shape) for each in found]


def merged_at(made: Arrays, at: Array, updates: Arrays, merge: Merge) -> list[Array]:
    """Arrays of one axis in which elements are merged with updates, in the order of these.

    Each round merges one update of every element that has some left. Floats become float64.

    Args:
        at: the element of each update.
    """
    found = [np.array(wide(each)) for each in made]
    order = np.argsort(at, kind="stable")
    ordered = at[order]
    turn = np.arange(len(at)) - np.searchsorted(ordered, ordered)
    rounds = np.split(order[np.argsort(turn, kind="stable")], np.cumsum(np.bincount(turn))[:-1])
    for taken in rounds:
        where = at[taken]
        given = [*(each[where] for each in found), *(each[taken] for each in updates)]
        for each, merged in zip(found, merge(given), strict=True):
            each[where] = merged
    return found
