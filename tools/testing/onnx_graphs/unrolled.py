"""Replaces one node with inner graphs by their nodes, iteration by iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ...driver.arrays import Array
from .graph import ModelCase, inner_graphs
from .runtimes import RefusedByRuntime, by_onnxruntime

AXES_ARE_OPERANDS = 13
"""The first opset in which the axes of Unsqueeze are an operand."""

ITERATION = "number of the iteration"
"""The name of the scan output that counts the iterations of a loop."""


class NotWrittenOut(Exception):
    """Raised if a node cannot be written out."""


def written_out(graph: ModelCase, node: onnx.NodeProto, values: Mapping[str, Array]) -> ModelCase:
    """The model with a node replaced by copies of its inner graphs, one for each time they run.

    Raises NotWrittenOut.

    Args:
        values: all values of the model.
    """
    if node.op_type not in _WAYS:
        raise NotWrittenOut(node.op_type)
    copies = _Copies()
    _WAYS[node.op_type](graph, node, values, copies)
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    at = list(graph.proto.graph.node).index(node)
    all_nodes = [*proto.graph.node[:at], *copies.nodes, *proto.graph.node[at + 1 :]]
    del proto.graph.node[:]
    proto.graph.node.extend(all_nodes)
    proto.graph.initializer.extend(copies.weights)
    proto.graph.value_info.extend(copies.told)
    return replace(graph, proto=proto, sketch=None)


class _Copies:
    """Copies of the nodes of graphs, with unique names.

    Attributes:
        told: the types of results that onnx does not infer.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.told: list[onnx.ValueInfoProto] = []
        self._numbers = count()

    def constant(self, array: Array) -> str:
        name = f"written out/constant {next(self._numbers)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def name(self, of: str) -> str:
        return f"written out/{of}/{next(self._numbers)}"

    def add(self, graph: onnx.GraphProto, given: Sequence[str]) -> list[str]:
        """Add the nodes of a graph. Returns the names of its outputs.

        Args:
            given: names for its inputs.
        """
        names = dict(zip((v.name for v in graph.input), given, strict=True))
        for tensor in graph.initializer:
            weight = onnx.TensorProto()
            weight.CopyFrom(tensor)
            weight.name = names[tensor.name] = self.name(tensor.name)
            self.weights.append(weight)
        for node in graph.node:
            names.update({name: self.name(name) for name in node.output if name})
            self.nodes.append(_renamed(node, names))
        for value in graph.value_info:
            told = onnx.ValueInfoProto()
            told.CopyFrom(value)
            told.name = names.get(value.name, value.name)
            self.told.append(told)
        return [names.get(v.name, v.name) for v in graph.output]

    def same(self, source: str, name: str) -> None:
        self.nodes.append(helper.make_node("Identity", [source], [name]))


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A copy of a node with its inputs and outputs renamed, also in its inner graphs."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for some in (copy.input, copy.output):
        for i, name in enumerate(some):
            some[i] = names.get(name, name)
    for graph in inner_graphs(copy):
        inner = list(graph.node)
        del graph.node[:]
        graph.node.extend(_renamed(each, names) for each in inner)
        for value in graph.output:
            value.name = names.get(value.name, value.name)
    return copy


def _if(
    graph: ModelCase, node: onnx.NodeProto, values: Mapping[str, Array], copies: _Copies
) -> None:
    condition = _known(graph, node.input[0], values)
    branches = {a.name: a.g for a in node.attribute}
    branch = branches["then_branch" if condition.reshape(-1)[0] else "else_branch"]
    for source, name in zip(copies.add(branch, []), node.output, strict=True):
        copies.same(source, name)


def _loop(
    graph: ModelCase, node: onnx.NodeProto, values: Mapping[str, Array], copies: _Copies
) -> None:
    (body,) = inner_graphs(node)
    carried = list(node.input[2:])
    if any(v.type.HasField("sequence_type") for v in body.input):
        raise NotWrittenOut("a loop that carries a sequence")
    states = len(carried)
    rows = list[list[str]]()
    going = node.input[1] if len(node.input) > 1 and node.input[1] else ""
    for iteration in range(_iterations(graph, node)):
        number = copies.constant(np.array(iteration, np.int64))
        on = going or copies.constant(np.array(True))
        going, *found = copies.add(body, [number, on, *carried])
        carried = found[:states]
        rows.append(found[states:])
    columns = [([row[i] for row in rows], 0) for i in range(len(node.output) - states)]
    _joined(graph, node, copies, carried, columns)


def _joined(
    graph: ModelCase,
    node: onnx.NodeProto,
    copies: _Copies,
    carried: Sequence[str],
    columns: Sequence[tuple[Sequence[str], int]],
) -> None:
    """Give the final carried values and the stacked rows the names of a node's results.

    Args:
        columns: the rows of each result, in order, and the axis along which they are stacked.
    """
    states = len(carried)
    for source, name in zip(carried, node.output[:states], strict=True):
        copies.same(source, name)
    for (rows, axis), name in zip(columns, node.output[states:], strict=True):
        if not rows:
            raise NotWrittenOut("no rows")
        parts = [copies.name("row") for _ in rows]
        for source, part in zip(rows, parts, strict=True):
            copies.nodes.append(_unsqueezed(graph, copies, source, part, axis))
        copies.nodes.append(helper.make_node("Concat", parts, [name], axis=axis))


def _unsqueezed(
    graph: ModelCase, copies: _Copies, source: str, result: str, axis: int
) -> onnx.NodeProto:
    if graph.opset < AXES_ARE_OPERANDS:
        return helper.make_node("Unsqueeze", [source], [result], axes=[axis])
    axes = copies.constant(np.array([axis]))
    return helper.make_node("Unsqueeze", [source, axes], [result])


def _iterations(graph: ModelCase, node: onnx.NodeProto) -> int:
    """The number of iterations that a loop runs in onnxruntime."""
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    at = list(graph.proto.graph.node).index(node)
    counting = proto.graph.node[at]
    (body,) = inner_graphs(counting)
    number = f"{ITERATION}/row"
    body.node.append(helper.make_node("Identity", [body.input[0].name], [number]))
    body.output.append(helper.make_tensor_value_info(number, onnx.TensorProto.INT64, ()))
    counting.output.append(ITERATION)
    del proto.graph.output[:]
    proto.graph.output.append(
        helper.make_tensor_value_info(ITERATION, onnx.TensorProto.INT64, (None,))
    )
    try:
        return by_onnxruntime(proto, graph.inputs)[ITERATION].size
    except RefusedByRuntime as error:
        raise NotWrittenOut(str(error)) from None


def _known(graph: ModelCase, name: str, values: Mapping[str, Array]) -> Array:
    there = {**graph.inputs, **graph.weights, **values}
    if name not in there:
        raise NotWrittenOut(f"nobody knows {name!r}")
    return there[name]


def _scan(
    graph: ModelCase, node: onnx.NodeProto, values: Mapping[str, Array], copies: _Copies
) -> None:
    (body,) = inner_graphs(node)
    attributes: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    scanned = int(attributes["num_scan_inputs"])
    states = len(node.input) - scanned
    results = len(node.output) - states
    axes = attributes.get("scan_input_axes", [0] * scanned)
    turned = attributes.get("scan_input_directions", [0] * scanned)
    rows, carried = list[list[str]](), list(node.input[:states])
    iterations = _known(graph, node.input[states], values).shape[axes[0]]
    for iteration in range(iterations):
        given = list(carried)
        for name, axis, backward in zip(node.input[states:], axes, turned, strict=True):
            at = copies.constant(np.array(iterations - 1 - iteration if backward else iteration))
            given.append(copies.name("row"))
            copies.nodes.append(helper.make_node("Gather", [name, at], given[-1:], axis=axis))
        found = copies.add(body, given)
        carried = found[:states]
        rows.append(found[states:])
    places = attributes.get("scan_output_axes", [0] * results)
    backward = attributes.get("scan_output_directions", [0] * results)
    columns = [
        ([row[i] for row in (rows[::-1] if back else rows)], place)
        for i, (back, place) in enumerate(zip(backward, places, strict=True))
    ]
    _joined(graph, node, copies, carried, columns)


_WAYS: dict[str, Callable[[ModelCase, onnx.NodeProto, Mapping[str, Array], _Copies], None]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
}
