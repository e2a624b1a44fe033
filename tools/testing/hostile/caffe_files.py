"""Files of Caffe as bytes: networks as text, solvers, and weights in the binary format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

LAYER, OLD_LAYER = 100, 2
"""The fields of a network that hold its layers: `layer`, and `layers`."""


def varint(number: int) -> bytes:
    """A number of 64 bits, seven bits a byte."""
    found = bytearray()
    number &= (1 << 64) - 1
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def field(number: int, value: int | str | bytes) -> bytes:
    """A field of a message: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def blob(array: Array, *, old: bool = False) -> bytes:
    """A blob.

    Args:
        old: with four sizes instead of a shape, as before 2014.
    """
    elements = field(5, np.asarray(array, "<f4").tobytes())
    if old:
        sizes = [1] * (4 - array.ndim) + list(array.shape)
        return b"".join(field(i, n) for i, n in enumerate(sizes, 1)) + elements
    return field(7, field(1, b"".join(map(varint, array.shape)))) + elements


def caffemodel(
    layers: Iterable[tuple[str, str | int, Sequence[Array]]], names: Sequence[str] = ()
) -> bytes:
    """A file of weights.

    Args:
        layers: the name, the type and the blobs of each. A type that is a number makes a layer of
            the form before 2014.
        names: of the weights of every layer, which the layers share.
    """
    found = field(1, "net")
    for name, type_, arrays in layers:
        if isinstance(type_, int):
            parts = [field(4, name), field(5, type_)]
            parts += [field(6, blob(each, old=True)) for each in arrays]
            parts += [field(1001, each) for each in names]
            found += field(OLD_LAYER, b"".join(parts))
        else:
            parts = [field(1, name), field(2, type_), *(field(7, blob(each)) for each in arrays)]
            parts += [field(6, field(1, each)) for each in names]
            found += field(LAYER, b"".join(parts))
    return found
