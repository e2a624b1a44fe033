"""Applies the scalar function at every point, directly into the result."""

from __future__ import annotations

from .calls import Call, Scratch, chunks, coalesced
from .cells import Cells
from .scalar import apply_into, scalar_function

CHUNK_ELEMENTS = 1 << 20
"""The most elements of one call. It bounds the copies of functions that convert their operands."""


def elementwise(cells: Cells, scratch: Scratch) -> list[Call]:
    """The calls that compute a body without a combiner."""
    function = scalar_function(cells.body.function)
    *operands, result = coalesced(*cells.operands, cells.result)
    calls: list[Call] = []
    for index in chunks(result.shape, CHUNK_ELEMENTS):
        inputs = [a[index] for a in operands]
        calls.append((apply_into, (function, cells.body.parameters, inputs, result[index])))
    return calls
