"""Sums of the products of a box of points, by batched matrix multiplication."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .gather import Array, Box, gathered
from .parts import Parts
from .roles import Roles


def add_products(
    roles: Roles, operands: Sequence[Array], box: Box, parts: Parts, region: Box
) -> None:
    """Add the products of a box to the parts of a region, by one batched matrix multiplication."""
    sizes = [b - a for a, b in box]
    used = [access.dims() for access in roles.space.operands]
    shared = used[0] & used[1]
    batch = [d for d in roles.kept if d in shared]
    rows = [d for d in roles.kept if d in used[0] and d not in shared]
    columns = [d for d in roles.kept if d in used[1] and d not in shared]
    inner = [d for d in roles.reduced if d in shared]
    (factor,) = roles.parameters or (1.0,)
    nowhere = prod(sizes[d] for d in roles.reduced if d not in used[0] | used[1])

    def matrix(i: int, left: list[int], right: list[int], by: np.ufunc | None = None) -> Array:
        """An operand, or a function of it, as a batch of contiguous matrices."""
        array = gathered(operands[i], roles.space.operands[i], box)
        if alone[i]:
            array = array.astype(roles.read_as[i], copy=False)
            array = (array if by is None else by(array)).sum(alone[i], keepdims=True)
        order = [*batch, *left, *right]
        rest = tuple(d for d in range(len(sizes)) if d not in order)
        shape = [prod(sizes[d] for d in dims) for dims in (batch, left, right)]
        array = np.ascontiguousarray(array.transpose([*order, *rest]).reshape(shape))
        return array.astype(roles.read_as[i], copy=False)

    def product(a: Array, b: Array) -> Array:
        flat = _matmul(a, b)
        if nowhere != 1:
            flat *= nowhere
        if factor != 1.0:
            flat *= factor
        dims = [*batch, *rows, *columns]
        return roles.in_result_order(flat.reshape([sizes[d] for d in dims]), dims)

    place, whole = roles.place(box, region), box == region
    alone = [tuple(d for d in roles.reduced if d in used[i] and d not in shared) for i in range(2)]
    a, b = matrix(0, rows, inner), matrix(1, inner, columns)
    parts.value = _plus(parts.value, place, product(a, b), whole)
    if parts.size is not None:
        a = matrix(0, rows, inner, np.absolute) if alone[0] else np.abs(a)
        b = matrix(1, inner, columns, np.absolute) if alone[1] else np.abs(b)
        parts.size = _plus(parts.size, place, product(a, b), whole)


def _plus(into: Array, place: tuple[Any, ...], values: Array, whole: bool) -> Array:
    """An array with values added in a region.

    Args:
        whole: whether the region is the whole array and nothing has been added yet. Along an axis
            where the values are equal, `values` may have a single element.
    """
    if whole and values.size == into.size:
        return np.ascontiguousarray(values, into.dtype).reshape(into.shape)
    into[place] += values
    return into


def _matmul(a: Array, b: Array) -> Array:
    """The batched product of two arrays of matrices; exact modulo 2^64 for integers."""
    if a.dtype.kind == "f" or 0 in a.shape or 0 in b.shape:
        return np.matmul(a, b)
    reach = float(np.abs(a.astype(np.float64)).max()) * float(np.abs(b.astype(np.float64)).max())
    if reach * a.shape[-1] < 2.0**52:
        wide = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return wide.astype(a.dtype)
    return np.matmul(a, b)
