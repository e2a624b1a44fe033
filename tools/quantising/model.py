"""The graph of an ONNX model, brought into the form that quantisation works on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
import onnx
from onnx import numpy_helper, version_converter

from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ..importers.front_ends import ONNX, Model, front_end_of, listed
from ..importers.onnx.functions import graphs_in
from ..importers.onnx.model_file import MOST_BYTES
from ..importers.onnx.names import check_names
from ..importers.onnx.origins import node_origins
from ..importers.onnx.overrides import FIRST_VERSION
from ..importers.onnx.tensors import is_external, tensor_array
from .operators import PRODUCTS, QUANTISED, number

PLAIN_DOMAINS = ("", "ai.onnx")


@dataclass
class Graph:
    """A model that is rewritten: its nodes, its weights and who reads what.

    Attributes:
        place: its name in messages.
        weights: the arrays of initialisers that no input replaces, by name.
        names: what abele calls each node, by its first result.
    """

    model: onnx.ModelProto
    place: str
    weights: dict[str, Array] = field(default_factory=dict[str, Array])
    names: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def nodes(self) -> list[onnx.NodeProto]:
        """The nodes of the model's own graph, in order."""
        return list(self.model.graph.node)

    @property
    def outputs(self) -> set[str]:
        """The names of the outputs."""
        return {each.name for each in self.model.graph.output}

    def copy(self) -> Graph:
        """A graph of its own with the same nodes and weights."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        return Graph(model, self.place, dict(self.weights), self.names)

    def name(self, node: onnx.NodeProto) -> str:
        """What abele calls a node."""
        return self.names.get(node.output[0], node.name or node.output[0])

    def readers(self) -> dict[str, list[onnx.NodeProto]]:
        """The nodes that read each value, those of graphs inside nodes included."""
        found: dict[str, list[onnx.NodeProto]] = {}
        for node in self.nodes:
            for value in (*node.input, *_inner_reads(node)):
                found.setdefault(value, []).append(node)
        return found

    def producers(self) -> dict[str, onnx.NodeProto]:
        """The node that makes each value."""
        return {value: node for node in self.nodes for value in node.output if value}

    def fresh(self, name: str) -> str:
        """A name that no value of the graph has, which begins with another one."""
        graph = self.model.graph
        taken = {value for node in graph.node for value in (*node.input, *node.output)}
        taken |= {each.name for each in (*graph.input, *graph.initializer)}
        while name in taken:
            name += "_"
        return name

    def set_weight(self, name: str, array: Array) -> None:
        """Add a weight, or replace one."""
        self.weights[name] = array
        tensor = numpy_helper.from_array(array, name)
        for each in self.model.graph.initializer:
            if each.name == name:
                each.CopyFrom(tensor)
                return
        self.model.graph.initializer.append(tensor)

    def replace_nodes(self, nodes: list[onnx.NodeProto]) -> None:
        """Give the graph other nodes, and drop the weights that nothing reads any more."""
        graph = self.model.graph
        del graph.node[:]
        graph.node.extend(nodes)
        read = set(self.readers()) | self.outputs
        kept = [each for each in graph.initializer if each.name in read]
        dropped = {each.name for each in graph.initializer} - {each.name for each in kept}
        del graph.initializer[:]
        graph.initializer.extend(kept)
        for name in dropped:
            self.weights.pop(name, None)


def read_graph(model: Model, least_opset: int) -> Graph:
    """The graph of a model, of an opset that has the operators which quantisation writes.

    Constants become weights, and normalisations that follow a convolution become part of it.
    Raises InputError for a file that is no ONNX model, a model that is quantised already, one
    without products of float32 numbers, and one whose opset cannot be raised.
    """
    if front_end_of(model) is not ONNX:
        path = os.fspath(model) if isinstance(model, str | os.PathLike) else "<model>"
        raise InputError(f"{path}: need an {listed(ONNX.suffixes)} model, to write one")
    proto, place = _loaded(cast("str | os.PathLike[str] | onnx.ModelProto", model))
    check_names(proto, place)
    done = next((each for each in _every_node(proto.graph) if _is_quantised(each)), None)
    if done is not None:
        raise InputError(
            f"{place}: node {done.name or done.output[0]!r} ({done.op_type}): the model is "
            "quantised already; need the float model"
        )
    names = {
        node.output[0]: origin.name
        for node, origin in zip(proto.graph.node, node_origins(proto), strict=True)
        if node.output
    }
    graph = Graph(_raised(proto, least_opset, place), place, names=names)
    _drop_declarations(graph.model)
    _name_nodes(graph)
    _read_weights(graph)
    _fold_constants(graph)
    _fold_normalisations(graph)
    if not any(each.op_type in PRODUCTS for each in graph.nodes):
        kinds = ", ".join(PRODUCTS)
        raise InputError(f"{place}: no products to quantise; need a {kinds} node")
    return graph


def _loaded(model: str | os.PathLike[str] | onnx.ModelProto) -> tuple[onnx.ModelProto, str]:
    """A copy of a model with all its weights inside, and its name in messages."""
    if isinstance(model, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy, "<model>"
    path = Path(model)
    try:
        proto = onnx.load(path, load_external_data=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except Exception:
        raise InputError(f"{path}: damaged, or not an ONNX model") from None
    for tensor in proto.graph.initializer:
        if is_external(tensor):
            what = f"{path}: weight {tensor.name!r}"
            array = tensor_array(tensor, path.parent, what)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    if proto.ByteSize() > MOST_BYTES:
        raise InputError(f"{path}: {proto.ByteSize():,} bytes; an ONNX file holds {MOST_BYTES:,}")
    return proto, str(path)


def _is_quantised(node: onnx.NodeProto) -> bool:
    return any(each in node.op_type for each in QUANTISED)


def _every_node(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for inner in graphs_in(node.attribute):
            yield from _every_node(inner)


def _inner_reads(node: onnx.NodeProto) -> Iterator[str]:
    for inner in graphs_in(node.attribute):
        for each in _every_node(inner):
            yield from each.input


def _raised(model: onnx.ModelProto, least: int, place: str) -> onnx.ModelProto:
    """The model in an opset of at least some version."""
    version = next((e.version for e in model.opset_import if e.domain in PLAIN_DOMAINS), least)
    if version >= least:
        return model
    try:
        return version_converter.convert_version(model, least)
    except Exception as error:
        why = str(error).strip().splitlines()[-1:] or [""]
        raise InputError(
            f"{place}: opset {version}, which onnx cannot convert to {least} ({why[0][:200]}); "
            f"need a model of opset {least}"
        ) from None


def _drop_declarations(model: onnx.ModelProto) -> None:
    """Remove declared shapes, which change, and inputs that are weights only for the oldest files.

    Before version 4 of the file format, every initialiser is an input as well.
    """
    graph = model.graph
    del graph.value_info[:]
    if model.ir_version < FIRST_VERSION:
        held = {each.name for each in graph.initializer}
        inputs = [each for each in graph.input if each.name not in held]
        del graph.input[:]
        graph.input.extend(inputs)
        model.ir_version = FIRST_VERSION


def _name_nodes(graph: Graph) -> None:
    """Give each node a name, by which errors and tables call it."""
    taken = {node.name for node in graph.nodes}
    for node in graph.model.graph.node:
        if not node.name and node.output:
            name = graph.name(node)
            while name in taken:
                name += "_"
            node.name = name
            taken.add(name)


def _read_weights(graph: Graph) -> None:
    proto = graph.model.graph
    given = {each.name for each in proto.input}
    for tensor in proto.initializer:
        if tensor.name not in given:
            what = f"{graph.place}: weight {tensor.name!r}"
            graph.weights[tensor.name] = tensor_array(tensor, None, what)


def _fold_constants(graph: Graph) -> None:
    """Turn constants into weights, and leave out copies of weights."""
    renamed: dict[str, str] = {}
    kept: list[onnx.NodeProto] = []
    for node in graph.nodes:
        for i, value in enumerate(node.input):
            node.input[i] = renamed.get(value, value)
        held = [a for a in node.attribute if a.name == "value" and a.HasField("t")]
        is_output = bool(node.output) and node.output[0] in graph.outputs
        if node.op_type == "Constant" and held and not is_output:
            what = f"{graph.place}: constant {node.output[0]!r}"
            graph.set_weight(node.output[0], tensor_array(held[0].t, None, what))
        elif node.op_type == "Identity" and node.input[0] in graph.weights and not is_output:
            renamed[node.output[0]] = node.input[0]
        else:
            kept.append(node)
    inner = {value for node in kept for value in _inner_reads(node)}
    if not inner & set(renamed):
        graph.replace_nodes(kept)


def _fold_normalisations(graph: Graph) -> None:
    """Multiply the factors of normalisations that follow a convolution into its weights."""
    readers, producers, outputs = graph.readers(), graph.producers(), graph.outputs
    kept: list[onnx.NodeProto] = []
    for node in graph.nodes:
        conv = producers.get(node.input[0]) if node.input else None
        if (
            node.op_type != "BatchNormalization"
            or conv is None
            or conv.op_type != "Conv"
            or len(readers[conv.output[0]]) > 1
            or conv.output[0] in outputs
            or any(node.output[1:])
            or number(node, "training_mode", 0)
            or not all(each in graph.weights for each in node.input[1:5])
            or not all(each in graph.weights for each in conv.input[1:])
        ):
            kept.append(node)
            continue
        scale, shift, mean, variance = (
            graph.weights[each].astype(np.float64) for each in node.input[1:5]
        )
        factor = scale / np.sqrt(variance + number(node, "epsilon", 1e-5))
        weight = graph.weights[conv.input[1]]
        bias = graph.weights[conv.input[2]] if len(conv.input) > 2 else np.zeros(len(factor))
        along = factor.reshape(-1, *[1] * (weight.ndim - 1))
        result = node.output[0]
        names = [graph.fresh(f"{result}.{each}") for each in ("weight", "bias")]
        graph.set_weight(names[0], (weight * along).astype(weight.dtype))
        graph.set_weight(names[1], ((bias - mean) * factor + shift).astype(weight.dtype))
        graph.names[result] = graph.name(conv)
        conv.input[:] = [conv.input[0], *names]
        conv.output[0] = result
        producers[result] = conv
    graph.replace_nodes(kept)
