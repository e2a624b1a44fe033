"""Scans and sorts, along the whole dimension of a space.

Each row is computed from its first element to its last, so that two runs agree to the bit. A row is
read before any of it is written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dialects.along import Along
from ...ir.geometry.blocks import fill_of
from ...ir.support.number_kinds import is_floating
from .calls import SCRATCH_BYTES, Array, Call, Scratch, chunks
from .cells import Cells
from .conversion import FLOAT32, convert_into
from .reduction import MERGE, merging_dtype


def whole(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls that compute a scan or sort along the whole dimension."""
    del scratch
    along = cells.body.along
    assert along is not None
    operand, result = (np.moveaxis(a, cells.whole, -1) for a in (cells.operands[0], cells.result))
    row = max(operand.shape[-1], 1) * max(operand.itemsize, 4)
    pieces = chunks(operand.shape[:-1], max(SCRATCH_BYTES // row, 1))
    return [(_run, (along, operand[index], result[index])) for index in pieces]


def _run(along: Along, operand: Array, result: Array) -> None:
    dtype = merging_dtype(operand.dtype, result.dtype)
    convert_into(sequence(along, operand, dtype), result)


def sequence(along: Along, values: Array, dtype: np.dtype[Any]) -> Array:
    """The scan or sort of values along their last axis.

    A sort returns elements of the values' own dtype and bits, and indices int64.

    Args:
        dtype: in which a scan merges elements.
    """
    if along.reverse:
        values = values[..., ::-1]
    match along.name:
        case "sort":
            found = _sorted(values)
        case "sort_indices":
            found = _order(values)
            if along.reverse:
                found = values.shape[-1] - 1 - found
        case _:
            found = _scanned(along, values.astype(dtype, copy=False))
    return found[..., ::-1] if along.reverse else found


def _scanned(along: Along, values: Array) -> Array:
    with np.errstate(all="ignore"):
        if not along.exclusive:
            return MERGE[along.name].accumulate(values, axis=-1, dtype=values.dtype)
        found = np.empty_like(values)
        found[..., :1] = fill_of(along.identity, values.dtype)
        if values.shape[-1] > 1:
            MERGE[along.name].accumulate(
                values[..., :-1], axis=-1, dtype=values.dtype, out=found[..., 1:]
            )
        return found


def _comparable(values: Array) -> Array:
    """Values that NumPy compares as numbers, NaN last."""
    is_narrow = is_floating(values.dtype) and values.itemsize < FLOAT32.itemsize
    return values.astype(FLOAT32) if is_narrow else values


def _order(values: Array) -> Array:
    """The index of each element of the sorted order."""
    return np.argsort(_comparable(values), axis=-1, kind="stable")


def _sorted(values: Array) -> Array:
    """The elements in order, with their bits."""
    if _comparable(values) is values:
        return np.sort(values, axis=-1, kind="stable")
    return np.take_along_axis(values, _order(values), axis=-1)
