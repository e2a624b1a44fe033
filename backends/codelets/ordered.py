"""Products of matrices whose terms are added in one order on every host.

BLAS adds in an order that depends on the processor and on the sizes of the matrices, and often
treats the last rows and columns differently. The machine's bytes must not depend on that. Each
result is a chain of fused multiplications and additions, from zero, over at most TERMS terms. The
sums of further chains are added to it in turn. A sum that is kept in a narrower type is rounded to
that type after each chain.

BLAS is used for sizes of matrices at which it adds in this order; each size is tried once. If BLAS
does so only for a few rows, it is called with a few rows at a time. If it never does, NumPy
computes the chains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...ir.support.number_formats import Overflow, limited
from ...ir.support.strided import as_strided
from ...ir.well_known import MOST_TERMS
from .calls import Array, Call, Scratch, chunks
from .cells import SumWords
from .conversion import convert_into, float_limits
from .float_rounding import round_stochastically

TERMS = MOST_TERMS
"""Terms of one chain. BLAS cuts longer sums into pieces, which differ from host to host."""

PIECES = (8, 4, 3, 2)
"""Numbers of rows to try, if BLAS adds in another order for all rows together."""

TRIALS, DISTINCT = 8, 4
"""Pairs of matrices in a trial, and the number of different rows and columns of each."""


ROUNDED_AT_ONCE = 1 << 16
"""Elements whose random words are computed at once, so that they stay in a cache."""


@dataclass(frozen=True)
class Sums:
    """How the chains of a sum are added up.

    Attributes:
        terms: of one chain.
        dtype: the narrower type to which the sum is rounded after each chain; None for float32.
        overflow: which number replaces a sum that is too large for it.
        factor: a power of two by which each product is multiplied.
    """

    terms: int = TERMS
    dtype: np.dtype[Any] | None = None
    overflow: Overflow = Overflow.INFINITY
    factor: float = 1.0


WIDE = Sums()


def matmul_calls(
    x: Array,
    y: Array,
    out: Array,
    scratch: Scratch,
    sums: Sums = WIDE,
    words: SumWords | None = None,
    kept: tuple[int, int] | None = None,
) -> list[Call]:
    """The calls that multiply batches of float32 matrices, with the same bytes on every host.

    Args:
        x: (batch..., rows, depth), with contiguous columns; must not begin where y does.
        y: (batch..., depth, columns).
        out: (batch..., rows, columns), with contiguous rows.
        words: what the words of the roundings are made of, as arrays over the axes of the batch,
            those that make up rows, and those that make up columns; by default, sums round to
            nearest. The place of a rounding is the number of its chain, counted from 1.
        kept: the rows and columns that words round; all by default.
    """
    if 1 in out.shape[-2:]:
        return _at_least_two(x, y, out, scratch, sums, words)
    calls: list[Call] = []
    for first in range(0, x.shape[-1], sums.terms):
        left, right = x[..., first : first + sums.terms], y[..., first : first + sums.terms, :]
        chain = scratch.take("more", out.shape, out.dtype) if first else out
        calls += _chains(left, right, chain)
        if sums.factor != 1:
            calls.append((np.multiply, (chain, chain.dtype.type(sums.factor), chain)))
        if first:
            calls.append((np.add, (out, chain, out)))
        if sums.dtype is not None and words is not None:
            rows, columns = kept or out.shape[-2:]
            rounded = out[..., :rows, :columns].reshape(words.numbers[0].shape)
            place = 1 + first // sums.terms
            calls.append((round_by_words, (rounded, words, place)))
        elif sums.dtype is not None:
            narrow = scratch.take("narrow", out.shape, sums.dtype)
            calls.append((round_through, (out, narrow, sums.overflow)))
    return calls


def round_by_words(values: Array, words: SumWords, place: int) -> None:
    """Round float32 values to one of the two numbers of a narrower type around each, in place.

    Args:
        values: of the shape of the words' numbers.
        place: of the rounding in the sum.
    """
    for index in chunks(values.shape, ROUNDED_AT_ONCE):
        numbers = (each[index] for each in words.numbers)
        arrays = (values[index], *numbers)
        round_stochastically(words.parameters, arrays, values[index], values.dtype, place)


def round_through(values: Array, narrow: Array, overflow: Overflow) -> None:
    """Round float32 values to nearest numbers of a narrower type, in place.

    Args:
        narrow: of that type; is overwritten.
    """
    convert_into(values, narrow)
    np.copyto(values, narrow)
    if overflow is not Overflow.INFINITY:
        np.copyto(values, limited(values, float_limits(narrow.dtype).largest, overflow))


def scratch_elements(rows: int, columns: int, depth: int, sums: Sums = WIDE) -> int:
    """Elements of scratch that the calls need for each product of a batch."""
    twice = 2 * depth * ((rows == 1) + (columns == 1))
    rows, columns = max(rows, 2), max(columns, 2)
    times = (twice > 0) + (depth > sums.terms) + (sums.dtype is not None)
    return twice + rows * columns * times


def _at_least_two(
    x: Array, y: Array, out: Array, scratch: Scratch, sums: Sums, words: SumWords | None
) -> list[Call]:
    """The calls for a single row or column, which is doubled: BLAS adds vectors in other orders."""
    *batch, rows, columns = out.shape
    calls: list[Call] = []
    if rows == 1:
        own = scratch.take("rows", (*batch, x.shape[-1], 2), x.dtype).swapaxes(-1, -2)
        calls.append((np.copyto, (own, x)))
        x = own
    if columns == 1:
        own = scratch.take("columns", (*batch, y.shape[-2], 2), y.dtype)
        calls.append((np.copyto, (own, y)))
        y = own
    twice = scratch.take("twice", (*batch, max(rows, 2), max(columns, 2)), out.dtype)
    calls += matmul_calls(x, y, twice, scratch, sums, words, (rows, columns))
    calls.append((np.copyto, (out, twice[..., :rows, :columns])))
    return calls


def _chains(x: Array, y: Array, out: Array) -> list[Call]:
    """The calls that multiply matrices of at most TERMS terms."""
    rows, depth = x.shape[-2:]
    columns = y.shape[-1]
    is_row_major = y.strides[-1] == y.itemsize
    step = next(
        (
            n
            for n in (rows, *(n for n in PIECES if n < rows))
            if adds_in_order(n, columns, depth, is_row_major)
        ),
        None,
    )
    if step is None:
        return [(fused_matmul, (x, y, out))]
    whole = rows - rows % step
    calls: list[Call] = [
        (np.matmul, (_pieces(x, whole, step), y[..., None, :, :], _pieces(out, whole, step)))
    ]
    if whole < rows:
        # The last piece overlaps the piece before, and writes the same values to the overlap.
        calls.append((np.matmul, (x[..., rows - step :, :], y, out[..., rows - step :, :])))
    return calls


def _pieces(matrix: Array, rows: int, step: int) -> Array:
    """The first rows of matrices in pieces of `step`: (batch..., pieces, step, columns)."""
    *batch, height, width = matrix.strides
    shape = (*matrix.shape[:-2], rows // step, step, matrix.shape[-1])
    return as_strided(matrix, shape, (*batch, step * height, height, width))


@lru_cache(maxsize=4096)
def adds_in_order(rows: int, columns: int, depth: int, is_row_major: bool) -> bool:
    """Whether BLAS adds float32 products of these sizes one term after another.

    The first matrix has contiguous columns.

    The matrices of a trial have few distinct rows and columns, so that all expected results follow
    from few chains.

    Args:
        is_row_major: whether the second has contiguous rows.
    """
    left, right, expected = _trials(depth)
    row, column = np.arange(rows) % DISTINCT, np.arange(columns) % DISTINCT
    first = np.ascontiguousarray(left[:, :, row]).swapaxes(-1, -2)
    second = np.ascontiguousarray(right[:, :, column])
    if not is_row_major:
        second = np.ascontiguousarray(second.swapaxes(-1, -2)).swapaxes(-1, -2)
    found = np.matmul(first, second)
    return bool((found == expected[:, row][:, :, column]).all())


@lru_cache(maxsize=TERMS)
def _trials(depth: int) -> tuple[Array, Array, Array]:
    """The distinct columns of the first matrices, rows of the second ones, and their products."""
    random = np.random.default_rng(depth)
    left, right = random.standard_normal((2, TRIALS, depth, DISTINCT), np.float32)
    expected = np.empty((TRIALS, DISTINCT, DISTINCT), np.float32)
    fused_matmul(left.swapaxes(-1, -2), right, expected)
    return left, right, expected


def fused_matmul(x: Array, y: Array, out: Array) -> None:
    """Multiply batches of float32 matrices without BLAS; each result is one chain of additions.

    Products are exact in float64. A sum is rounded to odd: its last bit is 1 if it is inexact.
    Rounding it again, to float32, then gives the same as rounding once: Boldo and Melquiond,
    "Emulation of a FMA and correctly rounded sums", IEEE TC 2008.
    """
    total = np.zeros(out.shape, np.float64)
    for k in range(x.shape[-1]):
        column, row = x[..., :, k, None].astype(np.float64), y[..., k, None, :]
        _add_to_odd(total, column * row)
        total = total.astype(np.float32).astype(np.float64)
    np.copyto(out, total, casting="same_kind")


def _add_to_odd(total: Array, more: Array) -> None:
    """Add float64 to float64; an inexact sum is rounded to the neighbour whose last bit is 1."""
    found = total + more
    # The error of a sum: Knuth's, The Art of Computer Programming 2, 4.2.2.
    there = found - total
    lost = (total - (found - there)) + (more - there)
    is_even = (found.view(np.int64) & 1) == 0
    nearer = np.nextafter(found, np.copysign(np.inf, lost))
    np.copyto(total, np.where((lost != 0) & is_even & np.isfinite(found), nearer, found))
