"""onnxruntime's recurrent layer with quantised weights, DynamicQuantizeLSTM.

Its weights are integers of 8 bits, transposed from those of LSTM. The inputs, and the state of each
step, are quantised as DynamicQuantizeLinear does, over all their elements in a direction. Products
are computed in floats here, from the numbers that the integers stand for.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects import nn
from .node import Importer, Node, Results
from .ops_quantised import dequantised, dynamically_quantised
from .ops_recurrent import KINDS, R, W, X, recurrent

FIRST_SCALE = {W: 8, R: 10}
"""The operand with the scales of quantised weights; the next operand has their zero points."""


def _dynamic_quantize_lstm(node: Node) -> Results:
    for index, scale in FIRST_SCALE.items():
        node.replaced[index] = _weights(node, index, scale)
    node.replaced[X] = _rounded(node, node[X])
    return recurrent(KINDS["LSTM"], node, _rounded_by_direction)


def _weights(node: Node, index: int, scale: int) -> SSAValue:
    """The weights [D, inputs, 4 H] in LSTM's layout, [D, 4 H, inputs]."""
    shape = node.shape(index)
    if len(shape) != 3:
        raise node.bad(f"operand {index} has shape {list(shape)}; need three axes")
    scales = _for_columns(node, scale, shape)
    zeros = _for_columns(node, scale + 1, shape) if node.has(scale + 1) else None
    numbers = dequantised(node, node[index], scales, zeros)
    return node.add(nn.TransposeOp(numbers, [0, 2, 1]))


def _for_columns(node: Node, index: int, shape: tuple[int, ...]) -> SSAValue:
    """One number per direction, or per column of its weights, in a shape that broadcasts with the
    weights.
    """
    d, _, columns = shape
    given = node.shape(index)
    if given not in ((d,), (d, columns)):
        raise node.bad(
            f"operand {index} has shape {list(given)}; need {[d]} or {[d, columns]}, for weights "
            f"{list(shape)}"
        )
    return node.reshape(node[index], (d, 1, given[1] if len(given) > 1 else 1))


def _rounded(node: Node, value: SSAValue) -> SSAValue:
    """The numbers that a value stands for after it is quantised."""
    return dequantised(node, *dynamically_quantised(node, value))


def _rounded_by_direction(node: Node, state: SSAValue) -> SSAValue:
    d, *rest = nn.shape_of(state)
    if d == 1:
        return _rounded(node, state)
    parts = [node.add(nn.SliceOp(state, [i, 0, 0], [1, 1, 1], [1, *rest])) for i in range(d)]
    return node.add(nn.ConcatOp([_rounded(node, part) for part in parts], 0))


QUANTISED_RECURRENT: dict[str, Importer] = {"DynamicQuantizeLSTM": _dynamic_quantize_lstm}
