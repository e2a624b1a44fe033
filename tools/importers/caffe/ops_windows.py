"""Layers that slide a window over an image, or compare neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value, shape_of
from .fields import Fields
from .layer_node import Importer, LayerNode

POOLS = ("MAX", "AVE", "STOCHASTIC")

LEAST_SUM = float(np.finfo(np.float32).tiny)
"""What the sum of a window begins with, so that a window of zeros has the mean 0."""


def _window(node: LayerNode, fields: Fields, rank: int) -> dict[str, list[int]]:
    """The attributes of a convolution of ONNX."""
    return {
        "kernel_shape": node.spatial(fields, "kernel_size", rank, least=1),
        "strides": node.spatial(fields, "stride", rank, 1, least=1),
        "pads": node.spatial(fields, "pad", rank, 0) * 2,
        "dilations": node.spatial(fields, "dilation", rank, 1, least=1),
    }


def _convolution(node: LayerNode) -> Sequence[Value]:
    return [_convolved(node, each) for each in _images(node)]


def _images(node: LayerNode) -> list[Value]:
    """The bottoms, each of which the layer computes one top of, with the same weights."""
    if not node.bottoms:
        raise node.bad("no bottom; need one or more")
    return list(node.bottoms)


def _convolved(node: LayerNode, image: Value, transposed: bool = False) -> Value:
    fields = node.layer.settings("convolution_param")
    shape = shape_of(image)
    rank = len(shape) - 2
    if node.axis(fields.integer("axis", 1), len(shape)) != 1 or rank < 1:
        raise node.unsupported(
            f"axis {fields.integer('axis', 1)} of an image of shape {list(shape)}",
            "axis 1 is, of an image with samples, channels and more",
        )
    window = _window(node, fields, rank)
    outputs, group = fields.integer("num_output", 0, 1), fields.integer("group", 1, 1)
    if outputs < 1 or outputs % group or shape[1] % group:
        raise fields.bad(
            "num_output", f"{outputs} outputs of {shape[1]} channels in {group} groups"
        )
    first, second = (shape[1], outputs) if transposed else (outputs, shape[1])
    size = (first, second // group, *window["kernel_shape"])
    operands: list[Value] = [image, node.weight(0, size, fields, "weight_filler")]
    if fields.flag("bias_term", True):
        operands.append(node.weight(1, (outputs,), fields, "bias_filler"))
    operator = "ConvTranspose" if transposed else "Conv"
    return node.apply(operator, *operands, group=group, **window)


def _deconvolution(node: LayerNode) -> Sequence[Value]:
    return [_convolved(node, each, transposed=True) for each in _images(node)]


def _pooling(node: LayerNode) -> Sequence[Value]:
    """Windows may hang over the end of the image, but begin inside it or its first padding."""
    node.takes(1)
    fields, shape = node.layer.settings("pooling_param"), node.shape(0)
    if len(shape) != 4:
        raise node.bad(f"image of shape {list(shape)}; need [batch, channels, height, width]")
    image = shape[2:]
    if fields.flag("global_pooling"):
        size, stride, low = list(image), [1, 1], [0, 0]
        given = ("kernel_size", "kernel_h", "kernel_w", "pad", "pad_h", "pad_w")
        wrong = next((each for each in given if fields.has(each)), None)
        if wrong is not None and any(fields.integers(wrong)):
            raise fields.bad(wrong, "next to global_pooling; need one of the two")
    else:
        size = node.spatial(fields, "kernel_size", 2, least=1)
        stride = node.spatial(fields, "stride", 2, 1, least=1)
        low = node.spatial(fields, "pad", 2, 0)
    if any(p >= k for p, k in zip(low, size, strict=True)):
        raise fields.bad("pad", f"{low} with windows of {size}; need less")
    is_ceil = fields.choice("round_mode", ("CEIL", "FLOOR"), "CEIL") == "CEIL"
    high = [
        _padding_after(n, k, s, p, is_ceil)
        for n, k, s, p in zip(image, size, stride, low, strict=True)
    ]
    kind = fields.choice("pool", POOLS, "MAX")
    for n, k, s, p, h in zip(image, size, stride, low, high, strict=True):
        last = (n + p + h - k) // s * s - p
        if n + p + h < k or last >= n:
            raise node.bad(
                f"windows of {size} with stride {stride} leave an image of {list(image)}"
            )
    if kind == "STOCHASTIC":
        if node.scope.phase == "TRAIN":
            raise node.unsupported("pooling of a random element", "MAX and AVE are in training")
        if any(low):
            raise fields.bad("pad", f"{low} with STOCHASTIC; need 0")
        return [_expected(node, node[0], size, stride, high)]
    if kind == "MAX":
        if len(node.layer.tops) > 1:
            raise node.unsupported("a second top with the places of the largest", "one top is")
        return [node.apply("MaxPool", node[0], kernel_shape=size, strides=stride, pads=low + high)]
    return [_averaged(node, node[0], size, stride, low, is_ceil)]


def _expected(
    node: LayerNode,
    image: SSAValue,
    size: Sequence[int],
    stride: Sequence[int],
    high: Sequence[int],
) -> SSAValue:
    """The mean of a random element of each window, whose chances are in proportion to its elements:
    the sum of their squares, divided by their sum. As in Caffe, the sum begins with LEAST_SUM."""
    squares, total = (
        node.add(nn.PoolOp(each, "sum", size, stride=stride, pad_high=high))
        for each in (node.add(nn.SquareOp(image)), image)
    )
    return node.add(nn.DivOp(squares, node.shifted(total, LEAST_SUM)))


def _padding_after(n: int, size: int, stride: int, pad: int, is_ceil: bool) -> int:
    """The padding after an image with which there are as many windows as in Caffe."""
    room = n + 2 * pad - size
    positions = (-(-room // stride) if is_ceil else room // stride) + 1
    if pad and (positions - 1) * stride >= n + pad:
        positions -= 1
    return max((positions - 1) * stride + size - n - pad, 0)


def _averaged(
    node: LayerNode,
    image: SSAValue,
    size: Sequence[int],
    stride: Sequence[int],
    pad: Sequence[int],
    is_ceil: bool,
) -> SSAValue:
    """The mean of each window. Padding counts, but not what lies beyond it."""
    return node.add(
        nn.AveragePoolOp(
            image,
            size,
            stride=stride,
            pad_low=pad,
            pad_high=pad,
            count_include_pad=True,
            ceil_mode=is_ceil,
        )
    )


def _lrn(node: LayerNode) -> Sequence[Value]:
    node.takes(1)
    fields, shape = node.layer.settings("lrn_param"), node.shape(0)
    size = fields.integer("local_size", 5, 1)
    alpha, beta = fields.number("alpha", 1.0), fields.number("beta", 0.75)
    if len(shape) != 4 or size % 2 == 0 or size > 1 << 16:
        raise fields.bad(
            "local_size",
            f"{size} of an image of shape {list(shape)}; need an odd number, and four axes",
        )
    regions = ("ACROSS_CHANNELS", "WITHIN_CHANNEL")
    if fields.choice("norm_region", regions, regions[0]) == regions[0]:
        bias = fields.number("k", 1.0)
        return [node.apply("LRN", node[0], size=size, alpha=alpha, beta=beta, bias=bias)]
    pad = [size // 2] * 2
    squares = node.add(nn.SquareOp(node[0]))
    mean = _averaged(node, squares, [size] * 2, [1, 1], pad, is_ceil=True)
    divisor = node.shifted(node.scaled(mean, alpha), 1.0)
    return [node.add(nn.MulOp(node[0], node.add(nn.PowerOp(divisor, -beta))))]


WINDOWS: dict[str, Importer] = {
    "Convolution": _convolution,
    "Deconvolution": _deconvolution,
    "Pooling": _pooling,
    "LRN": _lrn,
}
"""The importers of windows."""
