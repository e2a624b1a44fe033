"""Turns coordinates into operands: tensors of the numbers that a body reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...dialects.coordinates import coordinate_dtypes
from ...dialects.structured import Structure
from ...ir.geometry.space import AccessMap, AxisMap, Position, Space, positions_of
from .gather import Array


def with_coordinates(
    structure: Structure, operands: Sequence[Array], result_dtype: np.dtype[Any]
) -> tuple[Structure, list[Array]]:
    """An equivalent structure without coordinates, and its operands.

    Each coordinate becomes a tensor whose axes are the dimensions that it depends on.
    """
    space = structure.space
    coordinates = space.coordinates
    if not coordinates:
        return structure, list(operands)
    dtypes = coordinate_dtypes(structure, [*(a.dtype for a in operands), result_dtype])
    pairs = zip(coordinates, dtypes, strict=True)
    tensors = [_tensor(space, position, dtype) for position, dtype in pairs]
    maps = [_map(space, position) for position in coordinates]
    positions = tuple(each for each in space.positions if not each.is_coordinate)
    every = tuple(structure.with_coordinates(space.operands, maps))
    plain = replace(structure, space=replace(space, operands=every, positions=positions))
    return plain, structure.with_coordinates(operands, tensors)


def _dims(space: Space, position: Position) -> list[int]:
    return sorted(d for d in position.access.dims() if space.dims[d].size != 1)


def _map(space: Space, position: Position) -> AccessMap:
    dims = _dims(space, position)
    return AccessMap(tuple(AxisMap(space.dims[d].size, ((d, 1),)) for d in dims))


def _tensor(space: Space, position: Position, dtype: np.dtype[Any]) -> Array:
    dims = _dims(space, position)
    points = [np.zeros((1,) * len(dims), np.int64) for _ in space.dims]
    for i, d in enumerate(dims):
        along = [-1 if i == j else 1 for j in range(len(dims))]
        points[d] = np.arange(space.dims[d].size).reshape(along)
    return np.asarray(positions_of(position, points)).astype(dtype)
