"""ONNX operators that normalise."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import onnx
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import NodeBuilder
from ..padding import lengths_along, reshaped
from .node import Importer, Node, Results
from .ops_extremes import hardmax
from .ops_window import mean

STATISTICS = "the statistics of a batch normalisation that does not learn are not supported"


def _batch_norm(node: Node) -> Results:
    epsilon = node.number("epsilon", 1e-5)
    if node.opset >= 14 and node.flag("training_mode"):
        return _batch_norm_training(node, epsilon)
    if node.opset < 7:
        learns = not node.flag("is_test")
    else:
        # Before opset 14, a node is in training mode exactly if it names the statistics as results.
        learns = node.opset < 14 and any(node.wants(i) for i in range(1, 5))
    if learns:
        raise node.unsupported(
            "batch normalisation that learns",
            "need the inference form, or training_mode of opset 14",
        )
    image, rest = node[0], [node[i] for i in range(1, 5)]
    if node.opset < 9 and not node.flag("spatial", True):
        return [_activation_norm(node, image, rest, epsilon), *[STATISTICS] * 4]
    scale, bias, average, variance = rest
    norm = nn.BatchNormOp(image, scale, bias, average, variance, epsilon=epsilon)
    return [node.add(norm), *[STATISTICS] * 4]


def _batch_norm_training(node: Node, epsilon: float) -> Results:
    """Normalise by the batch's own statistics, and update the running statistics."""
    momentum = node.number("momentum", 0.9)
    image = node[0]
    shape, element = nn.shape_of(image), nn.element_of(image)
    if len(shape) < 2:
        raise node.bad(f"image of shape {list(shape)}; need batch and channels")
    axes = [i for i in range(len(shape)) if i != 1]
    wide = nn.wide_element(element)
    channel = (shape[1], *([1] * (len(shape) - 2)))

    def by_channel(index: int) -> SSAValue:
        return node.reshape(node.cast(node[index], wide), channel)

    def moved(index: int, current: SSAValue) -> SSAValue:
        old = node.add(nn.ScaleOp(node.cast(node[index], wide), momentum))
        new = node.add(nn.ScaleOp(node.reshape(current, shape[1:2]), 1.0 - momentum))
        return node.cast(node.add(nn.AddOp(old, new)), nn.element_of(node[index]))

    centred, average, variance = moments(node, node.wide(image), axes)
    deviation = node.add(nn.SqrtOp(node.add(nn.ShiftOp(variance, epsilon))))
    factor = node.add(nn.DivOp(by_channel(1), deviation))
    scaled = node.add(nn.AddOp(node.add(nn.MulOp(centred, factor)), by_channel(2)))
    return [node.cast(scaled, element), moved(3, average), moved(4, variance)]


def _activation_norm(node: Node, image: SSAValue, rest: list[SSAValue], epsilon: float) -> SSAValue:
    """Batch normalisation with statistics per element of an image, not per channel."""
    element = nn.element_of(image)
    scale, bias, average, variance = (node.wide(value) for value in rest)
    deviation = node.add(nn.SqrtOp(node.add(nn.ShiftOp(variance, epsilon))))
    factor = node.add(nn.DivOp(scale, deviation))
    offset = node.add(nn.SubOp(bias, node.add(nn.MulOp(average, factor))))
    scaled = node.add(nn.AddOp(node.add(nn.MulOp(node.wide(image), factor)), offset))
    return node.cast(scaled, element)


def moments(
    node: NodeBuilder, value: SSAValue, axes: list[int]
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """A value minus its mean along axes, the mean, and the population's variance."""
    if all(nn.shape_of(value)[axis] for axis in axes):
        moments = nn.SummarizeOp(value, "moments", axes, keep_dims=True)
        average, variance = node.add_several(moments)
        return node.add(nn.SubOp(value, average)), average, variance
    average = mean(node, value, axes, keep_dims=True)
    centred = node.add(nn.SubOp(value, average))
    return centred, average, mean(node, node.add(nn.SquareOp(centred)), axes, keep_dims=True)


def _normalised(
    node: Node, value: SSAValue, axes: list[int]
) -> tuple[SSAValue, SSAValue, SSAValue]:
    return normalised(node, value, axes, node.number("epsilon", 1e-5))


def normalised(
    node: NodeBuilder, value: SSAValue, axes: list[int], epsilon: float
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """A value with mean 0 and deviation 1 along axes, its mean, and its inverse deviation.

    All are in at least f32.
    """
    centred, average, variance = moments(node, node.wide(value), axes)
    steady = node.add(nn.ShiftOp(variance, epsilon))
    inverse = node.add(nn.ReciprocalOp(node.add(nn.SqrtOp(steady))))
    return node.add(nn.MulOp(centred, inverse)), average, inverse


def _instance_norm(node: Node) -> Results:
    shape = node.shape(0)
    if len(shape) < 3:
        raise node.bad(f"image of shape {list(shape)}; need batch, channels and more")
    value, _, _ = _normalised(node, node[0], list(range(2, len(shape))))
    channel = (shape[1], *([1] * (len(shape) - 2)))
    scaled = node.add(nn.MulOp(value, node.reshape(node.wide(node[1]), channel)))
    shifted = node.add(nn.AddOp(scaled, node.reshape(node.wide(node[2]), channel)))
    return node.cast(shifted, nn.element_of(node[0]))


def _layer_norm(node: Node) -> Results:
    rank = len(node.shape(0))
    axis = node.axis(node.integer("axis", -1), rank)
    value, average, inverse = _normalised(node, node[0], list(range(axis, rank)))
    value = node.add(nn.MulOp(value, node.wide(node[1])))
    if node.has(2):
        value = node.add(nn.AddOp(value, node.wide(node[2])))
    stash = node.element(node.integer("stash_type", onnx.TensorProto.FLOAT))
    average, inverse = node.cast(average, stash), node.cast(inverse, stash)
    return [node.cast(value, nn.element_of(node[0])), average, inverse]


def _lrn(node: Node) -> Results:
    return node.add(
        nn.LrnOp(
            node[0],
            node.integer("size"),
            alpha=node.number("alpha", 1e-4),
            beta=node.number("beta", 0.75),
            bias=node.number("bias", 1.0),
        )
    )


def _along(make: Callable[[Node, SSAValue, int], SSAValue]) -> Importer:
    """An importer of a function along one axis; before opset 13, along all axes from one on."""

    def importer(node: Node) -> Results:
        value = node[0]
        shape = nn.shape_of(value)
        if node.opset >= 13:
            return make(node, value, node.axis(node.integer("axis", -1), len(shape)))
        axis = node.axis(node.integer("axis", 1), len(shape), end=True)
        if axis < len(shape) and prod(shape[axis + 1 :]) == 1:
            return make(node, value, axis)
        flat = node.reshape(value, (prod(shape[:axis]), prod(shape[axis:])))
        found = make(node, flat, 1)
        if not node.sizes(0):
            return node.reshape(found, shape)
        return reshaped(node, found, lengths_along(node, value), shape)

    return importer


def _group_norm(node: Node) -> Results:
    """Normalise groups of channels. Before opset 21, scale and bias have one number per group."""
    shape, groups = node.shape(0), node.integer("num_groups")
    if len(shape) < 3 or groups < 1 or shape[1] % groups:
        raise node.bad(
            f"image of shape {list(shape)}, num_groups {groups}; need batch, channels and more, "
            "and a number of channels that the groups divide"
        )
    grouped = (shape[0], groups, shape[1] // groups, *shape[2:])
    value = node.reshape(node[0], grouped)
    value, _, _ = _normalised(node, value, list(range(2, len(grouped))))
    of_each = (groups, 1) if node.opset < 21 else grouped[1:3]
    each = (*of_each, *([1] * (len(shape) - 2)))
    scaled = node.add(nn.MulOp(value, node.reshape(node.wide(node[1]), each)))
    shifted = node.add(nn.AddOp(scaled, node.reshape(node.wide(node[2]), each)))
    return node.cast(node.reshape(shifted, shape), nn.element_of(node[0]))


def _rms_norm(node: Node) -> Results:
    rank = len(node.shape(0))
    axis = node.axis(node.integer("axis", -1), rank)
    axes = list(range(axis, rank))
    value, _ = divided_by_size(node, node[0], axes, node.number("epsilon", 1e-5))
    return node.cast(node.add(nn.MulOp(value, node.wide(node[1]))), nn.element_of(node[1]))


def divided_by_size(
    node: NodeBuilder, value: SSAValue, axes: list[int], epsilon: float
) -> tuple[SSAValue, SSAValue]:
    """A value divided by the root of its mean square along axes, and the inverse root.

    Both are in at least f32.
    """
    value = node.wide(value)
    squares = mean(node, node.add(nn.SquareOp(value)), axes, keep_dims=True)
    steady = node.add(nn.ShiftOp(squares, epsilon))
    inverse = node.add(nn.ReciprocalOp(node.add(nn.SqrtOp(steady))))
    return node.add(nn.MulOp(value, inverse)), inverse


def _mean_variance_norm(node: Node) -> Results:
    rank = len(node.shape(0))
    axes = [node.axis(axis, rank) for axis in node.integers("axes", [0, 2, 3])]
    centred, _, variance = moments(node, node.wide(node[0]), axes)
    # ONNX defines this operator by a function that adds 1e-9 to avoid a division by 0.
    deviation = node.add(nn.ShiftOp(node.add(nn.SqrtOp(variance)), 1e-9))
    return node.cast(node.add(nn.DivOp(centred, deviation)), nn.element_of(node[0]))


def _lp_norm(node: Node) -> Results:
    """Divide by the norm along an axis. Where the norm is 0, all elements are 0 and remain 0."""
    order = node.integer("p", 2)
    if order not in (1, 2):
        raise node.bad(f"p {order}; need 1 or 2")
    value = node.wide(node[0])
    axis = node.axis(node.integer("axis", -1), len(nn.shape_of(value)))
    sizes = node.add((nn.AbsOp if order == 1 else nn.SquareOp)(value))
    norm = node.add(nn.ReduceOp(sizes, "sum", [axis], keep_dims=True))
    norm = norm if order == 1 else node.add(nn.SqrtOp(norm))
    is_zero = node.add(nn.EqualOp(norm, node.constant(0, norm)))
    norm = node.add(nn.SelectOp(is_zero, node.constant(1, norm), norm))
    return node.cast(node.add(nn.DivOp(value, norm)), nn.element_of(node[0]))


NORMALISATIONS: dict[str, Importer] = {
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "LRN": _lrn,
    "GroupNormalization": _group_norm,
    "RMSNormalization": _rms_norm,
    "MeanVarianceNormalization": _mean_variance_norm,
    "LpNormalization": _lp_norm,
    "Softmax": _along(lambda node, value, axis: node.add(nn.SoftmaxOp(value, axis))),
    "LogSoftmax": _along(lambda node, value, axis: node.add(nn.LogSoftmaxOp(value, axis))),
    "Hardmax": _along(hardmax),
}
