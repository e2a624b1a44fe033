"""The files that hold weights of an ONNX model beside the model's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import onnx
from google.protobuf.message import DecodeError


def external_files(model: bytes) -> tuple[str, ...]:
    """The paths of a serialized model's external data, as the model names them, sorted.

    Raises ValueError if the bytes are no model.
    """
    try:
        parsed = onnx.load_model_from_string(model)
    except DecodeError as error:
        raise ValueError(f"no ONNX model: {error}") from None
    found = {
        entry.value
        for tensor in _tensors(parsed, onnx.TensorProto)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return tuple(sorted(found))


def _tensors(message: Any, kind: type[Any]) -> Iterator[Any]:
    """All tensors in a message of protobuf, wherever they are."""
    waiting = [message]
    while waiting:
        each = waiting.pop()
        if isinstance(each, kind):
            yield each
            continue
        for field, value in each.ListFields():
            if field.message_type is not None:
                waiting += cast("list[Any]", value if _is_repeated(value) else [value])


def _is_repeated(value: object) -> bool:
    return not hasattr(value, "ListFields")
