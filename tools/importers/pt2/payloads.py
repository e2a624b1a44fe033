"""The tensors of an archive as arrays: views of the bytes of their storages."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....dialects.dtypes import element_type
from ....dialects.tensor_limits import check_tensor_limits
from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ....ir.support.limits import TABLE_ELEMENTS
from ..errors import UnsupportedError
from .archive import Archive
from .schema import DTYPES, STRIDED, Meta, Payload, Size


def dtype_of_code(code: int, what: str) -> np.dtype[Any]:
    """The dtype of an element type of torch, if tiles support it.

    Args:
        what: for the message.
    """
    dtype = DTYPES.get(code)
    if dtype is None:
        raise UnsupportedError(f"{what}: elements of type {code} of torch.export are not supported")
    try:
        element_type(dtype)
    except ValueError as error:
        raise UnsupportedError(f"{what}: {error}") from None
    return dtype


def fixed(size: Size, what: str) -> int:
    """A size of a weight, which is a number. Raises InputError for another."""
    if not isinstance(size, int):
        raise InputError(f"{what}: a size {size[:40]!r} of a weight; need a number")
    return size


def shape_of_meta(meta: Meta, what: str) -> tuple[int, ...]:
    """The shape of a weight. Raises InputError for a shape that no array can have."""
    shape = tuple(fixed(n, what) for n in meta.sizes)
    if any(n < 0 for n in shape):
        raise InputError(f"{what}: shape {list(shape)}; sizes are 0 or more")
    try:
        check_tensor_limits(shape, dtype_of_code(meta.code, what).itemsize)
    except ValueError as error:
        raise InputError(f"{what}: {error}") from None
    if meta.layout != STRIDED:
        raise UnsupportedError(f"{what}: a sparse tensor is not supported; need a dense one")
    return shape


def payload_array(archive: Archive, folder: str, payload: Payload, what: str) -> Array:
    """The array of a tensor. Its bytes are not copied unless it is a view that repeats elements.

    Raises InputError if the storage is missing, or ends before the tensor.

    Args:
        folder: weights or constants.
        what: for messages.
    """
    meta = payload.meta
    if payload.pickled or meta is None:
        raise UnsupportedError(
            f"{what}: stored as a pickle, which abele never opens; only a plain tensor is raw bytes"
        )
    shape, dtype = shape_of_meta(meta, what), dtype_of_code(meta.code, what)
    strides, offset = [fixed(n, what) for n in meta.strides], fixed(meta.offset, what)
    if len(strides) != len(shape) or offset < 0 or any(n < 0 for n in strides):
        raise InputError(f"{what}: shape {list(shape)}, strides {strides}, offset {offset}")
    if 0 in shape:
        return np.zeros(shape, dtype)
    data = archive.bytes_of(f"data/{folder}/{payload.path}")
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if (last + 1) * dtype.itemsize > len(data):
        kind = f"{dtype.name}{list(shape)}"
        raise InputError(
            f"{what}: damaged: {len(data)} bytes in {payload.path!r}; {kind} with strides "
            f"{strides} from element {offset} on reads {(last + 1) * dtype.itemsize}"
        )
    # Only a view with a stride of 0, or one that overlaps itself, has more elements.
    if prod(shape) > last - offset + 1 and prod(shape) > TABLE_ELEMENTS.most:
        raise InputError(f"{what}: {TABLE_ELEMENTS.refusal(f'a view of {list(shape)} elements')}")
    whole = data[: len(data) // dtype.itemsize * dtype.itemsize].view(dtype)
    steps = [n * dtype.itemsize for n in strides]
    return np.lib.stride_tricks.as_strided(whole[offset:], shape, steps, writeable=False)
