"""Evaluates a movement: the tensor that it makes of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...ir.geometry.space import AccessMap, Space
from ..codelets.conversion import converted
from .gather import Array, gathered, whole_box


def evaluate_moves(
    moves: Sequence[Space],
    operands: Sequence[Array],
    result_shape: Sequence[int],
    dtype: np.dtype[Any],
) -> Array:
    """Read each operand through its space, and write its elements to the result; 0 elsewhere.

    Raises ValueError if operands and spaces do not fit each other or the result.
    """
    if len(moves) != len(operands) or not moves:
        raise ValueError(f"{len(operands)} operands through {len(moves)} moves; need as many")
    shape = moves[0].results[0].shape
    result = np.zeros(shape, dtype)
    for i, (space, array) in enumerate(zip(moves, operands, strict=True)):
        (source,), (target,) = space.operands, space.results
        if array.size != prod(source.shape) or target.shape != shape:
            raise ValueError(
                f"operand {i}: shape {array.shape} to {target.shape}; "
                f"its move is from {source.shape} to {shape}"
            )
        if 0 in space.sizes:
            continue
        read = gathered(array.reshape(source.shape), source, whole_box(space.sizes))
        points = np.broadcast_to(converted(read, result.dtype), space.sizes)
        order = _result_dims(target, space)
        places = [_places(target, axis, space.sizes) for axis in range(len(shape))]
        piece = points.transpose(order).reshape([len(p) for p in places])
        if piece.shape == shape and all(
            np.array_equal(p, np.arange(n)) for p, n in zip(places, shape, strict=True)
        ):
            result = np.ascontiguousarray(piece)
        else:
            result[np.ix_(*places)] = piece
    return result.reshape(result_shape)


def _result_dims(target: AccessMap, space: Space) -> list[int]:
    """The dimensions in the order of the result's axes, then the dimensions of size 1."""
    named: list[int] = []
    for i, axis in enumerate(target.axes):
        if len(axis.terms) > 1 or axis.divisor != 1:
            raise ValueError(f"result axis {i} of a move: need a single dimension")
        named += [d for d, _ in axis.terms]
    rest = [d for d in range(len(space.dims)) if d not in named]
    if any(space.sizes[d] != 1 for d in rest) or len(set(named)) != len(named):
        raise ValueError("a move writes one element from several points")
    return named + rest


def _places(target: AccessMap, axis: int, sizes: tuple[int, ...]) -> Array:
    """The indices that a move writes along an axis of the result, in the order of its points."""
    terms = target.axes[axis].terms
    points = np.arange(sizes[terms[0][0]]) * terms[0][1] if terms else np.zeros(1, np.int64)
    places = points + target.axes[axis].offset
    n = target.axes[axis].size
    if len(places) and not (0 <= int(places.min()) and int(places.max()) < n):
        raise ValueError(f"result axis {axis} of a move: writes outside {n} elements")
    return places
