"""Sums of products: convolutions, matrix products, and other sums over two multiplied operands.

Each dimension is in one of four groups: in both operands and the result (batch), in one operand and
the result (left, right), or in both operands only (inner). Each cell is a matrix product of [left,
inner] by [inner, right]. Operands whose strides BLAS cannot read are packed, a few cells at a time;
for a convolution, this is im2col. Products of narrower floats are added in 32 bits, products of
integers exactly. A sum that is kept in 16 bits is rounded after as many products as the body says.
A constant factor of all products is applied to their sum in between: it is a power of two, so both
give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...dialects.structured import Body
from ...ir.support.number_kinds import is_floating
from ...ir.support.strided import as_strided
from .calls import (
    SCRATCH_BYTES,
    Array,
    Call,
    Index,
    Scratch,
    address,
    chunks,
    coalesced,
    run_calls,
)
from .cells import Cells, SumWords
from .conversion import FLOAT32, compute_dtype, convert_into
from .elementwise import elementwise
from .ordered import WIDE, Sums, matmul_calls, scratch_elements
from .reduction import reduction
from .stamps import Stamp

FLOAT16 = np.dtype(np.float16)
"""The dtype in which products of 8-bit floats are added up."""

FEW_PRODUCTS = 1024
"""Cells with a short side and at most so many products are multiplied and added term by term, which
costs less than a call of BLAS."""

FEW_TERMS = 64
"""The most terms of sums that are added one by one."""


@dataclass(frozen=True)
class Roles:
    """The axes of each group in the order of the result's bytes, without axes of one element."""

    batch: tuple[int, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    inner: tuple[int, ...]


def roles(cells: Cells) -> Roles | None:
    """The group of each axis; None if an axis fits no group."""
    a, b = cells.operands
    groups: dict[tuple[bool, bool, bool], list[int]] = {}
    for d, size in enumerate(cells.result.shape):
        if size > 1:
            key = (a.strides[d] != 0, b.strides[d] != 0, cells.result.strides[d] != 0)
            groups.setdefault(key, []).append(d)
    if set(groups) - {
        (True, True, True),
        (True, False, True),
        (False, True, True),
        (True, True, False),
    }:
        return None

    def group(key: tuple[bool, bool, bool], array: Array) -> tuple[int, ...]:
        return tuple(sorted(groups.get(key, ()), key=lambda d: -abs(array.strides[d])))

    small = a if a.size and _elements(a) <= _elements(b) else b
    return Roles(
        group((True, True, True), cells.result),
        group((True, False, True), cells.result),
        group((False, True, True), cells.result),
        group((True, True, False), small),
    )


def _elements(array: Array) -> int:
    return prod(n for n, s in zip(array.shape, array.strides, strict=True) if s)


def adding_dtype(operands: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which products are added.

    For floats, float64 if any is, else float32. For integers of at most 16 bits, float64, in which
    their sums are exact. For wider integers, int64, modulo 2**64.
    """
    floats = tuple(d for d in (*operands, result) if is_floating(d))
    if floats:
        return compute_dtype(*floats)
    exact = all(d.itemsize <= 2 for d in operands)
    return np.dtype(np.float64) if exact else np.dtype(np.int64)


def contraction(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls that compute a sum of products of two operands."""
    groups = roles(cells)
    if groups is None:
        return reduction(cells, scratch)
    if not groups.inner:
        # All merged dimensions have one element, so nothing is added.
        body = Body(cells.body.function, None, cells.body.parameters)
        return elementwise(Cells(body, cells.operands, cells.result, ()), scratch)
    dtype = adding_dtype([a.dtype for a in cells.operands], cells.result.dtype)
    if is_short(cells, groups, dtype):
        return _term_by_term(cells, groups, scratch)
    return _matrix_products(cells, groups, dtype, scratch)


def is_short(cells: Cells, groups: Roles, dtype: np.dtype[Any]) -> bool:
    """Whether products are multiplied and added term by term instead of by BLAS."""
    m, n, k = (
        prod(cells.result.shape[d] for d in group)
        for group in (groups.left, groups.right, groups.inner)
    )
    plain = dtype == cells.result.dtype and all(a.dtype == dtype for a in cells.operands)
    plain = plain and cells.body.product_factor == 1.0
    return plain and min(m, n) <= 2 and k <= FEW_TERMS and m * n * k <= FEW_PRODUCTS


def terms(cells: Cells, groups: Roles) -> list[Index]:
    """The index of each term of the sums, in the order in which terms are added."""
    first = [slice(0, 1) if d in cells.merged else slice(None) for d in range(cells.result.ndim)]
    found: list[Index] = []
    for at in product(*(range(cells.result.shape[d]) for d in groups.inner)):
        index = list(first)
        for d, i in zip(groups.inner, at, strict=True):
            index[d] = slice(i, i + 1)
        found.append((*index, ...))
    return found


def _term_by_term(cells: Cells, groups: Roles, scratch: Scratch) -> list[Call]:
    """The calls that assign the first product to the result, and add the others to it."""
    factors = [a[term] for term in terms(cells, groups) for a in cells.operands]
    *flat, out = coalesced(*factors, cells.result_once)
    calls: list[Call] = []
    for index in chunks(out.shape, SCRATCH_BYTES // 4 // out.itemsize):
        total = out[index]
        value = scratch.take("value", total.shape, total.dtype)
        for i in range(0, len(flat), 2):
            a, b = flat[i][index], flat[i + 1][index]
            if i == 0:
                calls.append((np.multiply, (a, b, total)))
            else:
                calls.append((np.multiply, (a, b, value)))
                calls.append((np.add, (total, value, total)))
    return calls


def swaps_sides(cells: Cells, groups: Roles) -> bool:
    """Whether the first operand gives the columns of the matrix products, and the second the rows.

    The result's innermost axis becomes the columns, so that rows are written contiguously.
    """
    left, right, strides = groups.left, groups.right, cells.result.strides
    return bool(left) and (not right or abs(strides[left[-1]]) < abs(strides[right[-1]]))


def _matrix_products(
    cells: Cells, groups: Roles, dtype: np.dtype[Any], scratch: Scratch
) -> list[Call]:
    a, b = cells.operands
    result = cells.result
    left, right, inner = groups.left, groups.right, groups.inner
    is_swapped = swaps_sides(cells, groups)
    if is_swapped:
        a, b, left, right = b, a, right, left
    shape = result.shape
    batch = tuple(shape[d] for d in groups.batch)
    rows, columns, depth = (prod(shape[d] for d in group) for group in (left, right, inner))

    first = _Matrix.of(a, groups.batch, inner, left, dtype)
    if first.matrix is not None and not _is_row_major(first.matrix):
        first = replace(first, matrix=None)
    second = _Matrix.of(b, groups.batch, inner, right, dtype)
    out = _Matrix.of(result, groups.batch, left, right, dtype)
    if out.matrix is not None and not _is_row_major(out.matrix):
        out = replace(out, matrix=None)
    if first.begins_with(second):
        # For a matrix and its own transpose, NumPy computes one half of the result only.
        first = replace(first, matrix=None)
    is_ordered = dtype == FLOAT32
    sums = sums_of(cells)
    multiply = partial(multiply_calls, sums=sums)

    words = cells.words if sums.dtype is not None else None
    numbers = (
        ()
        if words is None
        else tuple(
            _Matrix.of(each, groups.batch, left, right, each.dtype).points for each in words.numbers
        )
    )

    calls: list[Call] = []
    stamp = cells.stamps[is_swapped] if cells.stamps else None
    if first.matrix is None and stamp is not None and stamp.is_state:
        first = first.packed_once((depth, rows), dtype, stamp, scratch, calls)
    packed = sum(
        size
        for size, matrix in (
            (rows * depth, first),
            (depth * columns, second),
            (rows * columns, out),
        )
        if matrix.matrix is None
    )
    packed += scratch_elements(rows, columns, depth, sums) if is_ordered else 0
    at_once = SCRATCH_BYTES // dtype.itemsize // packed if packed else prod(batch)
    for index in chunks(batch, max(1, at_once)):
        x = first.packed(index, (depth, rows), "first", dtype, scratch, calls).swapaxes(-1, -2)
        y = second.packed(index, (depth, columns), "second", dtype, scratch, calls)
        if is_ordered and words is not None:
            own = tuple(each[index] for each in numbers)
            multiply = partial(multiply_calls, sums=sums, words=SumWords(words.parameters, own))
        if out.matrix is not None:
            calls += multiply(x, y, out.matrix[index], scratch)
            continue
        z = scratch.take("product", (*x.shape[:-1], columns), dtype)
        calls += multiply(x, y, z, scratch)
        points = out.points[index]
        calls.append((_store, (z.reshape(points.shape), points)))
    return calls


def sums_of(cells: Cells) -> Sums:
    """How the products of cells are added up in float32."""
    narrow, dtype = cells.body.narrow, cells.operands[0].dtype
    if cells.body.is_scaled_product:
        dtype = FLOAT16
    factor = cells.body.product_factor
    if narrow is None or not is_floating(dtype) or dtype.itemsize >= FLOAT32.itemsize:
        return replace(WIDE, factor=factor)
    return Sums(narrow.terms, dtype, narrow.overflow, factor)


def multiply_calls(
    x: Array,
    y: Array,
    out: Array,
    scratch: Scratch,
    sums: Sums = WIDE,
    words: SumWords | None = None,
) -> list[Call]:
    """The calls that multiply batches of matrices.

    Float32 is added in one order on every host. Sums of integers are exact in any order. Only
    float64 is added in BLAS's own order.

    Args:
        x: (batch..., rows, depth), with contiguous columns.
        y: (batch..., depth, columns).
        out: (batch..., rows, columns), with contiguous rows, of the dtype of the factors.
        sums, words: as for `matmul_calls`; for float32 only.
    """
    if out.dtype == FLOAT32:
        return matmul_calls(x, y, out, scratch, sums, words)
    return [(np.matmul, (x, y, out))]


@dataclass(frozen=True)
class _Matrix:
    """An array seen as a batch of matrices.

    Attributes:
        points: (batch axes..., row axes..., column axes...).
        matrix: the same elements as (batch axes..., rows, columns), or None if BLAS cannot read
            them in place.
        batch: the number of batch axes.
    """

    points: Array
    matrix: Array | None
    batch: int

    @staticmethod
    def of(
        array: Array,
        batch: tuple[int, ...],
        rows: tuple[int, ...],
        columns: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> _Matrix:
        def view(axes: Sequence[tuple[int, int]]) -> Array:
            return as_strided(array, [n for n, _ in axes], [s for _, s in axes])

        def axes(group: tuple[int, ...]) -> list[tuple[int, int]]:
            return [(array.shape[d], array.strides[d]) for d in group]

        points = view(axes(batch) + axes(rows) + axes(columns))
        row, column = _merged(axes(rows)), _merged(axes(columns))
        if row is None or column is None or array.dtype != dtype:
            return _Matrix(points, None, len(batch))
        unit = array.itemsize
        # The stride of an axis of one element is arbitrary: choose one that BLAS accepts.
        if column[0] == 1:
            column = (1, unit if row[1] != unit else max(row[0], 1) * unit)
        if row[0] == 1:
            row = (1, unit if column[1] != unit else max(column[0], 1) * unit)
        small, large = sorted((row, column), key=lambda axis: axis[1])
        if small[1] != unit or large[1] < small[0] * unit:
            return _Matrix(points, None, len(batch))
        return _Matrix(points, view([*axes(batch), row, column]), len(batch))

    def begins_with(self, other: _Matrix) -> bool:
        """Whether two matrices are both read in place and begin at the same address."""
        if self.matrix is None or other.matrix is None:
            return False
        return address(self.matrix) == address(other.matrix)

    def packed(
        self,
        index: Index,
        shape: tuple[int, int],
        purpose: str,
        dtype: np.dtype[Any],
        scratch: Scratch,
        calls: list[Call],
    ) -> Array:
        """Matrices of a part of the batch, in place or packed into scratch.

        Appends the calls that pack to `calls`.
        """
        if self.matrix is not None:
            return self.matrix[index]
        points = self.points[index]
        kept = self.batch - sum(isinstance(i, int) for i in index)
        pack = scratch.take(purpose, (*points.shape[:kept], *shape), dtype)
        calls += _pack_calls(pack.reshape(points.shape), points, scratch)
        return pack

    def packed_once(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        stamp: Stamp,
        scratch: Scratch,
        calls: list[Call],
    ) -> _Matrix:
        """The matrices, packed into memory of their own each time their variable is written."""
        batch = self.points.shape[: self.batch]
        room = scratch.keep(prod(batch) * prod(shape) * dtype.itemsize)
        if room is None:
            return self
        matrix = room.view(dtype).reshape(*batch, *shape)
        packing = _pack_calls(matrix.reshape(self.points.shape), self.points, scratch)
        calls.append((_WhenWritten(stamp, packing), ()))
        return replace(self, matrix=matrix)


class _WhenWritten:
    """Calls that run only if a variable was written since their last run."""

    def __init__(self, stamp: Stamp, calls: Sequence[Call]) -> None:
        self._stamp = stamp
        self._calls = calls
        self._seen = -1

    def __call__(self) -> None:
        """Run the calls if the variable was written."""
        latest = self._stamp.latest
        if latest != self._seen:
            self._seen = latest
            run_calls(self._calls)


def _pack_calls(target: Array, points: Array, scratch: Scratch) -> list[Call]:
    if points.dtype == target.dtype:
        return scratch.copy_calls(target, points)
    source, target = coalesced(points, target)
    return [(_convert, (target, source))]


def _merged(axes: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Axes, slowest first, as one axis of (size, stride); None if they have no common stride."""
    if not axes:
        return 1, 0
    size, stride = axes[-1]
    for n, s in reversed(axes[:-1]):
        if s != stride * size:
            return None
        size *= n
    return (size, stride) if stride > 0 else None


def _is_row_major(matrix: Array) -> bool:
    rows, columns = matrix.shape[-2:]
    return (columns == 1 or matrix.strides[-1] == matrix.itemsize) and (
        rows == 1 or matrix.strides[-2] >= columns * matrix.itemsize
    )


def _convert(target: Array, source: Array) -> None:
    np.copyto(target, source, casting="unsafe")


def _store(values: Array, out: Array) -> None:
    """Convert values to the result's dtype: floats are rounded, integers wrap."""
    if is_floating(out.dtype) or not is_floating(values.dtype):
        convert_into(values, out)
    else:
        convert_into(values.astype(np.int64), out)
