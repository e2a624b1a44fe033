"""The weights in a .params file of MXNet: named arrays.

A file has two numbers of 64 bits, a list of arrays and a list of names. An array has a number that
tells its version, its shape, where it was (which says nothing), its element type, and its elements.
Source: src/ndarray/ndarray.cc of apache/mxnet.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from ....dialects.tensor_limits import check_tensor_limits
from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ..files_beside import read_regular

MAGIC = 0x112

V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
"""The versions of arrays: without and with a kind of storage, and with shapes as in NumPy. Before
these, an array began with its number of axes.
"""

MOST_AXES = 32

LONGEST_NAME = 1 << 12

DTYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype("<f4"),
    1: np.dtype("<f8"),
    2: np.dtype("<f2"),
    3: np.dtype(np.uint8),
    4: np.dtype("<i4"),
    5: np.dtype(np.int8),
    6: np.dtype("<i8"),
    7: np.dtype(np.bool_),
    12: np.dtype(ml_dtypes.bfloat16),
}
"""The types of elements by their numbers in a file."""


@dataclass
class _Cursor:
    """A place in the bytes of a file."""

    data: memoryview
    at: int = 0

    def take(self, size: int) -> memoryview:
        """The next bytes. Raises ValueError if there are too few."""
        if size > len(self.data) - self.at:
            raise ValueError(
                f"{size:,} bytes at {self.at:,}; {len(self.data) - self.at:,} are left"
            )
        found = self.data[self.at : self.at + size]
        self.at += size
        return found

    def number(self, size: int, *, signed: bool = False) -> int:
        """The next integer of some bytes."""
        return int.from_bytes(self.take(size), "little", signed=signed)


def read_params(path: Path) -> dict[str, Array]:
    """The arrays of a file by name, without `arg:` and `aux:`. Raises InputError.

    The arrays share the bytes of the file.
    """
    data = read_regular(path, str(path))
    try:
        return _read(_Cursor(memoryview(data)))
    except ValueError as error:
        raise InputError(f"{path}: damaged, or no weights of MXNet: {error}") from None


def _read(cursor: _Cursor) -> dict[str, Array]:
    if cursor.number(8) != MAGIC:
        raise ValueError("it does not begin as such a file does")
    _ = cursor.number(8)
    count = cursor.number(8)
    if count > len(cursor.data) // 4:
        raise ValueError(f"{count:,} arrays in {len(cursor.data):,} bytes")
    arrays = [_array(cursor) for _ in range(count)]
    names = [_name(cursor) for _ in range(_count_of_names(cursor, count))]
    if cursor.at != len(cursor.data):
        raise ValueError(f"{len(cursor.data) - cursor.at:,} bytes follow the last name")
    found: dict[str, Array] = {}
    for name, array in zip(names, arrays, strict=True):
        kind, colon, rest = name.partition(":")
        short = rest if colon and kind in ("arg", "aux") else name
        if short in found:
            raise ValueError(f"two arrays {short[:60]!r}")
        found[short] = array
    return found


def _count_of_names(cursor: _Cursor, arrays: int) -> int:
    count = cursor.number(8)
    if count != arrays:
        raise ValueError(f"{count:,} names of {arrays:,} arrays; need one for each")
    return count


def _name(cursor: _Cursor) -> str:
    size = cursor.number(8)
    if size > LONGEST_NAME:
        raise ValueError(f"a name of {size:,} bytes")
    return bytes(cursor.take(size)).decode()


def _array(cursor: _Cursor) -> Array:
    version = cursor.number(4)
    if version in (V2, V3):
        storage = cursor.number(4, signed=True)
        if storage != 0:
            raise ValueError(f"an array of storage {storage}; only dense ones are read")
    if version in (V1, V2, V3):
        axes, width = cursor.number(4, signed=True), 8
    else:
        axes, width = version, 4
    if not 0 <= axes <= MOST_AXES:
        raise ValueError(f"an array of {axes:,} axes")
    shape = [cursor.number(width, signed=True) for _ in range(axes)]
    if not axes and version != V3:
        return np.zeros(0, np.float32)
    if any(n < 0 for n in shape):
        raise ValueError(f"an array of shape {shape}")
    _ = cursor.take(8)
    code = cursor.number(4, signed=True)
    if code not in DTYPES:
        raise ValueError(f"elements of type {code}")
    dtype = DTYPES[code]
    check_tensor_limits(shape, dtype.itemsize)
    elements = np.frombuffer(cursor.take(prod(shape) * dtype.itemsize), dtype)
    return elements.reshape(shape).astype(dtype.newbyteorder("="), copy=False)
