"""Reductions: any scalar function, merged by a combiner. Pooling, sums, extremes.

Windows are walked point by point, each step on all tiles at once. NumPy's own reductions compute
long reductions with few results. Both orders are fixed, so that two runs agree to the bit.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...ir.support.number_kinds import is_floating
from .calls import SCRATCH_BYTES, Array, Call, Index, Scratch, chunks, coalesced
from .cells import Cells
from .conversion import compute_dtype, convert_into
from .scalar import apply_into, scalar_function
from .ufuncs import merge_into, reduce_into

MERGE: dict[str, np.ufunc] = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
    "pick": np.bitwise_or,
}
"""The ufunc of each combiner that has one. That of pick works on bits."""

WINDOW_POSITIONS = 512
"""The most points of reductions that are walked point by point."""


def merging_dtype(value: np.dtype[Any], result: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which values are merged, before they are converted to the result's.

    Floats narrower than 32 bits are merged in float32, and rounded once at the end; integers in the
    result's dtype, modulo its width; booleans in int64.
    """
    if is_floating(value) or is_floating(result):
        return compute_dtype(*(d for d in (value, result) if is_floating(d)))
    if result.kind == "b":
        return np.dtype(np.int64)
    return result


def reduction(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls that compute a body with a combiner."""
    body = cells.body
    assert body.combiner is not None
    function = scalar_function(body.function)
    value = function.result_dtype(*(a.dtype for a in cells.operands))
    result = cells.result_once
    dtype = merging_dtype(value, result.dtype)
    if body.combiner == "pick":
        dtype = value
    if body.combiner in ("max", "min") and not is_floating(value) and not is_floating(dtype):
        # Find extremes before converting to a narrower dtype, which would wrap them.
        dtype = np.dtype(np.int64) if value.kind == "b" else value
    if walks(cells):
        return _walk(cells, result, dtype, scratch)
    return _reduce(cells, result, dtype, scratch)


def is_walked(points: int, results: int) -> bool:
    """Whether a reduction of this many points is walked point by point, over this many results."""
    return points <= WINDOW_POSITIONS and results >= points


def walks(cells: Cells) -> bool:
    """Whether the points of these cells are merged one by one, each step over all results."""
    return is_walked(prod(cells.result.shape[d] for d in cells.merged), cells.result_once.size)


def merged_points(cells: Cells) -> list[Index]:
    """The index of each point that is merged, in the order of merging."""
    points: list[Index] = []
    for at in product(*(range(cells.result.shape[d]) for d in cells.merged)):
        index = [slice(None)] * cells.result.ndim
        for d, i in zip(cells.merged, at, strict=True):
            index[d] = slice(i, i + 1)
        # The ellipsis makes arrays of rank 0 views instead of copies, whose values would be too
        # old.
        points.append((*index, ...))
    return points


def _walk(cells: Cells, result: Array, dtype: np.dtype[Any], scratch: Scratch) -> list[Call]:
    body = cells.body
    assert body.combiner is not None
    merge, function = MERGE[body.combiner], scalar_function(body.function)
    points = merged_points(cells)
    *flat, out = coalesced(*(a[point] for point in points for a in cells.operands), result)
    arity = len(cells.operands)
    steps = [flat[i : i + arity] for i in range(0, len(flat), arity)]
    is_identity = body.function == "identity"
    calls: list[Call] = []
    for index in chunks(out.shape, SCRATCH_BYTES // 4 // dtype.itemsize):
        piece = out[index]
        total = piece
        # A contiguous total stays in the cache, while the rows of different tiles are pages apart.
        if piece.dtype != dtype or (len(steps) > 2 and not piece.flags.c_contiguous):
            total = scratch.take("total", piece.shape, dtype)
        for i, step in enumerate(steps):
            inputs = [a[index] for a in step]
            if i == 0:
                calls.append((apply_into, (function, body.parameters, inputs, total)))
            elif is_identity:
                calls.append((merge_into, (merge, total, inputs[0])))
            else:
                value = scratch.take("value", piece.shape, dtype)
                calls.append((apply_into, (function, body.parameters, inputs, value)))
                calls.append((merge_into, (merge, total, value)))
        if total is not piece:
            calls.append((convert_into, (total, piece)))
    return calls


def _reduce(cells: Cells, result: Array, dtype: np.dtype[Any], scratch: Scratch) -> list[Call]:
    body = cells.body
    assert body.combiner is not None
    merge, function = MERGE[body.combiner], scalar_function(body.function)
    merged = tuple(cells.merged)
    kept = [d for d in range(result.ndim) if d not in merged]
    order = (*kept, *merged)
    operands = [a.transpose(order) for a in cells.operands]
    out = result.transpose(order)[(...,) + (0,) * len(merged)]
    axes = tuple(range(len(kept), result.ndim))
    inner = prod(operands[0].shape[len(kept) :])
    is_direct = body.function == "identity" and operands[0].dtype == dtype
    calls: list[Call] = []
    for index in chunks(out.shape, max(1, SCRATCH_BYTES // (dtype.itemsize * max(inner, 1)))):
        inputs, piece = [a[index] for a in operands], out[index]
        drop = operands[0].ndim - inputs[0].ndim
        value = inputs[0]
        if not is_direct:
            value = scratch.take("value", value.shape, dtype)
            calls.append((apply_into, (function, body.parameters, inputs, value)))
        total = piece if piece.dtype == dtype else scratch.take("total", piece.shape, dtype)
        over = tuple(a - drop for a in axes)
        calls.append((reduce_into, (merge, value, over, total)))
        if total is not piece:
            calls.append((convert_into, (total, piece)))
    return calls
