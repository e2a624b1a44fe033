"""onnxruntime's operators on integers of few bits, which are packed into bytes: products with
matrices of them, and rows of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ....dialects import nn
from ....ir.support.number_kinds import bit_width, is_whole
from ..building import Known, Value, dtype_of
from .dequantised import BYTE, Dequantised
from .node import Importer, Node, Results
from .ops_indexed import looked_up_at
from .packed_rows import unpacked_rows
from .packed_weights import packed_matrix
from .tensors import Array

UNSIGNED = {2: np.dtype(ml_dtypes.uint2), 4: np.dtype(ml_dtypes.uint4)}
"""The type of integers of few bits that are packed into bytes."""


def _unpacked_array(packed: Array, bits: int) -> Array:
    """The integers packed in bytes along the last axis."""
    shifts = np.arange(0, BYTE, bits, dtype=np.uint8)
    apart = packed[..., None] >> shifts & np.uint8(2**bits - 1)
    return apart.reshape(*packed.shape[:-1], packed.shape[-1] * len(shifts))


def _unpacked(node: Node, operand: int, shape: tuple[int, ...], bits: int) -> SSAValue:
    """The integers packed in an operand of bytes, in the given shape, a byte each.

    Known ones are unpacked at import.
    """
    _check_bytes(node, operand, shape)
    value: Value = node.value(operand)
    count = BYTE // bits
    whole = (*shape[:-1], shape[-1] * count)
    if isinstance(value, Known):
        make = value.make
        unpacked = Known(
            f"{node.name}/operand {operand}",
            whole,
            value.dtype,
            lambda: _unpacked_array(make().reshape(shape), bits),
            value.state and f"{value.state}/unpacked",
        )
        return node.graph.emitted(unpacked)
    packed = node.reshape(node[operand], shape)
    if count == 1:
        return packed
    mask = node.constant(2**bits - 1, packed)
    parts: list[SSAValue] = []
    for i in range(count):
        moved = node.add(nn.ShiftRightOp(packed, node.constant(i * bits, packed))) if i else packed
        parts.append(node.reshape(node.add(nn.BitwiseAndOp(moved, mask)), (*shape, 1)))
    return node.reshape(node.add(nn.ConcatOp(parts, len(shape))), whole)


def _check_bytes(node: Node, operand: int, shape: tuple[int, ...]) -> None:
    """Refuse an operand that has not as many bytes as a shape."""
    dtype, given = dtype_of(node.value(operand)), node.shape(operand)
    if dtype != np.uint8 or prod(given) != prod(shape):
        raise node.bad(f"operand {operand} is {dtype.name}{list(given)}; need uint8{list(shape)}")


def _matmul_bits(node: Node) -> Results:
    """A product with the transpose of a matrix that has one scale and zero point per block."""
    columns, terms = node.integer("N"), node.integer("K")
    size, bits = node.integer("block_size"), node.integer("bits", 4)
    # The attribute allows a coarser product. Here it is always as exact as the operand's type.
    _ = node.integer("accuracy_level", 0)
    if node.integer("weight_prepacked", 0):
        raise node.unsupported("weight_prepacked", "0 is")
    if bits not in nn.PACKED_BITS:
        raise node.unsupported(f"bits {bits}", f"{', '.join(map(str, nn.PACKED_BITS))} are")
    if node.has(4):
        raise node.unsupported("g_idx", "leave it out")
    if min(columns, terms, size) < 1 or size * bits % BYTE:
        raise node.bad(
            f"N {columns}, K {terms}, block_size {size}; need 1 or more, and whole bytes"
        )
    if node.shape(0)[-1:] != (terms,):
        raise node.bad(f"operand of {list(node.shape(0))}; the last axis needs {terms} elements")
    blocks = -(-terms // size)
    each = (columns, blocks, 1)
    shape = (columns, blocks, size * bits // BYTE)
    if node.has(3) and not is_whole(dtype_of(node.value(3))):
        result = _multiplied_by_floats(node, shape, bits)
    else:
        _check_bytes(node, 1, shape)
        shifts = node.emitted(np.arange(0, BYTE, bits, dtype=np.uint8))
        packed, scales = node.reshape(node[1], shape), node.reshape(node[2], each[:2])
        zeros = _zero_points(node, each[:2], bits)
        result = node.add(nn.PackedMatMulOp(node[0], packed, scales, zeros, shifts, bits))
    return node.add(nn.AddOp(result, node[5])) if node.has(5) else result


def _multiplied_by_floats(node: Node, shape: tuple[int, int, int], bits: int) -> SSAValue:
    """The product with a matrix whose zero points are floats, which is unpacked first.

    Args:
        shape: of the packed matrix: columns, blocks, bytes of a block.
    """
    columns, blocks, bytes_ = shape
    each, terms = (columns, blocks, 1), node.shape(0)[-1]
    weights = node.cast(_unpacked(node, 1, shape, bits), f32)
    weights = node.add(nn.SubOp(weights, node.cast(node.reshape(node[3], each), f32)))
    weights = node.add(nn.MulOp(weights, node.cast(node.reshape(node[2], each), f32)))
    whole = blocks * bytes_ * BYTE // bits
    matrix = node.reshape(weights, (columns, whole))
    if whole != terms:
        matrix = node.add(nn.SliceOp(matrix, [0, 0], [1, 1], [columns, terms]))
    matrix = node.cast(matrix, nn.element_of(node[0]))
    return node.add(nn.MatMulOp(node[0], matrix, transpose_rhs=True))


def _zero_points(node: Node, shape: tuple[int, int], bits: int) -> SSAValue:
    """The zero point of each block, a byte each; by default, the middle of the range."""
    columns, blocks = shape
    if not node.has(3):
        return node.emitted(np.full((1, 1), 1 << bits - 1, np.uint8))
    bytes_ = -(-blocks * bits // BYTE)
    values = _unpacked(node, 3, (columns, bytes_), bits)
    if nn.shape_of(values)[1] != blocks:
        values = node.add(nn.SliceOp(values, [0, 0], [1, 1], [columns, blocks]))
    return values


def _gather_bits(node: Node) -> Results:
    """Rows of a table of integers of few bits, with a scale for each block."""
    value = node.value(0)
    shape, dtype = [*node.shape(0)], dtype_of(value)
    gathered = node.axis(node.integer("gather_axis", 0), len(shape))
    along = node.axis(node.integer("quantize_axis", 1), len(shape))
    size, bits = node.integer("block_size", 128), node.integer("bits", 4)
    if not isinstance(value, Known):
        raise node.unsupported("a table that is no constant", "give it as an initializer")
    if dtype == np.uint8:
        if bits not in nn.PACKED_BITS:
            raise node.unsupported(f"bits {bits}", f"{', '.join(map(str, nn.PACKED_BITS))} are")
        shape[-1] *= BYTE // bits
    elif is_whole(dtype):
        bits = bit_width(dtype)
    if size < 1 or gathered == along or not is_whole(dtype) or dtype.itemsize > 1:
        raise node.bad(
            f"{dtype.name}{list(node.shape(0))}, gather_axis {gathered}, quantize_axis {along}, "
            f"block_size {size}; need integers of at most 8 bits, two axes, and 1 or more"
        )
    blocks = [-(-n // size) if i == along else n for i, n in enumerate(shape)]
    if [*node.shape(2)] != blocks:
        raise node.bad(f"scales of {list(node.shape(2))}; need {blocks}")
    zeros = node.graph.known(node.value(3)) if node.has(3) else None
    if node.has(3) and zeros is None:
        raise node.unsupported("zero points that are no constant", "give them as an initializer")
    places = looked_up_at(node, 1, shape[gathered], gathered)
    codes = _codes(value, dtype, bits, shape)
    zero = _zeros_of_blocks(node, zeros, dtype, bits, blocks)
    if len(shape) == 2 and along == 1 and not size * bits % BYTE:
        found = Dequantised(codes, node[2], zero, along, size)
        table = packed_matrix(node, found, 1)
        if table is not None:
            return unpacked_rows(node, table, places, bits, shape[1])
    scales = node.graph.known(node.value(2))
    if scales is None:
        raise node.unsupported("scales that are no constant", "give them as an initializer")
    near, whole = np.arange(shape[along]) // size, codes.make().astype(np.float32)
    each_block = (np.broadcast_to(each, blocks) for each in (zero, scales))
    spread = [each.astype(np.float32).take(near, along) for each in each_block]
    floats = ((whole - spread[0]) * spread[1]).astype(scales.dtype)
    return node.add(nn.GatherOp(node.emitted(floats), places, gathered))


def _codes(value: Known, dtype: np.dtype[Any], bits: int, shape: Sequence[int]) -> Known:
    """The integers of a table, one for each element. Bytes are taken apart."""
    if dtype != np.uint8 or bits == BYTE:
        return value
    make, narrow = value.make, UNSIGNED[bits]

    def unpacked() -> Array:
        return _unpacked_array(make(), bits).astype(narrow)

    state = value.state and f"{value.state}/unpacked"
    return replace(value, shape=tuple(shape), dtype=narrow, make=unpacked, state=state)


def _zeros_of_blocks(
    node: Node, zeros: Array | None, dtype: np.dtype[Any], bits: int, blocks: Sequence[int]
) -> Array:
    """The zero point of each block, or one for all. Those of bytes are packed, and by default the
    middle of the range; others are 0."""
    packs = dtype == np.uint8
    if zeros is None:
        return np.array(1 << bits - 1 if packs else 0, np.int16)
    if packs and bits < BYTE:
        zeros = _unpacked_array(zeros, bits)
    whole = zeros.astype(np.int16)
    if whole.ndim == len(blocks) and packs:
        whole = whole[..., : blocks[-1]]
    if whole.shape != tuple(blocks):
        raise node.bad(f"zero points of {list(whole.shape)}; need {list(blocks)}")
    return whole


PACKED: dict[str, Importer] = {"MatMulNBits": _matmul_bits, "GatherBlockQuantized": _gather_bits}
"""The importers of operators on packed integers, of the domain com.microsoft."""
