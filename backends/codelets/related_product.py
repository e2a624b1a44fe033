"""Sums of products at the points where relations hold: products of block-sparse matrices.

The points at which the relations hold are listed, as in a lookup. At a listed point, each operand
is a small matrix, so the sum is one matrix product for each listed point. NumPy adds up the
products that go to the same elements of the result, some points at a time, in an order that is the
same on every host. All other elements are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .calls import SCRATCH_BYTES, Array, Call, Scratch, run_calls
from .cells import Cells
from .contraction import adding_dtype, multiply_calls
from .conversion import convert_into
from .lookup import Lookup, find_lookup, find_places


@dataclass(frozen=True)
class _Product:
    """A sum of products on fixed views.

    Attributes:
        batch, left, right, inner: the axes along which points are not listed: kept ones that both
            operands or none have, that only the first has, and that only the second has; and those
            that are merged.
        dtype: the dtype in which products are added.
        scratch: for the products of a few points at a time.
    """

    lookup: Lookup
    batch: tuple[int, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    inner: tuple[int, ...]
    dtype: np.dtype[Any]
    scratch: Scratch

    @property
    def order(self) -> tuple[int, ...]:
        """The listed axes, then those of a product, and the merged ones."""
        return (*self.lookup.varying, *self.batch, *self.left, *self.right, *self.inner)

    def size(self, *axes: int) -> int:
        """The points along some axes."""
        return prod(self.lookup.cells.result.shape[d] for d in axes)

    @cached_property
    def points_at_once(self) -> int:
        """How many listed points are multiplied at once, so that all operands fit the scratch."""
        sides = self.size(*self.left), self.size(*self.right), self.size(*self.inner)
        pairs = sides[0] * sides[1] + sides[0] * sides[2] + sides[1] * sides[2]
        each = pairs * self.size(*self.batch) * self.dtype.itemsize
        return max(SCRATCH_BYTES // max(each, 1), 1)


def related_product(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls that compute a sum of products at the points that meet the relations."""
    dtype = adding_dtype([a.dtype for a in cells.operands[:2]], cells.result.dtype)
    lookup = find_lookup(cells, dtype)
    first, second = ([_has(a, d) for d in range(a.ndim)] for a in cells.operands[:2])
    free = [d for d in range(cells.result.ndim) if d not in lookup.varying]
    kept = [d for d in free if d not in cells.merged]
    product = _Product(
        lookup,
        tuple(d for d in kept if first[d] == second[d]),
        tuple(d for d in kept if first[d] and not second[d]),
        tuple(d for d in kept if second[d] and not first[d]),
        tuple(d for d in free if d in cells.merged),
        dtype,
        scratch,
    )
    return [(_run, (product,))]


def _has(array: Array, d: int) -> bool:
    """Whether the elements of a view may differ along an axis."""
    return array.strides[d] != 0 and array.shape[d] > 1


def _run(task: _Product) -> None:
    cells, listed = task.lookup.cells, task.lookup.varying
    places = find_places(task.lookup)
    into = cells.result_once.transpose(task.order)
    total = np.zeros(into.shape, task.dtype)
    kept = tuple(np.zeros_like(places[d]) if d in cells.merged else places[d] for d in listed)
    shape = total.shape[: len(listed)]
    rows = np.ravel_multi_index(kept, shape) if len(kept[0]) else kept[0]
    # Points of one row become neighbours, and keep their order.
    order = np.argsort(rows, kind="stable")
    sums = total.reshape(prod(shape), -1)
    with np.errstate(all="ignore"):
        for start in range(0, len(order), task.points_at_once):
            some = order[start : start + task.points_at_once]
            products = _products(task, tuple(places[d][some] for d in listed))
            starts = np.flatnonzero(np.diff(rows[some], prepend=-1))
            sums[rows[some][starts]] += np.add.reduceat(products, starts, axis=0)
        convert_into(total, into)


def _products(task: _Product, at: tuple[NDArray[np.int64], ...]) -> Array:
    """The products of the operands at some listed points: (points, elements)."""
    first, second = task.lookup.cells.operands[:2]
    lhs = _matrices(task, first, at, task.inner, task.left).swapaxes(-1, -2)
    rhs = _matrices(task, second, at, task.inner, task.right)
    products = np.empty((*lhs.shape[:-1], rhs.shape[-1]), task.dtype)
    run_calls(multiply_calls(lhs, rhs, products, task.scratch))
    return products.reshape(len(at[0]), -1)


def _matrices(
    task: _Product,
    operand: Array,
    at: tuple[NDArray[np.int64], ...],
    rows: tuple[int, ...],
    columns: tuple[int, ...],
) -> Array:
    """What an operand has at some listed points: (points, batch, rows, columns)."""
    axes = (*task.batch, *rows, *columns)
    kept = {*task.lookup.varying, *axes}
    once = operand[tuple(slice(None) if d in kept else slice(0, 1) for d in range(operand.ndim))]
    rest = tuple(d for d in range(operand.ndim) if d not in kept)
    found = once.transpose(*task.lookup.varying, *axes, *rest)[at]
    return np.ascontiguousarray(found, task.dtype).reshape(
        len(at[0]), task.size(*task.batch), task.size(*rows), task.size(*columns)
    )
