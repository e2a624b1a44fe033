"""The types of all values of a model, as onnx infers them."""

from __future__ import annotations

import onnx
from xdsl.ir import Attribute

from ....dialects.onnx.types import UNKNOWN, agree, merged, value_type

Types = dict[str, Attribute]
"""The types of the values of a graph, by name."""


def inferred_model(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types of values that onnx infers; as it is if onnx refuses it."""
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    # onnx raises what its own operators' functions raise, and ValueError for large models.
    except (
        onnx.shape_inference.InferenceError,
        onnx.checker.ValidationError,
        ValueError,
        RuntimeError,
    ):
        return model


def types_of(graph: onnx.GraphProto, inferred: onnx.GraphProto) -> Types:
    """The types of values: what the graph states, with what is inferred beside that."""
    found: Types = {}
    for source in (graph, inferred):
        for each in (*source.input, *source.output, *source.value_info):
            type_ = value_type(each.type)
            known = found.get(each.name, UNKNOWN)
            found[each.name] = merged(known, type_) if agree(known, type_) else known
    return found
