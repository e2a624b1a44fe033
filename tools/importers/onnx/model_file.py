"""Reads the file of an ONNX model, and each large weight directly into an array of its own.

protobuf copies the bytes that it parses, and so does each access to the bytes of a tensor. A model
that is parsed whole therefore takes twice the memory of its weights. Here, the bytes of large
weights are cut out of the message before protobuf parses it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple, TypeVar

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from ....ir.support.errors import InputError
from .fields import MESSAGE, Field, FieldReader, UnusualError
from .tensors import COPIED_BYTES, Array, kind_of_bytes

LARGE_BYTES = COPIED_BYTES
"""Weights of more bytes than this are kept out of the message. Checks read the bytes of smaller
ones.
"""

MOST_BYTES = 2**31 - 1
"""The largest file of protobuf."""

GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
WEIGHT = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number


class ModelFile(NamedTuple):
    """A model that was read.

    Attributes:
        weights: the arrays of large initialisers of the model's graph, by their index among the
            initialisers. The message has all their fields except their bytes.
    """

    model: onnx.ModelProto
    weights: dict[int, Array]


def read_model_file(path: Path) -> ModelFile:
    """The model in a file. Raises InputError for a damaged one."""
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            # A pipe can be read only once. protobuf refuses larger files.
            if S_ISREG(status.st_mode) and status.st_size <= MOST_BYTES:
                with suppress(UnusualError):
                    return _Reader(stream, status.st_size).read()
                # protobuf reports whatever is wrong with the file.
                stream.seek(0)
            data = stream.read()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        return ModelFile(onnx.ModelProto.FromString(data), {})
    except DecodeError as error:
        # protobuf's message for a valid file that does not fit in memory.
        if "alloc failed" in str(error):
            raise MemoryError(str(error)) from None
        raise InputError(f"{path}: damaged, or not an ONNX model") from None


class _Reader(FieldReader):
    """Reads a model, and its large weights into arrays. Methods raise UnusualError."""

    def __init__(self, stream: BufferedReader, size: int) -> None:
        super().__init__(stream, size)
        self.readinto = stream.readinto
        self.weights: dict[int, Array] = {}
        self.count = 0

    def read(self) -> ModelFile:
        """The model of the file."""
        whole = bytearray()
        for each in self.fields(0, self.size):
            if each.number == GRAPH and each.kind == MESSAGE:
                whole += _as_field(GRAPH, self._graph(each))
            else:
                whole += self.bytes(each.start, each.end)
        return ModelFile(_parsed(onnx.ModelProto, whole), self.weights)

    def _graph(self, field: Field) -> bytearray:
        """A graph without the bytes of its large weights."""
        rest = bytearray()
        for each in self.fields(field.data, field.end):
            if each.number == WEIGHT and each.kind == MESSAGE:
                tensor = self._weight(each)
                rest += self.bytes(each.start, each.end) if tensor is None else tensor
                self.count += 1
            else:
                rest += self.bytes(each.start, each.end)
        return rest

    def _weight(self, field: Field) -> bytearray | None:
        """A weight without its bytes, which become an array; None if the message keeps them."""
        if field.end - field.data <= LARGE_BYTES:
            return None
        fields = tuple(self.fields(field.data, field.end))
        held = [each for each in fields if each.number == RAW_DATA and each.kind == MESSAGE]
        if len(held) != 1 or held[0].end - held[0].data <= LARGE_BYTES:
            return None
        (raw,) = held
        rest = bytearray()
        for each in fields:
            if each is not raw:
                rest += self.bytes(each.start, each.end)
        kind = kind_of_bytes(_parsed(onnx.TensorProto, rest), raw.end - raw.data)
        if kind is None:
            return None
        dtype, shape = kind
        array = np.empty(shape, dtype)
        self.stream.seek(raw.data)
        if self.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:
            raise UnusualError("the file became shorter")
        array.flags.writeable = False
        self.weights[self.count] = array
        return _as_field(WEIGHT, rest)


def _as_field(number: int, data: bytearray) -> bytearray:
    """A message as a field of another message.

    Args:
        number: the field's number.
    """
    return bytearray().join((_as_number(number << 3 | MESSAGE), _as_number(len(data)), data))


def _as_number(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


M = TypeVar("M", onnx.ModelProto, onnx.TensorProto)


def _parsed(kind: type[M], data: bytearray) -> M:
    try:
        return kind.FromString(bytes(data))
    except DecodeError:
        raise UnusualError("a damaged field") from None
