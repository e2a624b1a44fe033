"""The files that hold weights of an ONNX model beside the model's own.

A warm start needs their names and nothing else of the model, so this reads the format of protobuf
itself: importing onnx takes a quarter of such a start.
Source: https://protobuf.dev/programming-guides/encoding and onnx.in.proto.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..wire_format import sized_fields_in

MODEL, GRAPH, NODE, ATTRIBUTE = "ModelProto", "GraphProto", "NodeProto", "AttributeProto"
TENSOR, SPARSE, ENTRY = "TensorProto", "SparseTensorProto", "StringStringEntryProto"
FUNCTION, TRAINING = "FunctionProto", "TrainingInfoProto"

FIELDS: Mapping[str, Mapping[int, str]] = {
    MODEL: {7: GRAPH, 20: TRAINING, 25: FUNCTION},
    GRAPH: {1: NODE, 5: TENSOR, 15: SPARSE},
    NODE: {5: ATTRIBUTE},
    ATTRIBUTE: {5: TENSOR, 6: GRAPH, 10: TENSOR, 11: GRAPH, 22: SPARSE, 23: SPARSE},
    SPARSE: {1: TENSOR, 2: TENSOR},
    FUNCTION: {7: NODE, 11: ATTRIBUTE},
    TRAINING: {1: GRAPH, 2: GRAPH},
    TENSOR: {13: ENTRY},
}
"""By message, the fields that may hold a tensor, each with the message that it is. Of a tensor, the
field that describes its external data."""

KEY, VALUE = 1, 2
"""The fields of an entry."""

LOCATION = b"location"


def external_files(model: bytes) -> tuple[str, ...]:
    """The paths of a serialized model's external data, as the model names them, sorted.

    Raises ValueError if the bytes are no model.
    """
    found: set[str] = set()
    waiting = [(MODEL, memoryview(model))]
    while waiting:
        kind, message = waiting.pop()
        fields = sized_fields_in(message)
        if kind == ENTRY:
            entry = {number: bytes(value) for number, value in fields}
            if entry.get(KEY) == LOCATION:
                found.add(entry.get(VALUE, b"").decode())
            continue
        wanted = FIELDS[kind]
        waiting += [(wanted[number], value) for number, value in fields if number in wanted]
    return tuple(sorted(found))
