"""Makes a small failing model simpler: its nodes, inner graphs, attributes and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic

import numpy as np
import onnx
from onnx import numpy_helper

from ...driver.arrays import Array
from .graph import ModelCase, copy_of, every_node, inner_graphs, names_read

Fails = Callable[[ModelCase], bool]


def simplest(graph: ModelCase, fails: Fails, seconds: float) -> ModelCase:
    """The model with as few nodes and attributes, and as plain values, as the failure allows.

    Args:
        seconds: limit of the search on the clock, because a tool's own time counts too.
    """
    end = monotonic() + seconds
    best = graph
    for make in STEPS:
        again = True
        while again and monotonic() < end:
            again = False
            for candidate in make(best):
                if monotonic() > end:
                    return best
                if fails(candidate):
                    best, again = candidate, True
                    break
    return best


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those inside it."""
    yield graph
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from _graphs(inner)


def _without_dead_code(graph: ModelCase) -> Iterator[ModelCase]:
    """The model without nodes and weights of inner graphs that nothing reads."""
    proto = copy_of(graph.proto)
    changed = [_drop_dead(each) for each in _graphs(proto.graph)]
    if any(changed):
        yield replace(graph, proto=proto, sketch=None)


def _drop_dead(graph: onnx.GraphProto) -> bool:
    wanted = {v.name for v in graph.output}
    kept: list[onnx.NodeProto] = []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            wanted.update(names_read(node))
            kept.append(node)
    held = [each for each in graph.initializer if each.name in wanted]
    if len(kept) == len(graph.node) and len(held) == len(graph.initializer):
        return False
    del graph.node[:], graph.initializer[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(held)
    return True


def _with_a_node_bypassed(graph: ModelCase) -> Iterator[ModelCase]:
    """The model without one node, whose readers read one of its operands instead."""
    for i, node in enumerate(every_node(graph.proto.graph)):
        for operand in dict.fromkeys(filter(None, node.input)):
            proto = copy_of(graph.proto)
            removed = list(every_node(proto.graph))[i]
            for each in _graphs(proto.graph):
                if removed in each.node and _renamed(each, removed, operand):
                    _drop_dead(each)
            yield replace(graph, proto=proto, sketch=None)


def _renamed(graph: onnx.GraphProto, removed: onnx.NodeProto, name: str) -> bool:
    """Read another value in place of a node's first result. Returns False for an output."""
    old = removed.output[0]
    if old in {v.name for v in graph.output}:
        return False
    for node in every_node(graph):
        for i, each in enumerate(node.input):
            if each == old:
                node.input[i] = name
    return True


def _with_one_result_less(graph: ModelCase) -> Iterator[ModelCase]:
    """The model without one result of a branch that nothing reads."""
    for i, node in enumerate(every_node(graph.proto.graph)):
        if node.op_type != "If" or len(node.output) < 2:
            continue
        for j in range(len(node.output)):
            proto = copy_of(graph.proto)
            changed = list(every_node(proto.graph))[i]
            del changed.output[j]
            for inner in inner_graphs(changed):
                del inner.output[j]
                _drop_dead(inner)
            yield replace(graph, proto=proto, sketch=None)


def _without_an_attribute(graph: ModelCase) -> Iterator[ModelCase]:
    for i, node in enumerate(every_node(graph.proto.graph)):
        for j, attribute in enumerate(node.attribute):
            if attribute.type != attribute.GRAPH:
                proto = copy_of(graph.proto)
                del list(every_node(proto.graph))[i].attribute[j]
                yield replace(graph, proto=proto, sketch=None)


def _without_unused_inputs(graph: ModelCase) -> Iterator[ModelCase]:
    read = {name for node in graph.proto.graph.node for name in names_read(node)}
    read |= {v.name for v in graph.proto.graph.output}
    unused = [v.name for v in graph.proto.graph.input if v.name not in read]
    if unused:
        proto = copy_of(graph.proto)
        kept = [v for v in proto.graph.input if v.name in read]
        del proto.graph.input[:]
        proto.graph.input.extend(kept)
        inputs = {n: a for n, a in graph.inputs.items() if n in read}
        yield replace(graph, proto=proto, inputs=inputs, sketch=None)


def _with_a_plain_input(graph: ModelCase) -> Iterator[ModelCase]:
    for name, array in graph.inputs.items():
        for plain in _plainer(array):
            yield replace(graph, inputs={**graph.inputs, name: plain}, sketch=None)


def _with_plain_weights(graph: ModelCase) -> Iterator[ModelCase]:
    """The model with plain values in all weights at once. Some failures need equal weights."""
    for kind in range(3):
        proto = copy_of(graph.proto)
        changed = False
        for each in (t for inner in _graphs(proto.graph) for t in inner.initializer):
            array = numpy_helper.to_array(each)
            if array.dtype.kind == "f" and array.size:
                plain = (np.ones_like(array), _counts(array), _rounded(array))[kind]
                if _plainness(plain) < _plainness(array):
                    each.CopyFrom(numpy_helper.from_array(plain, each.name))
                    changed = True
        if changed:
            yield replace(graph, proto=proto, sketch=None)


def _with_a_plain_weight(graph: ModelCase) -> Iterator[ModelCase]:
    weights = [t for each in _graphs(graph.proto.graph) for t in each.initializer]
    for i, tensor in enumerate(weights):
        for plain in _plainer(numpy_helper.to_array(tensor)):
            proto = copy_of(graph.proto)
            own = [t for each in _graphs(proto.graph) for t in each.initializer]
            own[i].CopyFrom(numpy_helper.from_array(plain, tensor.name))
            yield replace(graph, proto=proto, sketch=None)


STEPS = (
    _without_dead_code,
    _with_one_result_less,
    _with_a_node_bypassed,
    _without_dead_code,
    _without_unused_inputs,
    _without_an_attribute,
    _with_a_plain_input,
    _with_plain_weights,
    _with_a_plain_weight,
)
"""What is tried, in this order. Each is repeated as long as the model still fails."""


def _plainer(array: Array) -> Iterator[Array]:
    """Arrays of plainer values: ones, counts from 1, and rounded numbers."""
    if array.dtype.kind != "f" or not array.size:
        return
    for plain in (np.ones_like(array), _counts(array), _rounded(array)):
        if _plainness(plain) < _plainness(array):
            yield plain


def _counts(array: Array) -> Array:
    return (np.arange(array.size) % 8 + 1).astype(array.dtype).reshape(array.shape)


def _rounded(array: Array) -> Array:
    with np.errstate(all="ignore"):
        whole = np.clip(np.round(array), -8, 8)
    return np.where(np.isfinite(array), whole, array).astype(array.dtype)


def _plainness(array: Array) -> tuple[int, int]:
    """Fewer are plainer: elements that are no small whole numbers, then different elements."""
    with np.errstate(all="ignore"):
        odd = ~((array == np.round(array)) & (np.abs(array) <= 8))
    return int(odd.sum()), len(np.unique(array))
