"""Cycles of a tile's part in a product with integers of few bits, several of which share a byte."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Integers
from ..target import Target
from ..target.dtype_kinds import kind_of
from .whole_numbers import divided_up

FloatCycles = NDArray[np.float64]

GROUP = 4
"""The integers that are taken apart at once: a vector of float16."""


def packed_product_cycles(
    rows: Integers,
    blocks: Integers,
    bytes_: Integers,
    field: Integers,
    bits: int,
    dtype_name: str,
    contraction: FloatCycles,
    target: Target,
) -> FloatCycles:
    """The cycles of the faster of two codelets; the workers share the rows of the matrix.

    One multiplies each vector of integers by the value as soon as it is taken apart. The other
    writes the integers to memory as floats, a few rows at a time, for the units that multiply.
    Both multiply by whole numbers, which float16 holds exactly, and by the scale once for each sum
    over a block.

    Assumed, counted in instructions of the floating-point pipeline, which moves bytes, combines
    bits and subtracts vectors; loads and stores run beside it. An integer becomes the last bits of
    1024.0, from which 1024 and the zero point are subtracted.

    Args:
        rows, blocks, bytes_: of the packed matrix on the tile: rows, blocks of a row, bytes of a
            block.
        field: the vectors that it is multiplied with.
        dtype_name: of their elements.
        contraction: the cycles to multiply the same numbers as floats.
    """
    facts, workers = target.packed, target.workers
    words = divided_up(bytes_, target.vector.vector_bytes)
    groups = target.vector.vector_bytes * 8 // bits // GROUP
    is_wide = kind_of(dtype_name) != "float16"
    apart = facts.group_cycles + (bits < 8) * facts.mask_cycles + is_wide * facts.widen_cycles
    word = facts.word_cycles + groups * apart
    products = groups * (2 if is_wide else 1)
    own = divided_up(rows, workers)
    start = facts.supervisor_cycles + workers * facts.worker_cycles
    scales = blocks * (facts.block_cycles + field * facts.scale_cycles)
    row = facts.row_cycles + blocks * words * word
    streamed = row + field * facts.row_cycles + scales + blocks * words * field * products
    unpacked = start + workers * own * (row + scales) + contraction
    return np.minimum(start + workers * own * streamed, unpacked).astype(np.float64)
