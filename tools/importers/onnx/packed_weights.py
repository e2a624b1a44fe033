"""Weights of few bits that DequantizeLinear reads, packed for the products that read its result.

A product with such a weight multiplies the packed integers. If nothing else reads the floats, the
program does without them.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from ....dialects import nn
from ....ir.support.number_kinds import bit_width, is_whole, whole_limits
from ..building import Known
from .dequantised import BYTE, Dequantised
from .node import Node
from .tensors import Array


def dequantised_weight(node: Node) -> Dequantised | None:
    """The weight that a node of DequantizeLinear reads; None if products cannot read it packed.

    Integers of 8 bits with one scale for each row or column are not packed: products multiply them
    in other ways.
    """
    value, size = node.value(0), node.integer("block_size", 0)
    if not isinstance(value, Known) or len(value.shape) != 2 or not is_whole(value.dtype):
        return None
    bits = bit_width(value.dtype)
    if bits not in nn.PACKED_BITS or (bits == BYTE and not size):
        return None
    scale, zero = node[1], None
    if not isinstance(nn.element_of(scale), AnyFloat):
        return None
    if node.has(2):
        zero = node.graph.known(node.value(2))
        if zero is None:
            return None
    axis = node.axis(node.integer("axis", 1), 2) if len(nn.shape_of(scale)) else 0
    return Dequantised(value, scale, zero, axis, size)


def packed_product(
    node: Node, value: SSAValue, matrix: SSAValue, *, is_transposed: bool = False
) -> SSAValue | None:
    """The product of floats and a dequantised matrix [k, n]; None for any other matrix.

    Args:
        is_transposed: whether the matrix is [n, k].
    """
    found = node.graph.dequantised.get(matrix)
    if found is None or not nn.shape_of(value):
        return None
    if not isinstance(nn.element_of(value), AnyFloat):
        return None
    terms = int(is_transposed != found.is_transposed)
    if nn.shape_of(value)[-1] != found.integers.shape[terms]:
        return None
    table = packed_matrix(node, found, terms)
    if table is None:
        return None
    packed, scales, zeros = table
    shifts = node.emitted(np.arange(0, BYTE, found.bits, dtype=np.uint8))
    return node.add(nn.PackedMatMulOp(value, packed, scales, zeros, shifts, found.bits))


def packed_matrix(
    node: Node, found: Dequantised, terms: int
) -> tuple[SSAValue, SSAValue, SSAValue] | None:
    """The integers of a matrix as bytes [n, blocks, bytes of a block], and the scales and zero
    points of the blocks; None if blocks do not lie along an axis, or end within a byte.

    Args:
        terms: the axis along which blocks lie. The other one is n.
    """
    size, shape = found.block(terms), found.integers.shape
    if size is None or not all(shape):
        return None
    packed = found.packed.get(terms)
    if packed is None:
        packed = found.packed[terms] = node.graph.emitted(_packed(node, found, terms, size))
    each = (shape[1 - terms], -(-shape[terms] // size))
    return packed, _per_block(node, found, terms, each), node.emitted(_zeros(found, terms, each))


def _packed(node: Node, found: Dequantised, terms: int, size: int) -> Known:
    """The integers as bytes [n, blocks, bytes of a block], counted from the least of their type."""
    known, bits = found.integers, found.bits
    rows, length = known.shape[1 - terms], known.shape[terms]
    blocks = -(-length // size)

    def make() -> Array:
        whole = known.make().astype(np.int16) - whole_limits(known.dtype).min
        whole = (whole if terms else whole.T).astype(np.uint8)
        whole = np.pad(whole, ((0, 0), (0, blocks * size - length)))
        apart = whole.reshape(rows, blocks, -1, BYTE // bits)
        shifts = np.arange(0, BYTE, bits, dtype=np.uint8)
        return np.bitwise_or.reduce(apart << shifts, axis=-1)

    name, state = known.name, known.state
    way = "packed" if terms else "packed columns"
    shape = (rows, blocks, size * bits // BYTE)
    byte = np.dtype(np.uint8)
    return Known(
        f"{node.name}/{name}", shape, byte, make, state and f"{state}/{way}", known.is_fixed
    )


def _per_block(node: Node, found: Dequantised, terms: int, shape: tuple[int, int]) -> SSAValue:
    """The scales as [n, blocks], or with an axis of size 1."""
    if found.scale_count == 1:
        return node.reshape(found.scale, (1, 1))
    if not found.size:
        return node.reshape(found.scale, (shape[0], 1))
    return found.scale if terms else node.add(nn.TransposeOp(found.scale, (1, 0)))


def _zeros(found: Dequantised, terms: int, shape: tuple[int, int]) -> Array:
    """The zero points, shaped like the scales and counted from the least integer."""
    least = whole_limits(found.integers.dtype).min
    if found.zero is None:
        return np.full((1, 1), -least, np.uint8)
    zero = (found.zero.astype(np.int16) - least).astype(np.uint8)
    if zero.size == 1:
        return zero.reshape(1, 1)
    if not found.size:
        return zero.reshape(shape[0], 1)
    return zero if terms else zero.T
