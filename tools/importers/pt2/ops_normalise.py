"""ATen operators that normalise."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value, dtype_of, shape_of
from ..onnx.ops_normalise import divided_by_size, moments, normalised
from .aten_node import AtenNode, Importer, Results, only
from .schema import Tensor
from .views import write

EPSILON = 1e-5
"""What torch adds to a variance unless it is told otherwise."""


def _filled(node: AtenNode, number: float, count: int, like: SSAValue) -> Value:
    """A vector that stands for a weight which a module does without."""
    return node.known(np.full(count, number, np.float32).astype(dtype_of(like)))


def _batch_norm(node: AtenNode) -> list[Value | None]:
    """Batch normalisation with the running statistics, or with those of the batch in training.

    Returns five results: those of `_batch_norm_that_learns`.
    """
    value = node["input"]
    shape = nn.shape_of(value)
    if len(shape) < 2:
        raise node.bad(f"image of shape {list(shape)}; need samples and channels")
    one, zero = (_filled(node, n, shape[1], value) for n in (1.0, 0.0))
    scale, bias = node.operand("weight") or one, node.operand("bias") or zero
    average, variance = node.operand("running_mean"), node.operand("running_var")
    epsilon = node.number("eps", EPSILON)
    learns = node.flag("training", False) or average is None or variance is None
    if not learns:
        found = node.apply(
            "BatchNormalization", value, scale, bias, average, variance, epsilon=epsilon
        )
        return [found, *[None] * 4]
    return _batch_norm_that_learns(node, scale, bias)


RUNNING = ("running_mean", "running_var")
"""The arguments with the running statistics."""


def _batch_norm_that_learns(node: AtenNode, scale: Value, bias: Value) -> list[Value | None]:
    """The normalised value; the mean and the inverse deviation of the batch; new statistics.

    The new statistics are None if the node has no running ones.
    """
    value, momentum = node["input"], node.number("momentum", 0.1)
    shape = nn.shape_of(value)
    axes = [i for i in range(len(shape)) if i != 1]
    centred, average, variance = moments(node, node.wide(value), axes)
    steady = node.add(nn.ShiftOp(variance, node.number("eps", EPSILON)))
    inverse = node.add(nn.ReciprocalOp(node.add(nn.SqrtOp(steady))))
    along = (shape[1], *[1] * (len(shape) - 2))
    done = _affine(node, node.add(nn.MulOp(centred, inverse)), scale, bias, along, value)
    # The running variance is that of a sample: a batch of n has n - 1 degrees of freedom.
    count = prod(shape[i] for i in axes)
    sample = node.add(nn.ScaleOp(variance, count / max(count - 1, 1)))
    running: list[Value | None] = []
    for name, new in zip(RUNNING, (average, sample), strict=True):
        old = node.operand(name)
        if old is None:
            running.append(None)
            continue
        kept = node.add(nn.ScaleOp(node.wide(node.ssa(old)), 1.0 - momentum))
        flat = node.reshape(node.add(nn.ScaleOp(new, momentum)), shape_of(old))
        running.append(node.converted(node.add(nn.AddOp(kept, flat)), dtype_of(old)))
    vectors = [node.reshape(each, (shape[1],)) for each in (average, inverse)]
    return [done, *vectors, *running]


def _batch_norm_in_place(node: AtenNode) -> Results:
    """Batch normalisation that writes new running statistics over the old ones."""
    found = _batch_norm(node)
    for name, new in zip(RUNNING, found[3:5], strict=True):
        old = node.call.arguments.get(name)
        if new is not None and isinstance(old, Tensor):
            write(node.scope, old.name, new)
    return found[:3]


def _affine(
    node: AtenNode,
    value: SSAValue,
    scale: Value | None,
    bias: Value | None,
    along: tuple[int, ...],
    like: SSAValue,
) -> SSAValue:
    """A normalised value times a scale plus a bias, each in a shape that broadcasts."""
    if scale is not None:
        value = node.add(nn.MulOp(value, node.reshape(node.wide(node.ssa(scale)), along)))
    if bias is not None:
        value = node.add(nn.AddOp(value, node.reshape(node.wide(node.ssa(bias)), along)))
    return node.cast(value, nn.element_of(like))


def _layer_norm(node: AtenNode) -> Results:
    """The value, its mean, and its inverse deviation."""
    value = node["input"]
    shape, last = nn.shape_of(value), node.integers("normalized_shape")
    if not last or tuple(last) != shape[-len(last) :]:
        raise node.bad(f"normalized_shape {last} of a tensor of shape {list(shape)}")
    epsilon = node.number("eps", EPSILON)
    scale, bias = node.operand("weight"), node.operand("bias")
    axis = len(shape) - len(last)
    if scale is not None:
        return node.apply_all(
            "LayerNormalization", value, scale, bias, results=3, axis=axis, epsilon=epsilon
        )
    axes = list(range(axis, len(shape)))
    found, average, inverse = normalised(node, value, axes, epsilon)
    return [_affine(node, found, None, bias, tuple(last), value), average, inverse]


def _group_norm(node: AtenNode) -> Results:
    groups = node.integer("num_groups") if node.has("num_groups") else node.integer("group")
    value = node["input"]
    shape = nn.shape_of(value)
    if len(shape) < 2 or groups < 1 or shape[1] % groups:
        raise node.bad(f"{groups} groups of a tensor of shape {list(shape)}")
    grouped = (shape[0], groups, prod(shape[1:]) // groups)
    epsilon = node.number("eps", EPSILON)
    found, average, inverse = normalised(node, node.reshape(value, grouped), [2], epsilon)
    along = (shape[1], *[1] * (len(shape) - 2))
    whole = node.reshape(found, shape)
    scale, bias = node.operand("weight"), node.operand("bias")
    done = _affine(node, whole, scale, bias, along, value)
    return [done, node.reshape(average, grouped[:2]), node.reshape(inverse, grouped[:2])]


def _instance_norm(node: AtenNode) -> Results:
    value = node["input"]
    shape = nn.shape_of(value)
    if len(shape) < 3 or not node.flag("use_input_stats", True):
        return only(_batch_norm_in_place(node))
    along = (shape[1], *[1] * (len(shape) - 2))
    axes = list(range(2, len(shape)))
    found, _, _ = normalised(node, value, axes, node.number("eps", EPSILON))
    return _affine(node, found, node.operand("weight"), node.operand("bias"), along, value)


def _rms_norm(node: AtenNode) -> Results:
    """The value divided by the root of its mean square, and the inverse of this root."""
    value = node["input"]
    last = node.integers("normalized_shape")
    rank = len(nn.shape_of(value))
    axes = list(range(rank - len(last), rank))
    one, two = (np.full((), n, dtype_of(value)) for n in (1, 2))
    own = float(np.nextafter(one, two)) - 1.0
    found, inverse = divided_by_size(node, value, axes, node.number("eps", own))
    return [_affine(node, found, node.operand("weight"), None, tuple(last), value), inverse]


def _along(operator: str) -> Importer:
    """A function along one axis."""

    def importer(node: AtenNode) -> Results:
        value = node.floats("self")
        dtype = node.wanted_dtype(dtype_of(value))
        value = node.converted(value, dtype)
        rank = len(nn.shape_of(value))
        if not rank:
            found = node.apply(operator, node.reshape(value, (1,)), axis=0)
            return node.reshape(found, ())
        return node.apply(operator, value, axis=node.along(node.integer("dim"), rank))

    return importer


def _only(importer: Importer) -> Importer:
    """The first result of an importer, for an operator that has only one."""
    return lambda node: only(importer(node))


NORMALISATIONS: dict[str, Importer] = {
    "batch_norm": _only(_batch_norm_in_place),
    "native_batch_norm": _batch_norm_in_place,
    "_native_batch_norm_legit": _batch_norm_in_place,
    "_native_batch_norm_legit_functional": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm,
    "_batch_norm_no_update": _batch_norm,
    "cudnn_batch_norm": _batch_norm,
    "layer_norm": _only(_layer_norm),
    "native_layer_norm": _layer_norm,
    "group_norm": _only(_group_norm),
    "native_group_norm": _group_norm,
    "instance_norm": _only(_instance_norm),
    "rms_norm": _only(_rms_norm),
    "_fused_rms_norm": _rms_norm,
    "softmax": _along("Softmax"),
    "_softmax": _along("Softmax"),
    "_safe_softmax": _along("Softmax"),
    "log_softmax": _along("LogSoftmax"),
    "_log_softmax": _along("LogSoftmax"),
}
"""The importers of normalisations."""
