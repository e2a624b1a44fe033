"""Reads messages in the binary format of Protocol Buffers: the fields by number, and no more.

Source: https://protobuf.dev/programming-guides/encoding. Nothing is copied: the bytes of a field
are a view of the file's.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)
"""The types of fields."""

VARINT_BYTES = 10
"""The most bytes of a varint."""

WIDTHS = {FIXED64: 8, FIXED32: 4}

Field = tuple[int, int, "int | memoryview"]
"""The number of a field, its type, and its value: an integer, or bytes."""


def fields_in(data: memoryview) -> Iterator[Field]:
    """The fields of a message, in the order of the file. Raises ValueError for damaged bytes."""
    start, end = 0, len(data)
    while start < end:
        key, start = _varint(data, start)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("field 0")
        if kind == VARINT:
            value, start = _varint(data, start)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, start = _varint(data, start)
        elif kind in WIDTHS:
            size = WIDTHS[kind]
        else:
            raise ValueError(f"field {number} of type {kind}; no message here has groups")
        if size > end - start:
            raise ValueError(f"field {number} has {size:,} bytes; {end - start:,} are left")
        yield number, kind, data[start : start + size]
        start += size


def sized_fields_in(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a message that are messages, texts or packed numbers, and their numbers.

    Raises ValueError for damaged bytes.
    """
    for number, kind, value in fields_in(data):
        if kind == BYTES:
            assert isinstance(value, memoryview), "fields with a size are bytes"
            yield number, value


def _varint(data: memoryview, start: int) -> tuple[int, int]:
    """The number at a place, of 64 bits, and the place after it."""
    found = 0
    for i, byte in enumerate(data[start : start + VARINT_BYTES]):
        found |= (byte & 127) << 7 * i
        if byte < 128:
            return found & ((1 << 64) - 1), start + i + 1
    raise ValueError("a number without an end")


def varints_in(data: memoryview) -> list[int]:
    """The numbers of a packed field, with signs."""
    found: list[int] = []
    start = 0
    while start < len(data):
        value, start = _varint(data, start)
        found.append(value - (1 << 64) if value >> 63 else value)
    return found
