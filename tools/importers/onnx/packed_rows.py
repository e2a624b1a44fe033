"""Rows of tables of integers of few bits, which stay packed in bytes."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from .dequantised import BYTE
from .node import Node
from .packed_weights import packed_matrix


def unpacked_rows(
    node: Node,
    table: tuple[SSAValue, SSAValue, SSAValue],
    indices: SSAValue,
    bits: int,
    length: int,
) -> SSAValue:
    """The rows of a packed table that indices name, as floats of the type of the scales.

    The rows are looked up as bytes, and only these are taken apart: the table stays packed.

    Args:
        table: the integers, ui8 [rows, blocks, bytes of a block]; the scale and the zero point of
            each block, [rows, blocks], or with axes of size 1 that all share.
        bits: the width of an integer. The first one in a byte has its lowest bits.
        length: the elements of a row.
    """
    packed, scales, zeros = table
    element = nn.element_of(scales)

    def looked_up(value: SSAValue) -> SSAValue:
        shared = nn.shape_of(value)[0] == 1 != nn.shape_of(packed)[0]
        return value if shared else node.add(nn.GatherOp(value, indices, 0))

    def of_blocks(value: SSAValue) -> SSAValue:
        found = looked_up(value)
        return node.reshape(found, (*nn.shape_of(found), 1, 1))

    rows = looked_up(packed)
    # All that follows has one iteration space, so that it may become one group.
    rows = node.reshape(rows, (*nn.shape_of(rows), 1))
    if bits < BYTE:
        shifts = node.emitted(np.arange(0, BYTE, bits, dtype=np.uint8))
        apart = node.add(nn.ShiftRightOp(rows, shifts))
        rows = node.add(nn.BitwiseAndOp(apart, node.constant(2**bits - 1, apart)))
    # Integers of at most 8 bits, and their differences, are exact in all types of floats.
    centred = nn.SubOp(node.cast(rows, element), node.cast(of_blocks(zeros), element))
    scaled = node.add(nn.MulOp(node.add(centred), of_blocks(scales)))
    *found, blocks, bytes_, count = nn.shape_of(scaled)
    whole = blocks * bytes_ * count
    rows = node.reshape(scaled, (*found, whole))
    if whole == length:
        return rows
    rank = len(nn.shape_of(rows))
    return node.add(nn.SliceOp(rows, [0] * rank, [1] * rank, (*found, length)))


def rows_of_matrix(node: Node, matrix: SSAValue, indices: SSAValue) -> SSAValue | None:
    """The rows of a dequantised matrix that indices name; None for any other matrix."""
    found = node.graph.dequantised.get(matrix)
    table = None if found is None or found.is_transposed else packed_matrix(node, found, 1)
    if found is None or table is None:
        return None
    rows = unpacked_rows(node, table, indices, found.bits, found.integers.shape[1])
    return node.cast(rows, nn.element_of(matrix))
