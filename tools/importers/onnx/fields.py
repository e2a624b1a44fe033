"""Splits the file of a protobuf message into fields, without protobuf.

The encoding is described at https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MESSAGE, LONG, SHORT, NUMBER = 2, 1, 5, 0
"""The kinds of fields: bytes preceded by their length; eight bytes; four bytes; a number."""

SIZES = {LONG: 8, SHORT: 4}
"""The sizes, in bytes, of fields of fixed size."""

MOST_FIELDS = 1 << 17
"""Files with more fields than this are left to protobuf, because walking through the fields takes
long."""

NUMBER_BYTES = 10
"""The most bytes of a number. Each holds 7 bits; the highest bit is 0 in the last byte."""


class UnusualError(Exception):
    """The file is left to protobuf, because it is damaged or encoded unusually."""


class Field(NamedTuple):
    """A field of a message.

    Attributes:
        start, data, end: positions in the file, of the field, its contents, its end.
    """

    number: int
    kind: int
    start: int
    data: int
    end: int


class FieldReader:
    """Reads fields of a file.

    Methods raise UnusualError.

    Attributes:
        size: of the file, in bytes.
    """

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.stream, self.size = stream, size
        self.passed = 0

    def fields(self, at: int, end: int) -> Iterator[Field]:
        """The fields between two positions, which must be at the ends of fields."""
        while at < end:
            head = self.bytes(at, min(at + 2 * NUMBER_BYTES, end))
            tag, size = number_at(head, 0)
            number, kind = tag >> 3, tag & 7
            if kind == MESSAGE:
                length, size = number_at(head, size)
            elif kind == NUMBER:
                length = number_at(head, size)[1] - size
            elif kind in SIZES:
                length = SIZES[kind]
            else:
                raise UnusualError(f"field {number} of kind {kind}")
            found = Field(number, kind, at, at + size, at + size + length)
            if number == 0 or found.end > end:
                raise UnusualError(f"field {number} of {length} bytes at {at}")
            self.passed += 1
            if self.passed > MOST_FIELDS:
                raise UnusualError(f"more than {MOST_FIELDS} fields")
            yield found
            at = found.end

    def messages(self, within: Field, number: int) -> Iterator[Field]:
        """The fields of a message that are messages or text, and have a number."""
        for each in self.fields(within.data, within.end):
            if each.number == number and each.kind == MESSAGE:
                yield each

    def bytes(self, start: int, end: int) -> bytes:
        """The bytes between two positions."""
        self.stream.seek(start)
        found = self.stream.read(end - start)
        if len(found) != end - start:
            raise UnusualError("the file became shorter")
        return found

    def text(self, field: Field) -> str:
        """The contents of a field of text."""
        try:
            return self.bytes(field.data, field.end).decode()
        except UnicodeDecodeError as error:
            raise UnusualError(str(error)) from None

    def number(self, field: Field) -> int:
        """The contents of a field of kind NUMBER, as a signed integer of 64 bits."""
        value = number_at(self.bytes(field.data, field.end), 0)[0] & (1 << 64) - 1
        return value - (1 << 64) if value >> 63 else value


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    value = 0
    for index, byte in enumerate(data[at : at + NUMBER_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise UnusualError("a number without an end")
