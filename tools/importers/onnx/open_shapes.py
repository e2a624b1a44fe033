"""The shapes of a model's inputs, with their free sizes, read without onnx.

A warm start that gets arrays needs these shapes and nothing else of the model, and importing onnx
would take longer than the rest of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from ....ir.support.deferred import deferred
from ..front_end import OpenShape, OpenShapes
from .fields import MESSAGE, NUMBER, Field, FieldReader, UnusualError

if TYPE_CHECKING:
    import onnx

with deferred(__name__):
    from .inputs import open_shapes_of
    from .model_file import read_model_file

# The numbers of fields in onnx.proto.
GRAPH = 7
WEIGHT, INPUT = 5, 11
WEIGHT_NAME = 8
NAME, TYPE = 1, 2
TENSOR = 1
SHAPE = 2
DIM = 1
SIZE, SYMBOL = 1, 2


def open_shapes(model: str | os.PathLike[str] | onnx.ModelProto) -> OpenShapes:
    """The shapes of the inputs of a model that are not weights. Raises InputError.

    Args:
        model: a path, or a model in memory.
    """
    if not isinstance(model, str | os.PathLike):
        return open_shapes_of(model)
    path = Path(model)
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            # A pipe can be read only once.
            if not S_ISREG(status.st_mode):
                return {}
            return _read(FieldReader(stream, status.st_size))
    except (OSError, UnusualError):
        return open_shapes_of(read_model_file(path).model)


def _read(reader: FieldReader) -> OpenShapes:
    whole = Field(0, MESSAGE, 0, 0, reader.size)
    (graph,) = _only(reader, whole, GRAPH)
    inputs: list[Field] = []
    weights: set[str] = set()
    for each in reader.fields(graph.data, graph.end):
        if each.kind == MESSAGE and each.number == INPUT:
            inputs.append(each)
        elif each.kind == MESSAGE and each.number == WEIGHT:
            weights |= {reader.text(name) for name in reader.messages(each, WEIGHT_NAME)}
    shapes = dict(_input(reader, each) for each in inputs)
    return {name: shape for name, shape in shapes.items() if name not in weights}


def _only(reader: FieldReader, within: Field, number: int) -> list[Field]:
    """A field that a message has once. protobuf merges several."""
    found = list(reader.messages(within, number))
    if len(found) != 1:
        raise UnusualError(f"{len(found)} fields {number}")
    return found


def _input(reader: FieldReader, value: Field) -> tuple[str, OpenShape]:
    (name,) = _only(reader, value, NAME)
    shape: Field | None = value
    for number in (TYPE, TENSOR, SHAPE):
        assert shape is not None
        inner = list(reader.messages(shape, number))
        if len(inner) > 1:
            raise UnusualError(f"several fields {number}")
        if not inner:
            return reader.text(name), None
        shape = inner[0]
    return reader.text(name), tuple(_axes(reader, shape))


def _axes(reader: FieldReader, shape: Field) -> Iterator[int | str]:
    """For each axis its size, or its name, "" if it has none. Exporters write -1 for free sizes."""
    for dim in reader.messages(shape, DIM):
        found: int | str = ""
        for each in reader.fields(dim.data, dim.end):
            if each.number == SIZE and each.kind == NUMBER:
                size = reader.number(each)
                found = size if size >= 0 else ""
            elif each.number == SYMBOL and each.kind == MESSAGE:
                found = reader.text(each)
        yield found
