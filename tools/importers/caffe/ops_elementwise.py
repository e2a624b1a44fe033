"""Layers that compute each element alone, or merge bottoms of one shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import log

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value
from .layer_node import F32, Importer, LayerNode


def _of_each(make: Callable[[LayerNode, SSAValue], SSAValue]) -> Importer:
    """A layer of one bottom and one top, which may be the same."""

    def importer(node: LayerNode) -> Sequence[Value]:
        node.takes(1)
        return [make(node, node[0])]

    return importer


def _plain(operation: Callable[[SSAValue], nn.PureTensorOp]) -> Importer:
    return _of_each(lambda node, value: node.add(operation(value)))


def _relu(node: LayerNode, value: SSAValue) -> SSAValue:
    slope = node.layer.settings("relu_param").number("negative_slope")
    return node.add(nn.LeakyReluOp(value, slope) if slope else nn.ReluOp(value))


def _prelu(node: LayerNode, value: SSAValue) -> SSAValue:
    fields, shape = node.layer.settings("prelu_param"), nn.shape_of(value)
    if len(shape) < 2:
        raise node.bad(f"bottom of shape {list(shape)}; need channels along axis 1")
    size = () if fields.flag("channel_shared") else (shape[1],)
    slope = node.spread(node.weight(0, size, fields, "filler", 0.25), 1, len(shape))
    return node.apply("PRelu", value, slope)


def _elu(node: LayerNode, value: SSAValue) -> SSAValue:
    alpha = node.layer.settings("elu_param").number("alpha", 1.0)
    return node.apply("Elu", value, alpha=alpha)


def _swish(node: LayerNode, value: SSAValue) -> SSAValue:
    beta = node.layer.settings("swish_param").number("beta", 1.0)
    gate = node.add(nn.SigmoidOp(node.scaled(value, beta)))
    return node.add(nn.MulOp(value, gate))


def _clip(node: LayerNode, value: SSAValue) -> SSAValue:
    fields = node.layer.settings("clip_param")
    for name in ("min", "max"):
        if not fields.has(name):
            raise fields.bad(name, "missing")
    return node.add(nn.ClipOp(value, fields.number("min"), fields.number("max")))


def _power(node: LayerNode, value: SSAValue) -> SSAValue:
    """The formula (shift + scale * x) ^ power."""
    fields = node.layer.settings("power_param")
    scale, shift = fields.number("scale", 1.0), fields.number("shift")
    power = fields.number("power", 1.0)
    if scale == 0.0 or power == 0.0:
        # As Caffe, which does not look at the bottom then.
        with np.errstate(all="ignore"):
            number = np.float32(1.0 if power == 0.0 else np.power(np.float64(shift), power))
        return node.expanded(node.known(np.array(number)), nn.shape_of(value))
    inner = node.shifted(node.scaled(value, scale), shift)
    if power == 1.0:
        return inner
    if power == 2.0:
        return node.add(nn.SquareOp(inner))
    return node.add(nn.PowerOp(inner, power))


def _base(node: LayerNode, name: str) -> tuple[float, float, float]:
    """The logarithm of the base, the scale and the shift of a layer Exp or Log."""
    fields = node.layer.settings(name)
    base = fields.number("base", -1.0)
    if base != -1.0 and base <= 0.0:
        raise fields.bad("base", f"is {base:g}; need more than 0, or -1 for e")
    natural = 1.0 if base == -1.0 else log(base)
    return natural, fields.number("scale", 1.0), fields.number("shift")


def _exp(node: LayerNode, value: SSAValue) -> SSAValue:
    """The formula base ^ (shift + scale * x)."""
    natural, scale, shift = _base(node, "exp_param")
    inner = node.shifted(node.scaled(value, scale * natural), shift * natural)
    return node.add(nn.ExpOp(inner))


def _log(node: LayerNode, value: SSAValue) -> SSAValue:
    """The formula log_base(shift + scale * x)."""
    natural, scale, shift = _base(node, "log_param")
    if natural == 0.0:
        raise node.bad("base is 1, to which no logarithm is known")
    inner = node.shifted(node.scaled(value, scale), shift)
    return node.scaled(node.add(nn.LogOp(inner)), 1.0 / natural)


def _threshold(node: LayerNode, value: SSAValue) -> SSAValue:
    limit = node.layer.settings("threshold_param").number("threshold")
    above = node.add(nn.GreaterOp(value, node.constant(limit, value)))
    return node.cast(above, nn.element_of(value))


def _dropout(node: LayerNode) -> Sequence[Value]:
    """What training leaves out is 0, and the rest grows, so that nothing changes in other
    phases.
    """
    node.takes(1)
    fields = node.layer.settings("dropout_param")
    ratio = fields.number("dropout_ratio", 0.5)
    if not 0.0 <= ratio < 1.0:
        raise fields.bad("dropout_ratio", f"is {ratio:g}; need 0 or more, and less than 1")
    trains = node.scope.phase == "TRAIN"
    share, active = node.known(np.array(ratio, F32)), node.known(np.array(trains))
    return node.apply_all("Dropout", node[0], share, active)


def _eltwise(node: LayerNode) -> Sequence[Value]:
    node.takes(2, len(node.bottoms) + 2)
    fields = node.layer.settings("eltwise_param")
    kind = fields.choice("operation", ("PROD", "SUM", "MAX"), "SUM")
    values = [node[i] for i in range(len(node.bottoms))]
    shapes = [node.shape(i) for i in range(len(node.bottoms))]
    wrong = next((each for each in shapes if each != shapes[0]), None)
    if wrong is not None:
        raise node.bad(f"bottoms of shapes {list(shapes[0])} and {list(wrong)}; need equal ones")
    factors = fields.numbers("coeff")
    if factors and (kind != "SUM" or len(factors) != len(values)):
        raise fields.bad("coeff", f"{len(factors)} of {len(values)} bottoms, with {kind}")
    if factors:
        values = [node.scaled(v, f) for v, f in zip(values, factors, strict=True)]
    merge = {"PROD": nn.MulOp, "SUM": nn.AddOp, "MAX": nn.MaxOp}[kind]
    return [reduce(lambda a, b: node.add(merge(a, b)), values)]


ELEMENTWISE: dict[str, Importer] = {
    "ReLU": _of_each(_relu),
    "PReLU": _of_each(_prelu),
    "ELU": _of_each(_elu),
    "Swish": _of_each(_swish),
    "Clip": _of_each(_clip),
    "Sigmoid": _plain(nn.SigmoidOp),
    "TanH": _plain(nn.TanhOp),
    "AbsVal": _plain(nn.AbsOp),
    "BNLL": _plain(nn.SoftplusOp),
    "Power": _of_each(_power),
    "Exp": _of_each(_exp),
    "Log": _of_each(_log),
    "Threshold": _of_each(_threshold),
    "Dropout": _dropout,
    "Eltwise": _eltwise,
}
"""The importers of elementwise layers."""
