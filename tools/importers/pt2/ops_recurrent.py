"""ATen operators that carry a state along a sequence: LSTM, GRU and RNN, of several layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ....ir.support.arrays import Array
from ..building import Known, Value, dtype_of, shape_of
from .aten_node import AtenNode, Importer, Results


@dataclass(frozen=True)
class Kind:
    """A kind of recurrent layer.

    Attributes:
        operator: of ONNX.
        order: the place of each gate of ONNX among those of torch.
        states: the number of states that a step passes on.
        activation: the function of an RNN; "" for the kind's own.
        attributes: of ONNX's operator.
    """

    operator: str
    order: tuple[int, ...]
    states: int = 1
    activation: str = ""
    attributes: tuple[tuple[str, int], ...] = ()


KINDS = {
    "lstm": Kind("LSTM", (0, 3, 1, 2), states=2),
    "gru": Kind("GRU", (1, 0, 2), attributes=(("linear_before_reset", 1),)),
    "rnn_tanh": Kind("RNN", (0,)),
    "rnn_relu": Kind("RNN", (0,), activation="Relu"),
}


def _in_order(array: Array, order: Sequence[int]) -> Array:
    """A weight with its gates in another order. They lie along the first axis."""
    whole = array.reshape(len(order), -1, *array.shape[1:])
    return np.ascontiguousarray(whole[list(order)].reshape(array.shape))


def _arranged(node: AtenNode, parts: Sequence[Value], order: Sequence[int], axis: int) -> Value:
    """The weights of all directions as ONNX arranges them, joined along an axis.

    Weights that are known and are not trained are arranged now, so that the program need not.
    """
    if all(isinstance(each, Known) for each in parts) and not node.graph.training:
        made = [each for each in parts if isinstance(each, Known)]
        shape = list(shape_of(parts[0]))
        if axis:
            shape[0] *= len(parts)
        whole = (1, *shape) if axis else (len(parts), *shape)
        makers = [each.make for each in made]

        def make() -> Array:
            arrays = [_in_order(each(), order) for each in makers]
            return np.concatenate(arrays).reshape(whole)

        return Known(made[0].name, tuple(whole), made[0].dtype, make, made[0].state)
    pieces = [
        node.reshape(_moved(node, node.ssa(each), order), (1, *shape_of(each))) for each in parts
    ]
    return pieces[0] if len(pieces) == 1 else node.add(nn.ConcatOp(pieces, axis))


def _moved(node: AtenNode, value: SSAValue, order: Sequence[int]) -> SSAValue:
    size = nn.shape_of(value)[0] // len(order)
    parts = [node.sliced(value, 0, i * size, size) for i in order]
    return parts[0] if len(parts) == 1 else node.add(nn.ConcatOp(parts, 0))


def _joined(node: AtenNode, parts: Sequence[Value], axis: int) -> Value:
    values = [node.ssa(each) for each in parts]
    return values[0] if len(values) == 1 else node.add(nn.ConcatOp(values, axis))


def _recurrent(kind: Kind) -> Importer:
    def importer(node: AtenNode) -> Results:
        if node.has("batch_sizes"):
            raise node.unsupported("a packed sequence", "a padded one is")
        return _layers(node, kind)

    return importer


def _layers(node: AtenNode, kind: Kind) -> Results:
    """Y of the last layer, and the last states of all layers."""
    value, states = node["input"], [node.ssa(each) for each in node.several("hx")]
    params, layers = node.several("params"), node.integer("num_layers")
    directions = 2 if node.flag("bidirectional") else 1
    each = 4 if node.flag("has_biases") else 2
    if len(params) != layers * directions * each or len(states) != kind.states:
        raise node.unsupported(
            f"{len(params)} weights and {len(states)} states of {layers} layers",
            "layers without projections are",
        )
    first = node.flag("batch_first")
    x = node.transposed(value, (1, 0, 2)) if first else value
    steps, batch, _ = nn.shape_of(x)
    hidden = nn.shape_of(states[0])[2]
    last: list[list[SSAValue]] = [[] for _ in states]
    for layer in range(layers):
        start = layer * directions * each
        own = params[start : start + directions * each]
        weights = [_arranged(node, own[i::each], kind.order, 0) for i in range(2)]
        biases = _biases(node, own, kind, each) if each == 4 else None
        begin = [node.sliced(s, 0, layer * directions, directions) for s in states]
        found = node.apply_all(
            kind.operator,
            x,
            *weights,
            biases,
            None,
            *begin,
            results=1 + kind.states,
            hidden_size=hidden,
            direction="bidirectional" if directions == 2 else "forward",
            activations=[kind.activation] * directions if kind.activation else None,
            **dict(kind.attributes),
        )
        y, *ends = (node.ssa(each) for each in found)
        for stack, end in zip(last, ends, strict=True):
            stack.append(end)
        x = node.reshape(node.transposed(y, (0, 2, 1, 3)), (steps, batch, directions * hidden))
    result = node.transposed(x, (1, 0, 2)) if first else x
    return [result, *(_joined(node, each, 0) for each in last)]


def _biases(node: AtenNode, own: Sequence[Value], kind: Kind, each: int) -> Value:
    """The biases of the inputs and of the state, one after the other, for each direction."""
    pairs = list(zip(own[2::each], own[3::each], strict=True))
    known = all(isinstance(one, Known) for pair in pairs for one in pair)
    if known and not node.graph.training:
        arrays = [
            np.concatenate(
                [_in_order(one.make(), kind.order) for one in pair if isinstance(one, Known)]
            )
            for pair in pairs
        ]
        first = pairs[0][0]
        assert isinstance(first, Known)
        whole = np.stack(arrays).astype(dtype_of(first))
        return Known(first.name, whole.shape, whole.dtype, lambda: whole, first.state)
    rows = [
        node.add(nn.ConcatOp([_moved(node, node.ssa(one), kind.order) for one in pair], 0))
        for pair in pairs
    ]
    wide = [node.reshape(row, (1, *nn.shape_of(row))) for row in rows]
    return _joined(node, wide, 0)


RECURRENT: dict[str, Importer] = {name: _recurrent(kind) for name, kind in KINDS.items()}
"""The importers of recurrent layers."""
