"""Layers that compare a bottom with labels, and the softmax before them.

Losses and accuracies have no axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value
from .fields import Fields
from .layer_node import Importer, LayerNode

NORMALIZATIONS = ("FULL", "VALID", "BATCH_SIZE", "NONE")

LEAST_PROBABILITY = 1e-20
"""Below this, MultinomialLogisticLoss takes a probability for this, as Caffe."""


def _softmax(node: LayerNode) -> Sequence[Value]:
    node.takes(1)
    axis = node.along(node.layer.settings("softmax_param"), 1)
    return [node.apply("Softmax", node[0], axis=axis)]


@dataclass
class _Labels:
    """The labels of a bottom.

    Attributes:
        index: of the class of each position, an i32 of the bottom's shape but for axis `axis`, of
            which it has one element.
        ignored: whether each position is ignored; None if all count.
    """

    index: SSAValue
    ignored: SSAValue | None
    axis: int


def _labels(node: LayerNode, axis: int, fields: Fields) -> _Labels:
    shape = node.shape(0)
    positions = [1 if i == axis else n for i, n in enumerate(shape)]
    if prod(node.shape(1)) != prod(positions):
        raise node.bad(
            f"labels of shape {list(node.shape(1))} for a bottom of shape {list(shape)}; need one "
            f"for each position along the axes other than {axis}"
        )
    index = node.reshape(node.cast(node[1], i32), positions)
    if not fields.has("ignore_label"):
        return _Labels(index, None, axis)
    return _Labels(*node.ignoring(index, fields.integer("ignore_label")), axis)


def _total(node: LayerNode, value: SSAValue) -> SSAValue:
    axes = range(len(nn.shape_of(value)))
    return node.add(nn.ReduceOp(value, "sum", axes)) if axes else value


def _masked(node: LayerNode, value: SSAValue, ignored: SSAValue | None) -> SSAValue:
    """A value with 0 where positions are ignored."""
    if ignored is None:
        return value
    return node.add(nn.SelectOp(ignored, node.constant(0.0, value), value))


def _counted(node: LayerNode, like: SSAValue, ignored: SSAValue) -> SSAValue:
    """The number of positions that count, at least 1."""
    one, zero = node.constant(1.0, like), node.constant(0.0, like)
    return node.add(nn.MaxOp(_total(node, node.add(nn.SelectOp(ignored, zero, one))), one))


def _normalised(
    node: LayerNode, values: SSAValue, ignored: SSAValue | None, fields: Fields, default: str
) -> SSAValue:
    """The sum of losses, divided as loss_param says.

    Args:
        values: the loss of each position; 0 for those that are ignored.
        default: the normalisation if nothing is said.
    """
    if fields.has("normalize") and not fields.has("normalization"):
        default = "VALID" if fields.flag("normalize") else "BATCH_SIZE"
    kind = fields.choice("normalization", NORMALIZATIONS, default)
    total = _total(node, values)
    if kind == "VALID" and ignored is not None:
        return node.add(nn.DivOp(total, _counted(node, values, ignored)))
    shape = nn.shape_of(values)
    count = {"BATCH_SIZE": shape[0] if shape else 1, "NONE": 1}.get(kind, prod(shape))
    return node.scaled(total, 1.0 / max(count, 1))


def _softmax_with_loss(node: LayerNode) -> Sequence[Value]:
    node.takes(2)
    axis = node.along(node.layer.settings("softmax_param"), 1)
    fields = node.layer.settings("loss_param")
    logarithms = node.add(nn.LogSoftmaxOp(node[0], axis))
    labels = _labels(node, axis, fields)
    picked = node.add(nn.GatherAlongOp(logarithms, labels.index, axis))
    losses = _masked(node, node.add(nn.ScaleOp(picked, -1.0)), labels.ignored)
    # BATCH_SIZE divides by all axes before that of the classes.
    outer = prod(node.shape(0)[:axis])
    flat = node.reshape(losses, (outer, prod(nn.shape_of(losses)) // max(outer, 1)))
    ignored = labels.ignored
    if ignored is not None:
        ignored = node.reshape(ignored, nn.shape_of(flat))
    tops: list[Value] = [_normalised(node, flat, ignored, fields, "VALID")]
    if len(node.layer.tops) > 1:
        tops.append(node.apply("Softmax", node[0], axis=axis))
    return tops


def _difference(node: LayerNode) -> SSAValue:
    """The difference of the first two bottoms, of equally many elements."""
    if prod(node.shape(0)) != prod(node.shape(1)):
        raise node.bad(f"bottoms of shapes {list(node.shape(0))} and {list(node.shape(1))}")
    return node.add(nn.SubOp(node[0], node.reshape(node[1], node.shape(0))))


def _samples(node: LayerNode) -> int:
    shape = node.shape(0)
    if not shape or not shape[0]:
        raise node.bad(f"bottom of shape {list(shape)}; need samples")
    return shape[0]


def _euclidean(node: LayerNode) -> Sequence[Value]:
    node.takes(2)
    squares = node.add(nn.SquareOp(_difference(node)))
    return [node.scaled(_total(node, squares), 0.5 / _samples(node))]


def _sigmoid_cross_entropy(node: LayerNode) -> Sequence[Value]:
    """The sum of log(1 + exp(x)) - x * t."""
    node.takes(2)
    fields, value = node.layer.settings("loss_param"), node[0]
    if prod(node.shape(0)) != prod(node.shape(1)):
        raise node.bad(f"bottoms of shapes {list(node.shape(0))} and {list(node.shape(1))}")
    target = node.reshape(node.cast(node[1], nn.element_of(value)), node.shape(0))
    losses = node.add(nn.SubOp(node.add(nn.SoftplusOp(value)), node.add(nn.MulOp(value, target))))
    ignored = None
    if fields.has("ignore_label"):
        _, ignored = node.ignoring(node.cast(target, i32), fields.integer("ignore_label"))
        losses = _masked(node, losses, ignored)
    return [_normalised(node, losses, ignored, fields, "BATCH_SIZE")]


def _hinge(node: LayerNode) -> Sequence[Value]:
    """The sum of max(0, 1 - x) for the label's class, and of max(0, 1 + x) for all others."""
    node.takes(2)
    fields, value = node.layer.settings("hinge_loss_param"), node[0]
    rows = (_samples(node), prod(nn.shape_of(value)[1:]))
    value = node.reshape(value, rows)
    own = node.reshape(node.cast(node[1], i32), (rows[0], 1))
    classes = node.emitted(np.arange(rows[1], dtype=np.int32).reshape(1, -1))
    is_own = node.add(nn.EqualOp(own, classes))
    turned = node.add(nn.SelectOp(is_own, node.add(nn.NegOp(value)), value))
    losses = node.add(nn.ReluOp(node.shifted(turned, 1.0)))
    if fields.choice("norm", ("", "L1", "L2"), "L1") == "L2":
        losses = node.add(nn.SquareOp(losses))
    return [node.scaled(_total(node, losses), 1.0 / rows[0])]


def _contrastive(node: LayerNode) -> Sequence[Value]:
    """Half the mean of d^2 for equal pairs, and of max(0, margin - d)^2 for others."""
    node.takes(3)
    fields, samples = node.layer.settings("contrastive_loss_param"), _samples(node)
    squares = node.add(nn.SquareOp(_difference(node)))
    rows = node.reshape(squares, (samples, prod(nn.shape_of(squares)[1:])))
    apart = node.add(nn.ReduceOp(rows, "sum", [1]))
    margin = fields.number("margin", 1.0)
    if fields.flag("legacy_version"):
        other = node.add(nn.ReluOp(node.shifted(node.add(nn.NegOp(apart)), margin)))
    else:
        distance = node.add(nn.SqrtOp(apart))
        short = node.add(nn.ReluOp(node.shifted(node.add(nn.NegOp(distance)), margin)))
        other = node.add(nn.SquareOp(short))
    equal = node.cast(node.reshape(node[2], (samples,)), i32)
    is_other = node.add(nn.EqualOp(equal, node.constant(0, equal)))
    losses = node.add(nn.SelectOp(is_other, other, apart))
    return [node.scaled(_total(node, losses), 0.5 / samples)]


def _multinomial_logistic(node: LayerNode) -> Sequence[Value]:
    """The mean of the negative logarithms of probabilities."""
    node.takes(2)
    rows = (_samples(node), prod(node.shape(0)[1:]))
    value = node.reshape(node[0], rows)
    index = node.reshape(node.cast(node[1], i32), (rows[0], 1))
    picked = node.add(nn.GatherAlongOp(value, index, 1))
    logarithms = node.add(nn.LogOp(node.add(nn.ClipOp(picked, LEAST_PROBABILITY, float("inf")))))
    return [node.scaled(_total(node, logarithms), -1.0 / rows[0])]


def _accuracy(node: LayerNode) -> Sequence[Value]:
    """The share of positions where fewer than top_k other classes are as large as the label's."""
    node.takes(2)
    fields, value = node.layer.settings("accuracy_param"), node[0]
    axis, most = node.along(fields, 1), fields.integer("top_k", 1, 1)
    if len(node.layer.tops) > 1:
        raise node.unsupported("a second top with the accuracy of each class", "one top is")
    if most > nn.shape_of(value)[axis]:
        raise fields.bad("top_k", f"{most} of {nn.shape_of(value)[axis]} classes")
    labels = _labels(node, axis, fields)
    own = node.add(nn.GatherAlongOp(value, labels.index, axis))
    as_large = node.cast(node.add(nn.GreaterEqualOp(value, own)), nn.element_of(value))
    better = node.add(nn.ReduceOp(as_large, "sum", [axis], keep_dims=True))
    right = node.add(nn.LessEqualOp(better, node.constant(float(most), better)))
    found = _masked(node, node.cast(right, nn.element_of(value)), labels.ignored)
    total = _total(node, found)
    if labels.ignored is not None:
        return [node.add(nn.DivOp(total, _counted(node, found, labels.ignored)))]
    return [node.scaled(total, 1.0 / max(prod(nn.shape_of(found)), 1))]


LOSS_LAYERS: dict[str, Importer] = {
    "Softmax": _softmax,
    "SoftmaxWithLoss": _softmax_with_loss,
    "EuclideanLoss": _euclidean,
    "SigmoidCrossEntropyLoss": _sigmoid_cross_entropy,
    "HingeLoss": _hinge,
    "ContrastiveLoss": _contrastive,
    "MultinomialLogisticLoss": _multinomial_logistic,
    "Accuracy": _accuracy,
}
"""The importers of losses and of what judges a network."""

LABELS = {
    "SoftmaxWithLoss": (1,),
    "HingeLoss": (1,),
    "MultinomialLogisticLoss": (1,),
    "Accuracy": (1,),
    "Embed": (0,),
}
"""The bottoms of layers that are integers, by type. Caffe stores all values as floats."""

IDLE = frozenset({"Silence"})
"""The types of layers that do not look at the values of their bottoms."""
