"""The elements of a `dense<...>` in the text of MLIR, read to the bit.

MLIR writes floats in hexadecimal where they are not finite: `dense<0xFF800000> : tensor<f32>` is
-inf. xDSL reads such bits as a whole number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .support.number_kinds import bit_width, is_whole

_NUMBER = re.compile(r"true|false|-?0[xX][0-9a-fA-F]+|[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")

_SPACE = re.compile(r"\s+")

_STRING = re.compile(r'"0[xX]((?:[0-9a-fA-F]{2})*)"')


def dense_elements(text: str, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The elements of a `dense<...>`: all of them, row by row, or one that is repeated.

    Raises ValueError for a text of other elements, and for a number that the dtype cannot hold.

    Args:
        text: between the angle brackets.
        shape: of the type that follows; no size is negative.
    """
    bare = _SPACE.sub("", text)
    if bare.startswith('"'):
        return _of_bytes(bare, prod(shape), dtype)
    numbers = _NUMBER.findall(bare)
    skeleton = _NUMBER.sub("0", bare)
    if not numbers and not bare and 0 in shape:
        return np.zeros(0, dtype)
    is_complex = dtype.kind == "c"
    part = np.dtype(f"f{dtype.itemsize // 2}") if is_complex else dtype
    element = "(0,0)" if is_complex else "0"
    if skeleton == element:
        return _array(numbers, part).view(dtype)
    # A type can say any number of elements, so compare the numbers before the brackets.
    if len(numbers) != prod(shape) * (1 + is_complex) or skeleton != _nested(shape, element):
        raise ValueError(f"elements of another shape than {list(shape)}")
    return _array(numbers, part).view(dtype)


def _nested(shape: Sequence[int], element: str) -> str:
    """The brackets and commas around elements in this shape."""
    text = element
    for size in reversed(shape):
        text = f"[{','.join([text] * size)}]"
    return text


def _of_bytes(text: str, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The elements whose bytes a text lists, or one that is repeated."""
    found = _STRING.fullmatch(text)
    if found is None:
        raise ValueError("bytes in no hexadecimal form")
    raw = bytes.fromhex(found[1])
    if dtype == np.bool_:
        # A truth value is a byte. Older programs pack 8 into one, the first into the lowest bit.
        bits = np.frombuffer(raw, np.uint8)
        if len(bits) == count:
            return bits != 0
        if len(bits) == 1 and (count > 8 or bits[0] in (0, 255)):
            return bits[:1] != 0
        if len(bits) != -(-count // 8):
            raise ValueError(f"{len(bits)} bytes for {count} truth values")
        return np.unpackbits(bits, bitorder="little")[:count] != 0
    if len(raw) not in (dtype.itemsize, count * dtype.itemsize):
        raise ValueError(f"{len(raw)} bytes for {count} elements of {dtype.itemsize} bytes")
    return np.frombuffer(raw, dtype)


def _array(numbers: Sequence[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers as an array."""
    if dtype == np.bool_:
        known = {"true": True, "false": False, "1": True, "0": False, "-1": True}
        if any(each not in known for each in numbers):
            raise ValueError("a truth value that is neither true nor false")
        return np.array([known[each] for each in numbers], np.bool_)
    if any(each in ("true", "false") for each in numbers):
        raise ValueError(f"a truth value among {dtype.name}")
    if is_whole(dtype):
        return _whole(numbers, dtype)
    made = np.array([0.0 if _is_hex(each) else float(each) for each in numbers], np.float64)
    with np.errstate(over="ignore"):
        floats = made.astype(dtype)
    places = [i for i, each in enumerate(numbers) if _is_hex(each)]
    if places:
        bits = floats.view(f"u{dtype.itemsize}")
        for i in places:
            value = int(numbers[i], 16)
            if not 0 <= value < 1 << 8 * dtype.itemsize:
                raise ValueError(f"{numbers[i]} has more bits than {dtype.name}")
            bits[i] = value
    return floats


def _is_hex(number: str) -> bool:
    return "x" in number or "X" in number


def _whole(numbers: Sequence[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Whole numbers as an array. A number of an unsigned type may be written as a signed one."""
    try:
        values = [int(each, 16 if _is_hex(each) else 10) for each in numbers]
    except ValueError:
        raise ValueError(f"a fraction among {dtype.name}") from None
    bits = bit_width(dtype)
    if values and not -(1 << bits - 1) <= min(values) <= max(values) < 1 << bits:
        raise ValueError(f"a number that {dtype.name} cannot hold")
    wide = np.array([value & 0xFFFFFFFFFFFFFFFF for value in values], np.uint64)
    return wide.view(np.int64).astype(dtype) if bits < 64 else wide.view(dtype)
