"""Operators of MXNet that say what training minimises, and softmax.

In inference, they give what a network predicts, and do not read labels. In training, the pass train
makes the loss: MXNet's own optimisers divide gradients by the number of samples, so it is a mean.
"""

from __future__ import annotations

from math import prod

from ....dialects import nn
from ..building import Value
from .symbol_node import Importer, MxNode

LABELLED = {
    "SoftmaxOutput": "softmax_cross_entropy",
    "Softmax": "softmax_cross_entropy",
    "LinearRegressionOutput": "mean_square",
    "LogisticRegressionOutput": "binary_cross_entropy",
    "MAERegressionOutput": "mean_absolute",
}
"""The operators whose second operand is a label, and the loss of the pass train for each."""


def _trained(node: MxNode, loss: str) -> None:
    """Record what training minimises."""
    scale = node.number("grad_scale", 1.0)
    if not node.graph.training:
        return
    if scale != 1.0:
        raise node.unsupported(f"grad_scale {scale:g} in training", "1 is")
    if node.scope.trained.get("loss"):
        raise node.unsupported("a second loss", "one is; --loss given trains on one output")
    node.scope.trained["loss"] = loss


def _softmax_output(node: MxNode) -> Value:
    shape = node.shape(0)
    by_channel, keeps = node.flag("multi_output"), node.flag("preserve_shape")
    use_ignore, ignored = node.flag("use_ignore"), node.number("ignore_label", -1.0)
    _ = node.choice("normalization", ("null", "batch", "valid"), "null")
    smoothing = node.number("smooth_alpha", 0.0)
    if len(shape) < 2:
        raise node.bad(f"operand of shape {list(shape)}; need samples and classes")
    _trained(node, LABELLED["SoftmaxOutput"])
    if node.graph.training:
        if smoothing or (len(shape) > 2 and not by_channel):
            raise node.unsupported(
                f"smooth_alpha {smoothing:g} or shape {list(shape)} in training",
                "multi_output is, and classes along axis 1",
            )
        if use_ignore:
            node.scope.trained["ignore-index"] = str(int(ignored))
    if by_channel or len(shape) == 2:
        return node.add(nn.SoftmaxOp(node[0], 1))
    if keeps:
        return node.add(nn.SoftmaxOp(node[0], len(shape) - 1))
    flat = node.reshape(node[0], (shape[0], prod(shape[1:])))
    return node.reshape(node.add(nn.SoftmaxOp(flat, 1)), shape)


def _linear(node: MxNode) -> Value:
    _trained(node, LABELLED["LinearRegressionOutput"])
    return node.value(0)


def _absolute(node: MxNode) -> Value:
    _trained(node, LABELLED["MAERegressionOutput"])
    return node.value(0)


def _logistic(node: MxNode) -> Value:
    _trained(node, LABELLED["LogisticRegressionOutput"])
    return node.add(nn.SigmoidOp(node[0]))


def _make_loss(node: MxNode) -> Value:
    """The operand, each element of which is a loss."""
    if node.has("normalization"):
        if node.choice("normalization", ("null", "batch", "valid")) == "valid":
            raise node.unsupported("normalization valid", "null and batch are")
        _ = node.number("valid_thresh", 0.0)
    _trained(node, "given")
    return node.value(0)


def _softmax(node: MxNode) -> Value:
    return _along(node, nn.SoftmaxOp)


def _log_softmax(node: MxNode) -> Value:
    return _along(node, nn.LogSoftmaxOp)


def _along(node: MxNode, operation: type[nn.SoftmaxOp | nn.LogSoftmaxOp]) -> Value:
    axis = node.axis(node.integer("axis", -1), len(node.shape(0)))
    for each in ("dtype", "use_length"):
        if node.has(each) and node.text(each) not in ("False", "float32"):
            raise node.unsupported(each, "none is")
    warmth = node.number("temperature", 1.0) if node.has("temperature") else 1.0
    if warmth <= 0.0:
        raise node.bad(f"temperature {warmth:g}; need more than 0")
    return node.add(operation(node.scaled(node[0], 1.0 / warmth), axis))


def _softmax_activation(node: MxNode) -> Value:
    shape = node.shape(0)
    if node.choice("mode", ("instance", "channel"), "instance") == "channel" or len(shape) == 2:
        return node.add(nn.SoftmaxOp(node[0], 1))
    flat = node.reshape(node[0], (*shape[:1], prod(shape[1:])))
    return node.reshape(node.add(nn.SoftmaxOp(flat, 1)), shape)


OUTPUTS: dict[str, Importer] = {
    "SoftmaxOutput": _softmax_output,
    "Softmax": _softmax_output,
    "LinearRegressionOutput": _linear,
    "LogisticRegressionOutput": _logistic,
    "MAERegressionOutput": _absolute,
    "MakeLoss": _make_loss,
    "make_loss": _make_loss,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "SoftmaxActivation": _softmax_activation,
}
"""The importers of outputs."""
