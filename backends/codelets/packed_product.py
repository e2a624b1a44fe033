"""Sums of products with integers of few bits, several of which share a byte.

The integers are taken apart once for all rows that they are multiplied with, some of them at a
time. What follows is a sum of products of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ...dialects.structured import Body
from ...ir.support.strided import as_strided
from .calls import SCRATCH_BYTES, Array, Call, Scratch, chunks
from .cells import Cells
from .contraction import contraction
from .conversion import compute_dtype
from .scalar import unpack_into


def packed_product(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls that take integers apart and multiply them, some at a time."""
    value, *packed = cells.operands
    dtype = compute_dtype(value.dtype, packed[1].dtype)
    shape = cells.result.shape
    # The axes of the integers; along the kept ones, they may be taken apart piece by piece.
    own = [any(a.strides[d] for a in packed) for d in range(len(shape))]
    cut = [d for d, is_own in enumerate(own) if is_own and d not in cells.merged]
    rest = prod(n for d, n in enumerate(shape) if own[d] and d not in cut)
    body = Body("mul", "sum")
    bits = int(cells.body.parameters[0])
    calls: list[Call] = []
    at_once = max(SCRATCH_BYTES // dtype.itemsize // max(rest, 1), 1)
    for piece in chunks([shape[d] for d in cut], at_once):
        index: list[Any] = [slice(None)] * len(shape)
        for d, at in zip(cut, piece, strict=False):
            if at is not ...:
                index[d] = slice(at, at + 1) if isinstance(at, int) else at
        parts = [a[tuple(index)] for a in packed]
        once = [_once(a, own) for a in parts]
        matrix = scratch.take("unpacked", once[0].shape, dtype)
        calls.append((unpack_into, (bits, once, matrix)))
        whole = np.broadcast_to(matrix, parts[0].shape)
        operands = (value[tuple(index)], whole)
        made = replace(
            cells, body=body, operands=operands, result=cells.result[tuple(index)], stamps=()
        )
        calls += contraction(made, scratch)
    return calls


def _once(array: Array, own: Sequence[bool]) -> Array:
    """An array with one element along the axes that none of the integers depends on."""
    shape = [n if each else min(n, 1) for n, each in zip(array.shape, own, strict=True)]
    return as_strided(array, shape, array.strides)
