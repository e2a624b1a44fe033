"""ONNX operators on quantised tensors: integers, or floats of few bits, that stand for numbers.

An element q stands for (q - zero point) * scale. There is one scale per tensor, per index along an
axis, or per block of elements along an axis. Sums of products are exact, in 32-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32, i16, i32
from xdsl.ir import Attribute, SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ....ir.support.number_kinds import bit_width, is_floating, is_whole, whole_limits
from .conversions import computable, saturated, ui8
from .node import Importer, Node, Results
from .ops_contraction import convolution, matrix_product
from .ops_elementwise import ELEMENTWISE
from .ops_window import WINDOWS
from .packed_weights import dequantised_weight

ONE_AXIS_SINCE = 13
"""The first opset in which Softmax works along one axis."""

EXACT_BITS = 16
"""Integers of at most this many bits, and their differences, are exact as f32."""


# Scales and zero points


@dataclass(frozen=True)
class _Blocks:
    """The shapes in which a node's scales broadcast with its operand.

    Attributes:
        tensor: of the operand.
        scales: of scales and zero points.
        repeat: elements per scale along the axis; 1 if the scales broadcast.
        last: the operand's size along the axis, if repeated scales cover more.
    """

    tensor: tuple[int, ...]
    scales: tuple[int, ...]
    axis: int = 0
    repeat: int = 1
    last: int = 0

    def fitted(self, node: Node, value: SSAValue) -> SSAValue:
        """Scales or zero points in a shape that broadcasts with the operand."""
        value = node.reshape(value, self.scales)
        if self.repeat == 1:
            return value
        before, after = self.scales[: self.axis + 1], self.scales[self.axis + 1 :]
        apart = node.add(
            nn.ExpandOp(node.reshape(value, (*before, 1, *after)), (*before, self.repeat, *after))
        )
        whole = (*before[:-1], before[-1] * self.repeat, *after)
        sizes = [*before[:-1], self.last, *after]
        rank = len(whole)
        return node.add(nn.SliceOp(node.reshape(apart, whole), [0] * rank, [1] * rank, sizes))


def _blocks(node: Node, shape: tuple[int, ...], scales: tuple[int, ...]) -> _Blocks:
    """The shapes for the scales of QuantizeLinear and DequantizeLinear."""
    if scales in ((), (1,)):
        return _Blocks(shape, ())
    axis = node.axis(node.integer("axis", 1), len(shape))
    size = node.integer("block_size", 0)
    if len(scales) == 1 and not size:
        if scales[0] != shape[axis]:
            raise node.bad(f"{scales[0]} scales; need 1, or {shape[axis]}, as axis {axis} has")
        return _Blocks(shape, tuple(n if i == axis else 1 for i, n in enumerate(shape)))
    wanted = tuple(-(-n // max(size, 1)) if i == axis else n for i, n in enumerate(shape))
    if scales != wanted:
        raise node.bad(f"scales of shape {list(scales)} in blocks of {size}; need {list(wanted)}")
    count = scales[axis]
    if count * size != shape[axis]:
        return _Blocks(shape, scales, axis, size, shape[axis])
    return _Blocks(
        (*shape[:axis], count, size, *shape[axis + 1 :]),
        (*shape[:axis], count, 1, *shape[axis + 1 :]),
    )


def _is_zero(node: Node, index: int) -> bool:
    """Whether the zero point at an index is missing, or known to be 0 everywhere."""
    if not node.has(index):
        return True
    known = node.graph.known(node.value(index))
    return known is not None and not known.astype(np.float32).any()


# Numbers to quantised elements and back


def quantised(
    node: Node,
    value: SSAValue,
    scale: SSAValue | None,
    zero: SSAValue | None,
    element: Attribute,
    *,
    saturate: bool = True,
) -> SSAValue:
    """A value over its scale, rounded half to even, plus the zero point, within the type's range.

    Args:
        scale, zero: None for 1 and 0.
        element: the element type of the result; the cast rounds to a float type.
        saturate: whether 8-bit floats that overflow become the largest number.
    """
    if scale is not None:
        value = node.add(nn.DivOp(value, scale))
    dtype = numpy_dtype(element)
    if is_floating(dtype):
        if bit_width(dtype) == 8 and not saturate:
            return node.cast(value, element)
        return node.cast(saturated(node, value, element), element)
    value = node.cast(node.add(nn.RoundOp(value)), f32)
    if zero is not None:
        value = node.add(nn.AddOp(value, node.cast(computable(node, zero), f32)))
    low, high = whole_limits(dtype)
    return node.cast(node.add(nn.ClipOp(value, low, high)), element)


def dequantised(node: Node, value: SSAValue, scale: SSAValue, zero: SSAValue | None) -> SSAValue:
    """A quantised tensor as f32: its elements minus the zero point, times the scale."""
    dtype = numpy_dtype(nn.element_of(value))
    value = computable(node, value)
    if zero is not None and is_whole(dtype) and bit_width(dtype) > EXACT_BITS:
        value = node.add(nn.SubOp(node.cast(value, i32), node.cast(zero, i32)))
        zero = None
    value = node.cast(value, f32)
    if zero is not None:
        value = node.add(nn.SubOp(value, node.cast(computable(node, zero), f32)))
    return node.add(nn.MulOp(value, node.cast(scale, f32)))


def _output(node: Node, default: Attribute) -> Attribute:
    code = node.integer("output_dtype", 0)
    return node.element(code) if code else default


def _quantize_linear(node: Node) -> Results:
    value, scale = node[0], computable(node, node[1])
    element = nn.element_of(node[2]) if node.has(2) else _output(node, ui8)
    blocks = _blocks(node, nn.shape_of(value), node.shape(1))
    precision = node.integer("precision", 0)
    wide = node.element(precision) if precision else nn.element_of(scale)
    if not is_floating(numpy_dtype(wide)):
        wide = f32
    zero = None if _is_zero(node, 2) else blocks.fitted(node, node[2])
    result = quantised(
        node,
        node.reshape(node.cast(value, wide), blocks.tensor),
        blocks.fitted(node, node.cast(scale, wide)),
        zero,
        element,
        saturate=node.flag("saturate", True),
    )
    return node.reshape(result, nn.shape_of(value))


def _dequantize_linear(node: Node) -> Results:
    value, scale = node[0], computable(node, node[1])
    blocks = _blocks(node, nn.shape_of(value), node.shape(1))
    zero = None if _is_zero(node, 2) else blocks.fitted(node, node[2])
    shaped = node.reshape(value, blocks.tensor)
    result = dequantised(node, shaped, blocks.fitted(node, scale), zero)
    result = node.cast(result, _output(node, nn.element_of(scale)))
    made = node.reshape(result, nn.shape_of(value))
    weight = dequantised_weight(node)
    if weight is not None:
        node.graph.dequantised[made] = weight
    return made


# Products


def _along(node: Node, index: int, rank: int, axis: int) -> SSAValue:
    """A scale or zero point for a whole tensor, or one per index along an axis of it.

    An operand with the tensor's rank broadcasts already.

    Args:
        rank: of the tensor.
    """
    shape = node.shape(index)
    if shape in ((), (1,)):
        return node.reshape(node[index], ())
    if len(shape) == 1:
        return node.reshape(node[index], [*shape, *[1] * (rank - 1 - axis)])
    return node[index]


def _from_zero(node: Node, index: int, zero: int, axis: int) -> SSAValue:
    """The operand at an index minus its zero point, as i16 unless the zero point is 0.

    Args:
        zero: the index of the zero point.
        axis: the axis along which there may be several.
    """
    value = node[index]
    if _is_zero(node, zero):
        return value
    offset = _along(node, zero, len(nn.shape_of(value)), axis)
    return node.add(nn.SubOp(node.cast(value, i16), node.cast(offset, i16)))


def _conv_integer(node: Node) -> Results:
    image, weight = _from_zero(node, 0, 2, 1), _from_zero(node, 1, 3, 0)
    return convolution(node, image, weight, into_i32=True)


def _row_axis(node: Node, index: int) -> int:
    return max(len(node.shape(index)) - 2, 0)


def _column_axis(node: Node, index: int) -> int:
    return max(len(node.shape(index)) - 1, 0)


def _matmul_integer(node: Node) -> Results:
    left = _from_zero(node, 0, 2, _row_axis(node, 0))
    right = _from_zero(node, 1, 3, _column_axis(node, 1))
    return matrix_product(node, left, right, into_i32=True)


def _requantised(
    node: Node, total: SSAValue, first: SSAValue, second: SSAValue, scale: int
) -> Results:
    """A sum of products as a quantised tensor.

    Args:
        first, second: the scales of the factors.
        scale: the index of the result's scale; its zero point is the next operand.
    """
    element = nn.element_of(node[scale + 1])
    factor = node.add(nn.MulOp(node.cast(first, f32), node.cast(second, f32)))
    factor = node.add(nn.DivOp(factor, node.cast(_along(node, scale, 0, 0), f32)))
    value = node.add(nn.MulOp(node.cast(total, f32), factor))
    zero = None if _is_zero(node, scale + 1) else _along(node, scale + 1, 0, 0)
    return quantised(node, value, None, zero, element)


def _qlinear_conv(node: Node) -> Results:
    image, weight = _from_zero(node, 0, 2, 1), _from_zero(node, 3, 5, 0)
    total = convolution(node, image, weight, 3, into_i32=True)
    rank = len(nn.shape_of(total))
    if node.has(8):
        total = node.add(nn.AddOp(total, _along(node, 8, rank, 1)))
    return _requantised(node, total, _along(node, 1, rank, 1), _along(node, 4, rank, 1), 6)


def _qlinear_matmul(node: Node) -> Results:
    rows, columns = _row_axis(node, 0), _column_axis(node, 3)
    if is_floating(numpy_dtype(nn.element_of(node[0]))):
        total = matrix_product(node, computable(node, node[0]), computable(node, node[3]))
    else:
        left, right = _from_zero(node, 0, 2, rows), _from_zero(node, 3, 5, columns)
        total = matrix_product(node, left, right, into_i32=True)
    scales = _along(node, 1, len(node.shape(0)), rows), _along(node, 4, len(node.shape(3)), columns)
    return _requantised(node, total, *scales, 6)


def _dynamic_quantize_linear(node: Node) -> Results:
    return dynamically_quantised(node, node[0])


def dynamically_quantised(node: Node, value: SSAValue) -> list[SSAValue]:
    """A value quantised as ui8, with its scale and zero point, whose range covers all elements and
    0.
    """
    axes = range(len(nn.shape_of(value)))
    zero = node.constant(0, value)
    least = node.add(nn.MinOp(node.add(nn.ReduceOp(value, "min", axes)), zero))
    most = node.add(nn.MaxOp(node.add(nn.ReduceOp(value, "max", axes)), zero))
    scale = node.add(nn.DivOp(node.add(nn.SubOp(most, least)), node.constant(255, value)))
    scale = node.reshape(scale, ())
    below = node.add(nn.NegOp(node.reshape(least, ())))
    point = quantised(node, below, scale, None, ui8)
    return [quantised(node, value, scale, point, ui8), scale, point]


# Operators of onnxruntime, in floats between quantised tensors


def _numbers(node: Node, index: int) -> SSAValue:
    """The numbers that a quantised operand stands for. Its scale and zero point are the next two
    operands.
    """
    zero = None if _is_zero(node, index + 2) else _along(node, index + 2, 0, 0)
    return dequantised(node, node[index], _along(node, index + 1, 0, 0), zero)


def _stored(node: Node, value: SSAValue, scale: int, like: int = 0) -> SSAValue:
    """A value as a quantised tensor.

    Args:
        scale: the index of its scale; its zero point is the next operand.
        like: the index of an operand with the result's element type.
    """
    zero = None if _is_zero(node, scale + 1) else _along(node, scale + 1, 0, 0)
    element = nn.element_of(node[like])
    return quantised(node, value, _along(node, scale, 0, 0), zero, element)


def _between(operator: Importer) -> Importer:
    """An importer for a quantised operand: dequantise, apply `operator` in floats, quantise."""

    def importer(node: Node) -> Results:
        if node.flag("channels_last"):
            raise node.unsupported("channels_last", "0 is")
        node.replaced[0] = _numbers(node, 0)
        made = operator(node)
        assert isinstance(made, SSAValue)
        del node.replaced[0]
        return _stored(node, made, 3)

    return importer


def _of_two(make: Callable[[SSAValue, SSAValue], nn.PureTensorOp]) -> Importer:
    def importer(node: Node) -> Results:
        return _stored(node, node.add(make(_numbers(node, 0), _numbers(node, 3))), 6)

    return importer


def _qlinear_where(node: Node) -> Results:
    chosen = node.add(nn.SelectOp(node[0], _numbers(node, 1), _numbers(node, 4)))
    return _stored(node, chosen, 7, like=1)


def _qlinear_concat(node: Node) -> Results:
    parts = [_numbers(node, index) for index in range(2, node.operand_count, 3)]
    axis = node.axis(node.integer("axis"), len(nn.shape_of(parts[0])))
    whole = parts[0] if len(parts) == 1 else node.add(nn.ConcatOp(parts, axis))
    return _stored(node, whole, 0, like=2)


def _qlinear_softmax(node: Node) -> Results:
    """Softmax along one axis; before opset 13 of ONNX, along all axes from one on."""
    shape = node.shape(0)
    axis = node.axis(node.integer("axis", -1), len(shape))
    value = _numbers(node, 0)
    if node.integer("opset") < ONE_AXIS_SINCE:
        flat = node.reshape(value, (prod(shape[:axis]), prod(shape[axis:])))
        curve = node.reshape(node.add(nn.SoftmaxOp(flat, 1)), shape)
    else:
        curve = node.add(nn.SoftmaxOp(value, axis))
    return _stored(node, curve, 3)


def _in_floats(node: Node, total: SSAValue, *scales: SSAValue) -> SSAValue:
    """A sum of products times the scales of its factors."""
    value = node.cast(total, f32)
    for scale in scales:
        value = node.add(nn.MulOp(value, node.cast(scale, f32)))
    return value


def _qgemm(node: Node) -> Results:
    """A quantised Gemm. The bias is in units of the product's scale. Without a result scale, it
    gives f32.
    """
    turned, other = node.flag("transA"), node.flag("transB")
    left, right = _from_zero(node, 0, 2, 0), _from_zero(node, 3, 5, 0 if other else 1)
    total = node.add(
        nn.MatMulOp(left, right, transpose_lhs=turned, transpose_rhs=other, into_i32=True)
    )
    if node.has(6):
        total = node.add(nn.AddOp(total, node[6]))
    value = _in_floats(node, total, _along(node, 1, 2, 0), _along(node, 4, 2, 1))
    alpha = node.number("alpha", 1.0)
    value = value if alpha == 1.0 else node.add(nn.ScaleOp(value, alpha))
    return _stored(node, value, 7) if node.has(7) else value


def _product_in_floats(
    node: Node, left: SSAValue, scale: SSAValue, right: SSAValue, at: int, bias: int
) -> Results:
    """A product of integers as floats.

    Args:
        at: the index of the second scale.
        bias: the index of the bias.
    """
    total = matrix_product(node, left, right, into_i32=True)
    columns = _along(node, at, len(nn.shape_of(right)), len(nn.shape_of(right)) - 1)
    value = _in_floats(node, total, scale, columns)
    return node.add(nn.AddOp(value, node[bias])) if node.has(bias) else value


def _matmul_integer_to_float(node: Node) -> Results:
    rows = _row_axis(node, 0)
    left = _from_zero(node, 0, 4, rows)
    right = _from_zero(node, 1, 5, _column_axis(node, 1))
    scale = _along(node, 2, len(node.shape(0)), rows)
    return _product_in_floats(node, left, scale, right, 3, 6)


def _dynamic_quantize_matmul(node: Node) -> Results:
    left, scale, zero = dynamically_quantised(node, node[0])
    left = node.add(nn.SubOp(node.cast(left, i16), node.cast(zero, i16)))
    right = _from_zero(node, 1, 3, _column_axis(node, 1))
    return _product_in_floats(node, left, scale, right, 2, 4)


CONTRIBUTED_QUANTISED: dict[str, Importer] = {
    "QuantizeLinear": _quantize_linear,
    "DequantizeLinear": _dequantize_linear,
    "QLinearAdd": _of_two(nn.AddOp),
    "QLinearMul": _of_two(nn.MulOp),
    "QLinearSigmoid": _between(ELEMENTWISE["Sigmoid"]),
    "QLinearLeakyRelu": _between(ELEMENTWISE["LeakyRelu"]),
    "QLinearAveragePool": _between(WINDOWS["AveragePool"]),
    "QLinearGlobalAveragePool": _between(WINDOWS["GlobalAveragePool"]),
    "QLinearSoftmax": _qlinear_softmax,
    "QLinearConcat": _qlinear_concat,
    "QLinearWhere": _qlinear_where,
    "QGemm": _qgemm,
    "MatMulIntegerToFloat": _matmul_integer_to_float,
    "DynamicQuantizeMatMul": _dynamic_quantize_matmul,
}
"""The importers of onnxruntime's operators on quantised tensors, of the domain com.microsoft."""

QUANTISED: dict[str, Importer] = {
    "QuantizeLinear": _quantize_linear,
    "DequantizeLinear": _dequantize_linear,
    "ConvInteger": _conv_integer,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "DynamicQuantizeLinear": _dynamic_quantize_linear,
}
