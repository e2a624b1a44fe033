"""Layers with weights that multiply, look up, or normalise."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ....dialects import nn
from ....ir.support.arrays import Array
from ..building import Known, Value, shape_of
from ..onnx.ops_normalise import moments
from .blobs import divided_by_factor
from .fields import Fields
from .layer_node import Importer, LayerNode
from .network import Parameter


def _inner_product(node: LayerNode) -> Sequence[Value]:
    fields = node.layer.settings("inner_product_param")
    node.takes(1)
    shape = node.shape(0)
    axis, outputs = node.along(fields, 1), fields.integer("num_output", 0, 1)
    if outputs < 1:
        raise fields.bad("num_output", "missing")
    inner = prod(shape[axis:])
    is_turned = fields.flag("transpose")
    size = (inner, outputs) if is_turned else (outputs, inner)
    flat = node.reshape(node[0], (prod(shape[:axis]), inner))
    operands: list[Value] = [flat, node.weight(0, size, fields, "weight_filler")]
    if fields.flag("bias_term", True):
        operands.append(node.weight(1, (outputs,), fields, "bias_filler"))
    found = node.apply("Gemm", *operands, transB=int(not is_turned))
    return [node.reshape(found, (*shape[:axis], outputs))]


def _embed(node: LayerNode) -> Sequence[Value]:
    node.takes(1)
    fields = node.layer.settings("embed_param")
    rows, outputs = fields.integer("input_dim", 0, 1), fields.integer("num_output", 0, 1)
    if rows < 1 or outputs < 1:
        raise fields.bad("input_dim", f"{rows}, num_output {outputs}; need both")
    table = node.ssa(node.weight(0, (rows, outputs), fields, "weight_filler"))
    found = node.add(nn.GatherOp(table, node.cast(node[0], i32), 0))
    if fields.flag("bias_term", True):
        bias = node.ssa(node.weight(1, (outputs,), fields, "bias_filler"))
        found = node.add(nn.AddOp(found, bias))
    return [found]


def _batch_norm(node: LayerNode) -> Sequence[Value]:
    """The third blob is what the sums in the other two were accumulated with."""
    node.takes(1)
    fields, shape = node.layer.settings("batch_norm_param"), node.shape(0)
    if len(shape) < 2:
        raise node.bad(f"bottom of shape {list(shape)}; need channels along axis 1")
    channels, epsilon = (shape[1],), fields.number("eps", 1e-5)
    uses_batch = not fields.flag("use_global_stats", node.scope.phase == "TEST")
    if uses_batch and node.scope.phase == "TEST":
        axes = [0, *range(2, len(shape))]
        centred, _, variance = moments(node, node[0], axes)
        divisor = node.add(nn.SqrtOp(node.shifted(variance, epsilon)))
        return [node.add(nn.DivOp(centred, divisor))]
    mean, variance = (_statistic(node, i, channels, uses_batch) for i in range(2))
    one, zero = (node.known(np.full(channels, n, np.float32)) for n in (1.0, 0.0))
    return [node.apply("BatchNormalization", node[0], one, zero, mean, variance, epsilon=epsilon)]


def _statistic(node: LayerNode, index: int, channels: tuple[int, ...], uses_batch: bool) -> Known:
    """The mean or the variance, divided by the factor with which it was accumulated.

    Training that does not use the statistics of the batch does not change it: it is a constant.
    """
    part = ("mean", "variance")[index]
    read = node.stored_blob(index, channels, part)
    factor = node.stored_blob(2, (1,), "factor")

    def divided() -> Array:
        if read is None or factor is None:
            return np.zeros(channels, np.float32)
        return divided_by_factor(read(), factor())

    if node.scope.phase == "TRAIN" and not uses_batch:
        return node.known(divided())
    return node.state(f"{node.name}.{part}", channels, divided, Parameter(), fixed=True)


def _scale(node: LayerNode) -> Sequence[Value]:
    """A product with a second bottom, or with a weight, and a bias."""
    node.takes(1, 2)
    fields = node.layer.settings("scale_param")
    factor, axis = _along(node, fields, "filler", 0, 1.0)
    rank = len(node.shape(0))
    found = node.add(nn.MulOp(node[0], node.spread(factor, axis, rank)))
    if fields.flag("bias_term"):
        index = 2 - len(node.bottoms)
        bias = node.weight(index, shape_of(factor), fields, "bias_filler")
        found = node.add(nn.AddOp(found, node.spread(bias, axis, rank)))
    return [found]


def _bias(node: LayerNode) -> Sequence[Value]:
    node.takes(1, 2)
    fields = node.layer.settings("bias_param")
    bias, axis = _along(node, fields, "filler", 0, 0.0)
    return [node.add(nn.AddOp(node[0], node.spread(bias, axis, len(node.shape(0)))))]


def _along(
    node: LayerNode, fields: Fields, name: str, index: int, default: float
) -> tuple[Value, int]:
    """The second bottom, or a weight of some axes of the first one; and where its axes begin."""
    shape = node.shape(0)
    axis = node.along(fields, 1)
    if len(node.bottoms) > 1:
        given = node.value(1)
        return given, axis if shape_of(given) else 0
    count = fields.integer("num_axes", 1, -1)
    end = len(shape) if count == -1 else axis + count
    if end > len(shape):
        raise fields.bad("num_axes", f"{count} from axis {axis} on, of {len(shape)}")
    own = shape[axis:end]
    return node.weight(index, own, fields, name, default), axis if own else 0


def _mvn(node: LayerNode) -> Sequence[Value]:
    """Mean 0 and deviation 1 of each channel, or of each sample."""
    node.takes(1)
    fields, value = node.layer.settings("mvn_param"), node[0]
    first = 1 if fields.flag("across_channels") else 2
    axes = list(range(first, len(nn.shape_of(value))))
    if not axes:
        raise node.bad(f"bottom of shape {list(nn.shape_of(value))}; need axes to normalise")
    centred, _, variance = moments(node, value, axes)
    if not fields.flag("normalize_variance", True):
        return [centred]
    deviation: SSAValue = node.add(nn.SqrtOp(variance))
    divisor = node.shifted(deviation, fields.number("eps", 1e-9))
    return [node.add(nn.DivOp(centred, divisor))]


LEARNED: dict[str, Importer] = {
    "InnerProduct": _inner_product,
    "Embed": _embed,
    "BatchNorm": _batch_norm,
    "Scale": _scale,
    "Bias": _bias,
    "MVN": _mvn,
}
"""The importers of layers with weights, and of normalisations."""
