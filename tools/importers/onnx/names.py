"""Checks that the names in a model are text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from ....ir.support.errors import InputError


def check_names(model: onnx.ModelProto, place: str) -> None:
    """Raise InputError for a name that is not UTF-8. protobuf returns such names as bytes.

    Functions are searched, and graphs inside nodes.
    """
    for what, name in _names(model):
        if isinstance(name, bytes):
            raise InputError(f"{place}: {what} {name!r} is not UTF-8 text; need a name that is")


def _names(model: onnx.ModelProto) -> Iterator[tuple[str, str | bytes]]:
    graph = model.graph
    for opset in model.opset_import:
        yield "domain", opset.domain
    for function in model.functions:
        yield "function", function.name
        yield "domain", function.domain
        for value in (*function.input, *function.output):
            yield "value", value
        yield from _node_names(function.node)
    yield from _graph_names(graph)


def _graph_names(graph: onnx.GraphProto) -> Iterator[tuple[str, str | bytes]]:
    yield from _node_names(graph.node)
    for info in (*graph.input, *graph.output, *graph.value_info):
        yield "value", info.name
        for dimension in info.type.tensor_type.shape.dim:
            yield "dimension", dimension.dim_param
    sparse = (part for each in graph.sparse_initializer for part in (each.values, each.indices))
    for tensor in (*graph.initializer, *sparse):
        yield "weight", tensor.name
        for entry in tensor.external_data:
            yield "entry of external data", entry.key
            yield "entry of external data", entry.value


def _node_names(nodes: Iterable[onnx.NodeProto]) -> Iterator[tuple[str, str | bytes]]:
    for node in nodes:
        yield "node", node.name
        yield "operator", node.op_type
        yield "domain", node.domain
        for value in (*node.input, *node.output):
            yield "value", value
        for attribute in node.attribute:
            yield "attribute", attribute.name
            yield "attribute", attribute.ref_attr_name
            for inner in (attribute.g, *attribute.graphs):
                yield from _graph_names(inner)
