"""The files that hold weights of an ONNX model beside the model's own.

A warm start needs their names and nothing else of the model, so this reads the format of protobuf
itself: importing onnx takes a quarter of such a start.
Source: https://protobuf.dev/programming-guides/encoding and onnx.in.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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

VARINT, EIGHT_BYTES, SIZED, FOUR_BYTES = 0, 1, 2, 5
"""The forms of fields."""

MOST_VARINT = 10
"""The most bytes of a varint."""


def external_files(model: bytes) -> tuple[str, ...]:
    """The paths of a serialized model's external data, as the model names them, sorted.

    Raises ValueError if the bytes are no model.
    """
    found: set[str] = set()
    waiting = [(MODEL, 0, len(model))]
    while waiting:
        kind, start, end = waiting.pop()
        if kind == ENTRY:
            entry = {n: model[first:last] for n, first, last in _fields(model, start, end)}
            if entry.get(KEY) == LOCATION:
                found.add(entry.get(VALUE, b"").decode())
            continue
        wanted = FIELDS[kind]
        waiting += [
            (wanted[number], first, last)
            for number, first, last in _fields(model, start, end)
            if number in wanted
        ]
    return tuple(sorted(found))


def _fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The number of each field that has a size, and where its content begins and ends.

    Raises ValueError if the bytes are no message.
    """
    while start < end:
        tag, start = _varint(data, start, end)
        number, form = tag >> 3, tag & 7
        if form == VARINT:
            _, start = _varint(data, start, end)
            continue
        if form == SIZED:
            size, start = _varint(data, start, end)
        elif form in (EIGHT_BYTES, FOUR_BYTES):
            size = 8 if form == EIGHT_BYTES else 4
        else:
            raise ValueError(f"no ONNX model: a field of form {form}")
        if not number or size > end - start:
            raise ValueError("no ONNX model: a field that is longer than its message")
        if form == SIZED:
            yield number, start, start + size
        start += size


def _varint(data: bytes, start: int, end: int) -> tuple[int, int]:
    """A varint, and where it ends. Raises ValueError."""
    found = 0
    for i, byte in enumerate(data[start : min(end, start + MOST_VARINT)]):
        found |= (byte & 127) << 7 * i
        if byte < 128:
            return found, start + i + 1
    raise ValueError("no ONNX model: a number that does not end")
