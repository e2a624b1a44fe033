"""Operators of MXNet that compute each element alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import element_type
from ..building import Known, Value
from .symbol_node import F32, Importer, MxNode

Make = Callable[[SSAValue], nn.PureTensorOp]
Merge = Callable[[SSAValue, SSAValue], nn.PureTensorOp]


def _plain(operation: Make) -> Importer:
    return lambda node: node.add(operation(node[0]))


def _onnx(operator: str) -> Importer:
    return lambda node: node.apply(operator, node[0])


ACTIVATIONS: dict[str, Importer] = {
    "relu": _plain(nn.ReluOp),
    "sigmoid": _plain(nn.SigmoidOp),
    "tanh": _plain(nn.TanhOp),
    "softrelu": _plain(nn.SoftplusOp),
    "softsign": _onnx("Softsign"),
}


def _activation(node: MxNode) -> Value:
    return _one(ACTIVATIONS[node.choice("act_type", list(ACTIVATIONS))](node))


def _one(found: Sequence[Value] | Value) -> Value:
    """The output of an importer that has one."""
    assert isinstance(found, SSAValue | Known), "the importer has one output"
    return found


def _leaky_relu(node: MxNode) -> Value:
    kinds = ("leaky", "prelu", "elu", "selu", "gelu", "rrelu")
    kind, slope = node.choice("act_type", kinds, "leaky"), node.number("slope", 0.25)
    low, high = node.number("lower_bound", 0.125), node.number("upper_bound", 0.334)
    if kind == "rrelu":
        if node.graph.training:
            raise node.unsupported("rrelu in training", "its mean slope in inference is")
        kind, slope = "leaky", (low + high) / 2
    if kind == "leaky":
        return node.add(nn.LeakyReluOp(node[0], slope))
    if kind == "elu":
        return node.apply("Elu", node[0], alpha=slope)
    if kind != "prelu":
        return node.apply("Selu" if kind == "selu" else "Gelu", node[0])
    shape = node.shape(0)
    channels = shape[1] if len(shape) > 1 else 1
    weight = node.ssa(node.weight(1, (channels,), 0.25))
    return node.apply("PRelu", node[0], node.reshape(weight, (channels, *[1] * (len(shape) - 2))))


def _dropout(node: MxNode) -> Value:
    share = node.number("p", 0.5)
    is_always = node.choice("mode", ("training", "always"), "training") == "always"
    if not 0.0 <= share < 1.0 or (node.has("axes") and node.integers("axes")):
        raise node.unsupported(f"p {share:g}, or axes", "0 or more and less than 1 is")
    active = node.known(np.array(node.graph.training or is_always))
    return node.apply_all("Dropout", node[0], node.known(np.array(share, F32)), active)[0]


def _merged(operation: Merge) -> Importer:
    """Two operands, which broadcast."""

    def importer(node: MxNode) -> Value:
        node.takes(2)
        return node.add(operation(*_alike(node)))

    return importer


def _alike(node: MxNode) -> list[SSAValue]:
    """The operands in the element type of the first one."""
    first = node[0]
    return [first, *(node.cast(node[i], nn.element_of(first)) for i in range(1, node.count))]


def _compared(operation: Merge) -> Importer:
    """A comparison, whose result has the type of its operands, as MXNet computes it."""

    def importer(node: MxNode) -> Value:
        left, right = _alike(node)
        return node.cast(node.add(operation(left, right)), nn.element_of(left))

    return importer


def _with_scalar(operation: Merge, *, reverse: bool = False, compares: bool = False) -> Importer:
    """An operand and a number."""

    def importer(node: MxNode) -> Value:
        value = node[0]
        if node.has("is_int"):
            _ = node.text("is_int")
        number = node.constant(node.number("scalar", 1.0), value)
        found = node.add(operation(*((number, value) if reverse else (value, number))))
        return node.cast(found, nn.element_of(value)) if compares else found

    return importer


def _sum_of_all(node: MxNode) -> Value:
    return reduce(lambda a, b: node.add(nn.AddOp(a, b)), _alike(node))


def _clip(node: MxNode) -> Value:
    low, high = node.number("a_min"), node.number("a_max")
    return node.add(nn.ClipOp(node[0], low, high))


def _cast(node: MxNode) -> Value:
    names = ("float32", "float16", "int32", "int64", "int8", "uint8", "bool")
    return node.cast(node[0], element_type(np.dtype(node.choice("dtype", names))))


def _same(node: MxNode) -> Value:
    return node.value(0)


def _blocked(node: MxNode) -> Value:
    if node.graph.training:
        raise node.unsupported("stopping gradients in training", "inference is")
    return node.value(0)


def _filled(number: float) -> Importer:
    def importer(node: MxNode) -> Value:
        like = node[0]
        return node.expanded(node.constant(number, like), nn.shape_of(like))

    return importer


def _where(node: MxNode) -> Value:
    node.takes(3)
    condition, left = node[0], node[1]
    zero = node.constant(0.0, condition)
    is_zero = node.add(nn.EqualOp(condition, zero))
    return node.add(nn.SelectOp(is_zero, node.cast(node[2], nn.element_of(left)), left))


BINARY: dict[str, Merge] = {
    "add": nn.AddOp,
    "plus": nn.AddOp,
    "sub": nn.SubOp,
    "minus": nn.SubOp,
    "mul": nn.MulOp,
    "div": nn.DivOp,
    "maximum": nn.MaxOp,
    "minimum": nn.MinOp,
    "power": nn.PowOp,
}

COMPARISONS: dict[str, Merge] = {
    "equal": nn.EqualOp,
    "greater": nn.GreaterOp,
    "greater_equal": nn.GreaterEqualOp,
    "lesser": nn.LessOp,
    "lesser_equal": nn.LessEqualOp,
}

ELEMENTWISE: dict[str, Importer] = {
    "Activation": _activation,
    "LeakyReLU": _leaky_relu,
    "Dropout": _dropout,
    "relu": _plain(nn.ReluOp),
    "sigmoid": _plain(nn.SigmoidOp),
    "tanh": _plain(nn.TanhOp),
    "exp": _plain(nn.ExpOp),
    "log": _plain(nn.LogOp),
    "sqrt": _plain(nn.SqrtOp),
    "square": _plain(nn.SquareOp),
    "abs": _plain(nn.AbsOp),
    "negative": _plain(nn.NegOp),
    "sign": _plain(nn.SignOp),
    "floor": _plain(nn.FloorOp),
    "ceil": _plain(nn.CeilOp),
    "erf": _plain(nn.ErfOp),
    "sin": _plain(nn.SinOp),
    "cos": _plain(nn.CosOp),
    "reciprocal": _plain(nn.ReciprocalOp),
    "softsign": _onnx("Softsign"),
    "clip": _clip,
    "Cast": _cast,
    "cast": _cast,
    "where": _where,
    "zeros_like": _filled(0.0),
    "ones_like": _filled(1.0),
    **{name: _same for name in ("identity", "_copy")},
    **{name: _blocked for name in ("BlockGrad", "stop_gradient")},
    **{name: _sum_of_all for name in ("add_n", "ElementWiseSum", "_sum")},
    **{f"elemwise_{name}": _merged(BINARY[name]) for name in ("add", "sub", "mul", "div")},
    **{f"broadcast_{name}": _merged(each) for name, each in BINARY.items()},
    **{f"broadcast_{name}": _compared(each) for name, each in COMPARISONS.items()},
    "_Plus": _merged(nn.AddOp),
    "_plus": _merged(nn.AddOp),
    "_Minus": _merged(nn.SubOp),
    "_minus": _merged(nn.SubOp),
    "_Mul": _merged(nn.MulOp),
    "_mul": _merged(nn.MulOp),
    "_Div": _merged(nn.DivOp),
    "_div": _merged(nn.DivOp),
    "_maximum": _merged(nn.MaxOp),
    "_minimum": _merged(nn.MinOp),
    "_power": _merged(nn.PowOp),
    **{f"_{name}_scalar": _with_scalar(each) for name, each in BINARY.items()},
    **{f"_{name}_scalar": _with_scalar(each, compares=True) for name, each in COMPARISONS.items()},
    "_rminus_scalar": _with_scalar(nn.SubOp, reverse=True),
    "_rdiv_scalar": _with_scalar(nn.DivOp, reverse=True),
    "_rpower_scalar": _with_scalar(nn.PowOp, reverse=True),
    "_PlusScalar": _with_scalar(nn.AddOp),
    "_MinusScalar": _with_scalar(nn.SubOp),
    "_RMinusScalar": _with_scalar(nn.SubOp, reverse=True),
    "_MulScalar": _with_scalar(nn.MulOp),
    "_DivScalar": _with_scalar(nn.DivOp),
    "_RDivScalar": _with_scalar(nn.DivOp, reverse=True),
    "_PowerScalar": _with_scalar(nn.PowOp),
}
"""The importers of elementwise operators."""
