"""Operators of MXNet on sequences: recurrent layers, and the loss of labels without an alignment.

RNN holds the weights of all layers in one vector, as cuDNN does: first the matrices of each layer
and direction, for its input and for its own state, then their biases in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value
from .symbol_node import Importer, MxNode


@dataclass(frozen=True)
class _Mode:
    """A kind of recurrent layer.

    Attributes:
        operator: of ONNX.
        gates: for each gate of ONNX, in order, the number of MXNet's.
        attributes: what ONNX calls this kind.
        states: how many states it carries.
    """

    operator: str
    gates: tuple[int, ...] = (0,)
    attributes: dict[str, object] = field(default_factory=dict[str, object])
    states: int = 1


MODES = {
    "lstm": _Mode("LSTM", (0, 3, 1, 2), states=2),
    # MXNet multiplies the state by a gate after its matrix, with the bias of the matrix.
    "gru": _Mode("GRU", (1, 0, 2), {"linear_before_reset": 1}),
    "rnn_tanh": _Mode("RNN", attributes={"activations": ["Tanh"]}),
    "rnn_relu": _Mode("RNN", attributes={"activations": ["Relu"]}),
}
"""The kinds of recurrent layers, by the mode of RNN."""


def _rnn(node: MxNode) -> list[Value]:
    mode = MODES[node.choice("mode", tuple(MODES))]
    size, layers = node.integer("state_size", least=1), node.integer("num_layers", least=1)
    ways = 2 if node.flag("bidirectional") else 1
    for name in ("projection_size", "lstm_state_clip_min", "lstm_state_clip_max"):
        if node.has(name):
            raise node.unsupported(name, "layers without it are")
    for name in ("use_sequence_length", "lstm_state_clip_nan"):
        if node.flag(name):
            raise node.unsupported(name, "sequences of one length are, without clipping")
    if node.number("p", 0.0) and node.graph.training and layers > 1:
        raise node.unsupported("dropout between layers (p) in training", "p 0 is")
    node.takes(2 + mode.states)
    shape = node.shape(0)
    if len(shape) != 3 or 0 in shape:
        raise node.bad(f"operand 0 of shape {list(shape)}; need steps, samples and inputs")
    steps, samples, inputs = shape
    for i in range(2, 2 + mode.states):
        if node.shape(i) != (layers * ways, samples, size):
            raise node.bad(
                f"operand {i} of shape {list(node.shape(i))}; need {[layers * ways, samples, size]}"
            )
    width = len(mode.gates) * size
    terms = [inputs if layer == 0 else ways * size for layer in range(layers)]
    shapes = [(width, n) for each in terms for _ in range(ways) for n in (each, size)]
    count = sum(rows * columns for rows, columns in shapes)
    packed = node.weight(1, (count + len(shapes) * width,))
    pieces = _Pieces(node, packed, mode.gates)
    matrices = [pieces.next(shape) for shape in shapes]
    biases = [pieces.next((width,)) for _ in shapes]
    row: Value = node.value(0)
    ends: list[list[Value]] = [[] for _ in range(mode.states)]
    for layer in range(layers):
        own = slice(2 * ways * layer, 2 * ways * (layer + 1))
        weights = [_stacked(node, matrices[own][k::2]) for k in (0, 1)]
        pairs = zip(biases[own][::2], biases[own][1::2], strict=True)
        bias = _stacked(node, [node.add(nn.ConcatOp(pair, 0)) for pair in pairs])
        begin = [node.sliced(node.value(2 + k), 0, ways * layer, ways) for k in range(mode.states)]
        found, *last = node.apply_all(
            mode.operator,
            *(row, *weights, bias, None, *begin),
            results=1 + mode.states,
            hidden_size=size,
            direction="bidirectional" if ways == 2 else "forward",
            **_of_each(mode, ways),
        )
        turned = node.transposed(found, [0, 2, 1, 3])
        row = node.reshape(turned, (steps, samples, ways * size))
        for held, value in zip(ends, last, strict=True):
            held.append(value)
    if not node.flag("state_outputs"):
        return [row]
    joined = [node.add(nn.ConcatOp([node.ssa(v) for v in each], 0)) for each in ends]
    return [row, *joined]


def _of_each(mode: _Mode, ways: int) -> dict[str, object]:
    """The attributes of ONNX; a list has one entry per direction."""
    return {k: v * ways if isinstance(v, list) else v for k, v in mode.attributes.items()}


def _stacked(node: MxNode, values: list[SSAValue]) -> SSAValue:
    """Values of both directions along a new first axis."""
    parts = [node.reshape(each, (1, *nn.shape_of(each))) for each in values]
    return parts[0] if len(parts) == 1 else node.add(nn.ConcatOp(parts, 0))


@dataclass
class _Pieces:
    """The parts of a vector of weights, one after the other.

    Attributes:
        node: that reads them.
        packed: the vector.
        gates: for each gate of ONNX, in order, the number of MXNet's.
        start: of the next part.
    """

    node: MxNode
    packed: Value
    gates: tuple[int, ...]
    start: int = 0

    def next(self, shape: tuple[int, ...]) -> SSAValue:
        """The next part in a shape, its rows in the order of ONNX."""
        node, count = self.node, int(np.prod(shape))
        part = node.reshape(node.sliced(self.packed, 0, self.start, count), shape)
        self.start += count
        size = shape[0] // len(self.gates)
        if self.gates == tuple(range(len(self.gates))):
            return part
        gates = [node.sliced(part, 0, gate * size, size) for gate in self.gates]
        return node.add(nn.ConcatOp(gates, 0))


# Labels without an alignment


def _ctc_loss(node: MxNode) -> Value:
    """The loss of each sample. Labels end where padding begins, unless their number is given."""
    has_frames, has_counts = node.flag("use_data_lengths"), node.flag("use_label_lengths")
    is_first = node.choice("blank_label", ("first", "last"), "first") == "first"
    node.takes(2 + has_frames + has_counts)
    shape = node.shape(0)
    if len(shape) != 3 or 0 in shape:
        raise node.bad(f"operand 0 of shape {list(shape)}; need frames, samples and classes")
    blank, padding = (0, 0) if is_first else (shape[2] - 1, -1)
    labels = node.cast(node[1], i32)
    if len(nn.shape_of(labels)) != 2:
        raise node.bad(f"operand 1 of shape {list(nn.shape_of(labels))}; need samples and labels")
    whole = node.emitted(np.full(shape[1:2], -1, np.int32))
    frames = node.cast(node[2], i32) if has_frames else whole
    if has_counts:
        counts = node.cast(node[2 + has_frames], i32)
    else:
        end = node.add(nn.EqualOp(labels, node.constant(padding, labels)))
        known = node.cast(node.add(nn.LogicalNotOp(end)), i32)
        before = node.add(nn.ScanOp(known, "prod", 1))
        counts = node.add(nn.ReduceOp(before, "sum", [1]))
    logs = node.add(nn.LogSoftmaxOp(node[0], 2))
    return node.add(nn.CtcLossOp(logs, labels, frames, counts, blank=blank))


SEQUENCES: dict[str, Importer] = {
    "RNN": _rnn,
    **{name: _ctc_loss for name in ("CTCLoss", "ctc_loss", "_contrib_CTCLoss")},
    "_contrib_ctc_loss": _ctc_loss,
}
"""The importers of operators on sequences."""

AXES = {
    "RNN": {0: 3, 2: 3, 3: 3},
    **{name: {0: 3, 1: 2, 2: 1, 3: 1} for name in SEQUENCES if name != "RNN"},
}
"""For each operator, the number of axes of its operands that may be inputs."""
