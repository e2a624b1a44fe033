"""Models whose inputs and outputs are sequences and optionals, as models of tensors alone.

A program takes and returns tensors. For the values of one run, each sequence becomes as many
tensors as it has, called "name[0]", "name[1]" and so on, and nodes that put them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from .arrays import Array

OnnxValue = Array | Sequence[Array] | None
"""A tensor, the tensors of a sequence, or an optional without a value."""


def list_inputs(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    """The types of the inputs that are not tensors, by name."""
    kinds = ("sequence_type", "optional_type")
    return {i.name: i.type for i in model.graph.input if i.type.WhichOneof("value") in kinds}


def element_name(name: str, index: int) -> str:
    """The name of an element of a sequence."""
    return f"{name}[{index}]"


def with_tensors(
    model: onnx.ModelProto, given: Mapping[str, OnnxValue]
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A copy of a model that takes the tensors of these values, and these tensors by name.

    The copy's inputs have the shapes of the tensors.

    Args:
        given: a value for each input of the model.
    """
    types = list_inputs(model)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.input[:]
    nodes: list[onnx.NodeProto] = []
    tensors: dict[str, Array] = {}
    for each in model.graph.input:
        if each.name not in given:
            copy.graph.input.append(each)
            continue
        if each.name in types:
            made, own = _assembled(each.name, types[each.name], given[each.name])
            nodes += made
        else:
            own = {each.name: np.asarray(given[each.name])}
        tensors |= own
        for name, array in own.items():
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            copy.graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    del copy.graph.node[:]
    copy.graph.node.extend([*nodes, *model.graph.node])
    return copy, tensors


def _assembled(
    name: str, type_: onnx.TypeProto, value: OnnxValue
) -> tuple[list[onnx.NodeProto], dict[str, Array]]:
    """The nodes that make a value of a type, and the tensors that they read."""
    inner = name
    nodes: list[onnx.NodeProto] = []
    if type_.HasField("optional_type"):
        if value is None:
            held = type_.optional_type.elem_type
            return [helper.make_node("Optional", [], [name], type=held)], {}
        inner = f"{name}[value]"
        nodes = [helper.make_node("Optional", [inner], [name])]
        type_ = type_.optional_type.elem_type
    assert value is not None
    if not type_.HasField("sequence_type"):
        return nodes, {inner: np.asarray(value)}
    if not len(value):
        kind = type_.sequence_type.elem_type.tensor_type.elem_type
        return [helper.make_node("SequenceEmpty", [], [inner], dtype=kind), *nodes], {}
    tensors = {element_name(name, i): np.asarray(each) for i, each in enumerate(value)}
    return [helper.make_node("SequenceConstruct", [*tensors], [inner]), *nodes], tensors


def assembled_outputs(
    outputs: Sequence[onnx.ValueInfoProto], found: Mapping[str, Array]
) -> list[OnnxValue]:
    """The model's outputs, made from the outputs of the program of tensors.

    Args:
        found: the outputs of the program, by name.
    """
    values: list[OnnxValue] = []
    for each in outputs:
        if each.name in found:
            values.append(found[each.name])
            continue
        count = 0
        while element_name(each.name, count) in found:
            count += 1
        is_sequence = each.type.WhichOneof("value") == "sequence_type"
        elements = [found[element_name(each.name, i)] for i in range(count)]
        values.append(elements if elements or is_sequence else None)
    return values
