"""Operators of MXNet with weights, windows, or normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value
from ..onnx.ops_normalise import normalised
from .symbol_node import CHANNELS_FIRST, Importer, MxNode


def _rank(node: MxNode) -> int:
    """The number of spatial axes of the first operand. Raises InputError if there are none."""
    rank = len(node.shape(0)) - 2
    if rank < 1:
        raise node.bad(f"image of shape {list(node.shape(0))}; need batch, channels and more")
    return rank


CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
"""The layouts whose last axis has the channels, by the number of spatial axes."""


def _is_last(node: MxNode, rank: int) -> bool:
    """Whether the channels are the last axis of images, and of weights. Raises InputError."""
    layouts = CHANNELS_FIRST.get(rank, ""), CHANNELS_LAST.get(rank, "")
    return node.choice("layout", ("", "None", *filter(None, layouts)), "") == layouts[1] != ""


def _channels_first(node: MxNode, value: Value, *, last: bool) -> Value:
    """An image or a weight with its channels behind its first axis."""
    if not last:
        return value
    operand = node.ssa(value)
    rank = len(nn.shape_of(operand))
    return node.add(nn.TransposeOp(operand, (0, rank - 1, *range(1, rank - 1))))


def _channels_back(node: MxNode, value: Value, *, last: bool) -> Value:
    """An image with its channels where the node has them."""
    if not last:
        return value
    operand = node.ssa(value)
    rank = len(nn.shape_of(operand))
    return node.add(nn.TransposeOp(operand, (0, *range(2, rank), 1)))


def _window(node: MxNode, rank: int) -> dict[str, list[int]]:
    return {
        "kernel_shape": node.spatial("kernel", rank, 0, 1),
        "strides": node.spatial("stride", rank, 1, 1),
        "pads": node.spatial("pad", rank, 0) * 2,
        "dilations": node.spatial("dilate", rank, 1, 1),
    }


def _convolution(node: MxNode) -> Value:
    return _convolved(node, transposed=False)


def _convolved(node: MxNode, *, transposed: bool) -> Value:
    rank = _rank(node)
    last = _is_last(node, rank)
    channels = node.shape(0)[-1 if last else 1]
    window, extra = _window(node, rank), dict[str, list[int]]()
    outputs, groups = node.integer("num_filter", least=1), node.integer("num_group", 1, 1)
    if outputs % groups or channels % groups:
        raise node.bad(f"{outputs} filters of {channels} channels in {groups} groups")
    first, second = (channels, outputs) if transposed else (outputs, channels)
    size = window["kernel_shape"]
    shape = (first, *size, second // groups) if last else (first, second // groups, *size)
    operands = [
        _channels_first(node, each, last=last) for each in (node.value(0), node.weight(1, shape))
    ]
    if not node.flag("no_bias", transposed):
        operands.append(node.weight(2, (outputs,), 0.0))
    if transposed:
        extra["output_padding"] = node.spatial("adj", rank, 0)
        if node.has("target_shape") and any(node.integers("target_shape")):
            raise node.unsupported("target_shape", "adj is")
    operator = "ConvTranspose" if transposed else "Conv"
    found = node.apply(operator, *operands, group=groups, **window, **extra)
    return _channels_back(node, found, last=last)


def _deconvolution(node: MxNode) -> Value:
    return _convolved(node, transposed=True)


def _fully_connected(node: MxNode) -> Value:
    shape, outputs = node.shape(0), node.integer("num_hidden", least=1)
    flat = node.flag("flatten", True)
    rows, inner = (shape[:1], prod(shape[1:])) if flat else (shape[:-1], shape[-1])
    value = node.reshape(node[0], (prod(rows), inner))
    operands: list[Value] = [value, node.weight(1, (outputs, inner))]
    if not node.flag("no_bias"):
        operands.append(node.weight(2, (outputs,), 0.0))
    return node.reshape(node.apply("Gemm", *operands, transB=1), (*rows, outputs))


CONVENTIONS = ("valid", "full", "same")


def _pooling(node: MxNode) -> Value:
    last = _is_last(node, _rank(node))
    value = node.ssa(_channels_first(node, node.value(0), last=last))
    return _channels_back(node, _pooled(node, value), last=last)


def _pooled(node: MxNode, value: SSAValue) -> Value:
    """Windows of the convention full may hang over the end of the image, those of valid do not."""
    rank, image = _rank(node), nn.shape_of(value)[2:]
    kind = node.choice("pool_type", ("max", "avg", "sum", "lp"), "max")
    convention = node.choice("pooling_convention", CONVENTIONS, "valid")
    counts = node.flag("count_include_pad", True) if node.has("count_include_pad") else True
    if node.flag("global_pool"):
        _ = [node.text(each, "") for each in ("kernel", "stride", "pad")]
        size, stride, low = list(image), [1] * rank, [0] * rank
    else:
        size = node.spatial("kernel", rank, 0, 1)
        stride, low = node.spatial("stride", rank, 1, 1), node.spatial("pad", rank, 0)
    if any(p >= k for p, k in zip(low, size, strict=True)):
        raise node.bad(f"padding of {low} with windows of {size}; need less")
    if convention == "same" or kind == "lp":
        raise node.unsupported(
            f"{kind} with the convention {convention}", "max, avg and sum with valid and full are"
        )
    high = list(low)
    if convention == "full":
        high = [
            max((-(-(n + 2 * p - k) // s)) * s + k - n - p, 0)
            for n, k, s, p in zip(image, size, stride, low, strict=True)
        ]
    if any(n + p + h < k for n, k, p, h in zip(image, size, low, high, strict=True)):
        raise node.bad(f"windows of {size} in an image of {list(image)}")
    if kind == "max":
        return node.apply("MaxPool", value, kernel_shape=size, strides=stride, pads=low + high)
    if kind == "sum":
        terms = node.wide(value)
        total = node.add(nn.PoolOp(terms, "sum", size, stride=stride, pad_low=low, pad_high=high))
        return node.cast(total, nn.element_of(value))
    windows = list(zip(image, size, stride, low, high, strict=True))
    places = [(n + p + h - k) // s + 1 for n, k, s, p, h in windows]
    # Where the last window begins.
    last = [(m - 1) * s - p for m, s, p in zip(places, stride, low, strict=True)]
    if any(b >= n + (p if counts else 0) for b, n, p in zip(last, image, low, strict=True)):
        raise node.bad(f"windows of {size} lie outside an image of {list(image)}")
    if not counts:
        return node.add(nn.AveragePoolOp(value, size, stride=stride, pad_low=low, pad_high=high))
    mean = nn.AveragePoolOp(
        value,
        size,
        stride=stride,
        pad_low=low,
        pad_high=low,
        count_include_pad=True,
        ceil_mode=convention == "full",
    )
    # ONNX leaves out a last window that begins in the padding. Its mean is 0.
    found = node.add(mean)
    missing = [m - n for m, n in zip(places, nn.shape_of(found)[2:], strict=True)]
    if not any(missing):
        return found
    return node.apply("Pad", found, node.integers_known([0] * (rank + 4) + missing))


def _batch_norm(node: MxNode) -> Sequence[Value]:
    shape = node.shape(0)
    axis = node.axis(node.integer("axis", 1), len(shape))
    if len(shape) < 2 or axis != 1:
        raise node.unsupported(f"axis {axis} of {list(shape)}", "axis 1 is")
    channels, epsilon = (shape[1],), node.number("eps", 1e-3)
    momentum, is_fixed = node.number("momentum", 0.9), node.flag("fix_gamma", True)
    keeps = node.flag("use_global_stats")
    for each in ("output_mean_var", "min_calib_range", "max_calib_range"):
        if node.has(each) and node.text(each) not in ("False", "0"):
            raise node.unsupported(each, "one output is")
    one = node.known(np.ones(channels, np.float32))
    scale: Value = one if is_fixed else node.weight(1, channels, 1.0)
    mean, variance = node.weight(3, channels, 0.0), node.weight(4, channels, 1.0)
    if node.graph.training:
        if keeps:
            raise node.unsupported("use_global_stats in training", "the batch's statistics are")
        share = repr(1.0 - momentum)
        first = node.scope.trained.setdefault("batch-statistics", share)
        if first != share:
            raise node.unsupported(
                f"momentum {momentum:g} in training, next to {1.0 - float(first):g} of an earlier "
                "node,",
                "one momentum for all is",
            )
    bias = node.weight(2, channels, 0.0)
    return [node.apply("BatchNormalization", node[0], scale, bias, mean, variance, epsilon=epsilon)]


def _layer_norm(node: MxNode) -> Value:
    shape = node.shape(0)
    axis = node.axis(node.integer("axis", -1), len(shape))
    value, _, _ = normalised(node, node[0], [axis], node.number("eps", 1e-5))
    _ = node.flag("output_mean_var")
    along = [n if i == axis else 1 for i, n in enumerate(shape)]
    for index, default, operation in ((1, 1.0, nn.MulOp), (2, 0.0, nn.AddOp)):
        weight = node.ssa(node.weight(index, (shape[axis],), default))
        value = node.add(operation(value, node.reshape(node.wide(weight), along)))
    return node.cast(value, nn.element_of(node[0]))


def _instance_norm(node: MxNode) -> Value:
    channels = (node.shape(0)[1],) if len(node.shape(0)) > 1 else ()
    scale, bias = node.weight(1, channels, 1.0), node.weight(2, channels, 0.0)
    epsilon = node.number("eps", 1e-3)
    return node.apply("InstanceNormalization", node[0], scale, bias, epsilon=epsilon)


def _l2_normalisation(node: MxNode) -> Value:
    """Division by the root of the sum of squares, and of a small number."""
    shape = node.shape(0)
    modes = {"instance": range(1, len(shape)), "channel": [1], "spatial": range(2, len(shape))}
    axes = list(modes[node.choice("mode", list(modes), "instance")])
    squares = node.add(nn.SquareOp(node.wide(node[0])))
    total = node.add(nn.ReduceOp(squares, "sum", axes, keep_dims=True))
    size = node.add(nn.SqrtOp(node.add(nn.ShiftOp(total, node.number("eps", 1e-10)))))
    return node.cast(node.add(nn.DivOp(node.wide(node[0]), size)), nn.element_of(node[0]))


def _lrn(node: MxNode) -> Value:
    size = node.integer("nsize", least=1)
    if size % 2 == 0 or len(node.shape(0)) < 2:
        raise node.unsupported(f"nsize {size}", "an odd number is, of an image with channels")
    return node.apply(
        "LRN",
        node[0],
        size=size,
        alpha=node.number("alpha", 1e-4),
        beta=node.number("beta", 0.75),
        bias=node.number("knorm", 2.0),
    )


def _embedding(node: MxNode) -> Value:
    shape = (node.integer("input_dim", least=1), node.integer("output_dim", least=1))
    _ = node.text("dtype", "float32"), node.flag("sparse_grad")
    table = node.ssa(node.weight(1, shape))
    return node.add(nn.GatherOp(table, node.cast(node[0], i32), 0))


def _up_sampling(node: MxNode) -> Value:
    if node.choice("sample_type", ("nearest", "bilinear")) != "nearest" or node.count != 1:
        raise node.unsupported("sample_type bilinear, or several operands", "nearest is")
    scale = node.integer("scale", least=1)
    factors = node.known(np.array([1.0, 1.0] + [float(scale)] * _rank(node), np.float32))
    return node.apply(
        "Resize",
        node.value(0),
        None,
        factors,
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


LAYERS: dict[str, Importer] = {
    "Convolution": _convolution,
    "Deconvolution": _deconvolution,
    "FullyConnected": _fully_connected,
    "Pooling": _pooling,
    "BatchNorm": _batch_norm,
    "LayerNorm": _layer_norm,
    "InstanceNorm": _instance_norm,
    "L2Normalization": _l2_normalisation,
    "LRN": _lrn,
    "Embedding": _embedding,
    "UpSampling": _up_sampling,
}
"""The importers of layers."""
