"""What an ONNX model declares about its inputs."""

from __future__ import annotations

import onnx

from ..binding import InputSignature
from ..front_end import OpenShapes
from .sparse_weights import weights_of
from .tensors import dtype_or_none


def signatures(graph: onnx.GraphProto) -> list[InputSignature]:
    """The inputs of a graph, with their free sizes."""
    return [signature_of(each) for each in graph.input]


def signature_of(value: onnx.ValueInfoProto) -> InputSignature:
    """An input, with its free sizes."""
    tensor = value.type.tensor_type
    is_tensor = value.type.WhichOneof("value") == "tensor_type"
    return InputSignature(
        value.name,
        tuple(map(_axis, tensor.shape.dim)) if tensor.HasField("shape") else None,
        dtype_or_none(tensor.elem_type) if is_tensor else None,
    )


def open_shapes_of(model: onnx.ModelProto) -> OpenShapes:
    """The shapes of the inputs of a model that are not weights."""
    weights = {each.name for each in weights_of(model.graph)}
    return {each.name: each.shape for each in signatures(model.graph) if each.name not in weights}


def _axis(dimension: onnx.TensorShapeProto.Dimension) -> int | str:
    """The size of an axis, or its name if it is free. Exporters write -1 for a free size."""
    is_fixed = dimension.HasField("dim_value") and dimension.dim_value >= 0
    return dimension.dim_value if is_fixed else dimension.dim_param
