"""Reads the file of an ONNX model, and each large weight directly into an array of its own.

protobuf copies the bytes that it parses, and so does each access to the bytes of a tensor. A model
that is parsed whole therefore takes twice the memory of its weights. Here, the bytes of large
weights are cut out of the message before protobuf parses it. The encoding of protobuf's messages is
described at https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple, TypeVar

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from ....ir.support.errors import InputError
from .tensors import COPIED_BYTES, Array, kind_of_bytes

LARGE_BYTES = COPIED_BYTES
"""Weights of more bytes than this are kept out of the message. Checks read the bytes of smaller
ones.
"""

MOST_BYTES = 2**31 - 1
"""The largest file of protobuf."""

MESSAGE, LONG, SHORT, NUMBER = 2, 1, 5, 0
"""The kinds of fields: bytes preceded by their length; eight bytes; four bytes; a number."""

SIZES = {LONG: 8, SHORT: 4}
"""The sizes, in bytes, of fields of fixed size."""

MOST_FIELDS = 1 << 17
"""Files with more fields than this are parsed whole, because walking through the fields takes
long."""

NUMBER_BYTES = 10
"""The most bytes of a number. Each holds 7 bits; the highest bit is 0 in the last byte."""

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
                with suppress(_UnusualError):
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


class _UnusualError(Exception):
    """The file must be parsed whole by protobuf, because it is damaged or encoded unusually."""


class _Field(NamedTuple):
    """A field of a message.

    Attributes:
        start, data, end: positions in the file, of the field, its contents, its end.
    """

    number: int
    kind: int
    start: int
    data: int
    end: int


class _Reader:
    """Splits a model's file into fields.

    Methods raise _UnusualError.

    Attributes:
        size: of the file, in bytes.
    """

    def __init__(self, stream: BufferedReader, size: int) -> None:
        self.stream, self.size = stream, size
        self.weights: dict[int, Array] = {}
        self.count = self.passed = 0

    def read(self) -> ModelFile:
        """The model of the file."""
        whole = bytearray()
        for each in self._fields(0, self.size):
            if each.number == GRAPH and each.kind == MESSAGE:
                whole += _as_field(GRAPH, self._graph(each))
            else:
                whole += self._bytes(each.start, each.end)
        return ModelFile(_parsed(onnx.ModelProto, whole), self.weights)

    def _graph(self, field: _Field) -> bytearray:
        """A graph without the bytes of its large weights."""
        rest = bytearray()
        for each in self._fields(field.data, field.end):
            if each.number == WEIGHT and each.kind == MESSAGE:
                tensor = self._weight(each)
                rest += self._bytes(each.start, each.end) if tensor is None else tensor
                self.count += 1
            else:
                rest += self._bytes(each.start, each.end)
        return rest

    def _weight(self, field: _Field) -> bytearray | None:
        """A weight without its bytes, which become an array; None if the message keeps them."""
        if field.end - field.data <= LARGE_BYTES:
            return None
        fields = tuple(self._fields(field.data, field.end))
        held = [each for each in fields if each.number == RAW_DATA and each.kind == MESSAGE]
        if len(held) != 1 or held[0].end - held[0].data <= LARGE_BYTES:
            return None
        (raw,) = held
        rest = bytearray()
        for each in fields:
            if each is not raw:
                rest += self._bytes(each.start, each.end)
        kind = kind_of_bytes(_parsed(onnx.TensorProto, rest), raw.end - raw.data)
        if kind is None:
            return None
        dtype, shape = kind
        array = np.empty(shape, dtype)
        self.stream.seek(raw.data)
        if self.stream.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:
            raise _UnusualError("the file became shorter")
        array.flags.writeable = False
        self.weights[self.count] = array
        return _as_field(WEIGHT, rest)

    def _fields(self, at: int, end: int) -> Iterator[_Field]:
        """The fields between two positions, which must be at the ends of fields."""
        while at < end:
            head = self._bytes(at, min(at + 2 * NUMBER_BYTES, end))
            tag, size = _number(head, 0)
            number, kind = tag >> 3, tag & 7
            if kind == MESSAGE:
                length, size = _number(head, size)
            elif kind == NUMBER:
                length = _number(head, size)[1] - size
            elif kind in SIZES:
                length = SIZES[kind]
            else:
                raise _UnusualError(f"field {number} of kind {kind}")
            found = _Field(number, kind, at, at + size, at + size + length)
            if number == 0 or found.end > end:
                raise _UnusualError(f"field {number} of {length} bytes at {at}")
            self.passed += 1
            if self.passed > MOST_FIELDS:
                raise _UnusualError(f"more than {MOST_FIELDS} fields")
            yield found
            at = found.end

    def _bytes(self, start: int, end: int) -> bytes:
        self.stream.seek(start)
        found = self.stream.read(end - start)
        if len(found) != end - start:
            raise _UnusualError("the file became shorter")
        return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    value = 0
    for index, byte in enumerate(data[at : at + NUMBER_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise _UnusualError("a number without an end")


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
        raise _UnusualError("a damaged field") from None
