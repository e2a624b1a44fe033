"""Cycles of a tile's part in the product of a block-sparse matrix and a dense one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...ir.support.arrays import Integers, integers
from ..target import Target
from ..target.dtype_kinds import element_bytes
from .whole_numbers import divided_up

FloatCycles = NDArray[np.float64]

SIDES = (4, 8, 16)
"""The sides of blocks that are the weights of one pass. A larger block is several of 16."""

COLUMN_BYTES = 16
"""Bytes of a row of columns that one loop of the element-wise codelet adds to."""


def block_product_cycles(
    blocks: ArrayLike,
    rows: ArrayLike,
    block: tuple[ArrayLike, ArrayLike],
    columns: ArrayLike,
    dtype_name: str,
    target: Target,
) -> FloatCycles:
    """Cycles to multiply blocks by columns: (candidates,).

    The workers share the columns of each block; element-wise, they share the rows. Source: poplibs
    lib/popsparse, the codelets of static block-sparse and element-wise products with float16.
    Assumed: wider elements take as much longer as their bytes, or as their products in the units.

    Args:
        blocks: those that the tile has.
        rows: the rows of blocks in which they lie.
        block: the height and the width of a block.
        columns: of the dense matrix.
    """
    count, present, wide = integers(blocks), integers(rows), integers(columns)
    height, width = (integers(side) for side in block)
    elements = _element_cycles(count * height * width, present * height, wide, dtype_name, target)
    if target.conv_units(dtype_name, dtype_name) is None:
        return elements
    by_side = [
        _pass_cycles(count, present, (height, width), wide, side, dtype_name, target)
        for side in SIDES
    ]
    return np.minimum.reduce([elements, *by_side])


def _pass_cycles(
    blocks: Integers,
    rows: Integers,
    block: tuple[Integers, Integers],
    columns: Integers,
    side: int,
    dtype_name: str,
    target: Target,
) -> FloatCycles:
    """The cycles if each block is cut into blocks of a side, which are padded to it."""
    facts, workers, each = target.blocks, target.workers, element_bytes(dtype_name)
    high, across = (divided_up(size, side) for size in block)
    start = {
        4: (facts.worker_4_cycles, facts.pass_4_cycles),
        8: (facts.worker_cycles, facts.pass_8_cycles),
        16: (facts.worker_cycles, facts.pass_16_cycles),
    }[side]
    units = target.conv_units(dtype_name, dtype_name)
    assert units is not None
    column = max(side * each / target.vector.vector_bytes, side * side / units.macs_per_cycle)
    weights = side * side * each / target.vector.vector_bytes
    one_pass = start[1] + column * divided_up(columns, workers)
    cycles = blocks * high * across * (facts.block_cycles + weights + workers * one_pass)
    cycles = cycles + rows * high * (facts.row_cycles + workers * facts.row_worker_cycles)
    return np.where(blocks > 0, facts.supervisor_cycles + workers * start[0] + cycles, 0.0)


def _element_cycles(
    elements: Integers, rows: Integers, columns: Integers, dtype_name: str, target: Target
) -> FloatCycles:
    """The cycles of the element-wise codelet, whose workers share the rows, or else the columns."""
    facts, workers = target.blocks, target.workers
    groups = divided_up(columns * element_bytes(dtype_name), COLUMN_BYTES)
    of_a_row = elements / np.maximum(rows, 1)

    def worker(own_rows: Integers, own_groups: Integers) -> FloatCycles:
        row = facts.element_columns_cycles + facts.element_cycles * of_a_row
        return own_rows * (facts.element_row_cycles + own_groups * row)

    shared = np.minimum(
        worker(divided_up(rows, workers), groups), worker(rows, divided_up(groups, workers))
    )
    return np.where(elements > 0, workers * (facts.element_worker_cycles + shared), 0.0)
