"""Reads the tensors of an ONNX model as arrays, inline or external."""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.helper import tensor_dtype_to_np_dtype
from xdsl.ir import Attribute

from ....dialects.dtypes import element_type
from ....dialects.tensor_limits import check_tensor_limits
from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ....ir.support.number_kinds import bit_width
from ..errors import UnsupportedError
from ..files_beside import file_inside

MAP_ABOVE_BYTES = 1 << 20
"""External data larger than this is mapped into memory instead of read."""

COPIED_BYTES = 1 << 16
"""Checks read the bytes of tensors of at most this many bytes."""

SIZE_DIGITS = 18
"""The most digits of a number of bytes. No file is larger, and Python parses longer numbers
slowly."""

SHOWN_LETTERS = 40
"""The most letters of a wrong number in a message."""


def tensor_dtype(code: int, what: str) -> np.dtype[Any]:
    """The dtype of an ONNX element type, if tiles support it.

    Args:
        what: for the message.
    """
    dtype = _DTYPES.get(code)
    if dtype is not None:
        return dtype
    if code not in _NAMES or code == onnx.TensorProto.UNDEFINED:
        raise InputError(f"{what}: element type {code} does not exist in ONNX")
    try:
        dtype = np.dtype(tensor_dtype_to_np_dtype(code))
        element_type(dtype)
    except (KeyError, ValueError, TypeError) as error:
        raise UnsupportedError(f"{what}: elements of type {_NAMES[code]}: {error}") from None
    _DTYPES[code] = dtype
    return dtype


_NAMES = {number: name for name, number in onnx.TensorProto.DataType.items()}
_DTYPES: dict[int, np.dtype[Any]] = {}
"""The dtypes of ONNX's element types that have been looked up so far."""


def dtype_or_none(code: int) -> np.dtype[Any] | None:
    """The dtype of an ONNX element type; None if ONNX or NumPy has none."""
    try:
        return np.dtype(tensor_dtype_to_np_dtype(code))
    except (KeyError, ValueError, TypeError):
        return None


def tensor_element(code: int, what: str) -> Attribute:
    """The IR's element type for an ONNX element type.

    Args:
        what: for the message.
    """
    return element_type(tensor_dtype(code, what))


def tensor_array(tensor: onnx.TensorProto, folder: Path | None, what: str) -> Array:
    """The array of a tensor.

    Raises InputError if the bytes are missing, too few, or outside the folder.

    Args:
        folder: the model's folder for external data; None if it has none.
    """
    dtype, shape = tensor_kind(tensor, what)
    if is_external(tensor):
        return _external(tensor, dtype, shape, folder, what)
    if _is_plain(tensor, dtype):
        stored = tensor.raw_data
        check_length(len(stored), dtype, shape, what)
        return np.frombuffer(stored, dtype).reshape(shape)
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{what}: damaged tensor: {error}") from None
    if array.dtype != dtype or array.shape != shape:
        raise InputError(
            f"{what}: {array.dtype.name}{list(array.shape)}; it says {dtype.name}{list(shape)}"
        )
    return array


def tensor_texts(tensor: onnx.TensorProto, what: str) -> Array:
    """The array of str of a tensor of strings.

    Raises InputError if there are too few or too many strings, or if one is no UTF-8.
    """
    check_texts(tensor, what)
    texts = [decoded_text(each, what) for each in tensor.string_data]
    return np.array(texts, np.dtype(object)).reshape(tuple(tensor.dims))


def decoded_text(data: bytes, what: str) -> str:
    """A string of a model. Raises InputError if it is no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InputError(f"{what}: string {data!r}; need UTF-8") from None


def check_texts(tensor: onnx.TensorProto, what: str) -> None:
    """Raise InputError unless a tensor of strings has as many as its shape says."""
    if is_external(tensor) or tensor.HasField("raw_data"):
        raise InputError(f"{what}: damaged tensor: strings are kept in string_data")
    shape, given = list(tensor.dims), len(tensor.string_data)
    if any(n < 0 for n in shape) or prod(shape) != given:
        raise InputError(f"{what}: damaged tensor: {given} strings of shape {shape}")


def tensor_kind(tensor: onnx.TensorProto, what: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype and shape of a tensor.

    Raises InputError for a shape that no array can have.

    Args:
        what: for the message.
    """
    dtype, shape = tensor_dtype(tensor.data_type, what), tuple(tensor.dims)
    if any(n < 0 for n in shape):
        raise InputError(f"{what}: shape {list(shape)}; sizes are 0 or more")
    try:
        check_tensor_limits(shape, dtype.itemsize)
    except ValueError as error:
        raise InputError(f"{what}: {error}") from None
    return dtype, shape


def kind_of_bytes(
    tensor: onnx.TensorProto, given: int
) -> tuple[np.dtype[Any], tuple[int, ...]] | None:
    """The dtype and shape of the array whose raw bytes were cut out of a tensor.

    None if the tensor is damaged, or its raw bytes differ from its array's bytes.

    Args:
        given: their number.
    """
    try:
        dtype, shape = tensor_kind(tensor, "")
    except InputError:
        return None
    if is_external(tensor) or any(len(getattr(tensor, name)) for name in LISTS):
        return None
    whole = _is_stored_plainly(dtype) and given == packed_bytes(prod(shape), dtype)
    return (dtype, shape) if whole else None


def _is_plain(tensor: onnx.TensorProto, dtype: np.dtype[Any]) -> bool:
    """Whether a tensor's bytes equal its array's bytes."""
    return tensor.HasField("raw_data") and _is_stored_plainly(dtype)


def _is_stored_plainly(dtype: np.dtype[Any]) -> bool:
    """Whether raw bytes in a model equal the bytes of an array."""
    packed = bit_width(dtype) < 8 and dtype != np.bool_
    return not packed and sys.byteorder == "little"


def check_length(given: int, dtype: np.dtype[Any], shape: tuple[int, ...], what: str) -> None:
    """Raise InputError if the number of stored bytes does not match the shape.

    Args:
        what: for messages.
    """
    wanted = packed_bytes(prod(shape), dtype)
    if given != wanted:
        kind = f"{dtype.name}{list(shape)}"
        raise InputError(f"{what}: damaged tensor: {given} bytes; {kind} has {wanted}")


def is_external(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor's data is in another file."""
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def packed_bytes(elements: int, dtype: np.dtype[Any]) -> int:
    """The bytes of elements in a model, which packs elements of less than 8 bits."""
    return -(-elements * max(bit_width(dtype), 8 if dtype == np.bool_ else 1) // 8)


LISTS = (
    *("float_data", "int32_data", "int64_data", "double_data", "uint64_data"),
    "string_data",
)
"""The fields other than raw_data that may hold a tensor's elements. Exactly one of all is used."""


def check_stored(tensor: onnx.TensorProto, folder: Path | None, what: str) -> None:
    """Raise InputError if a tensor's data is missing, or does not match its shape.

    Reads no external data.

    Args:
        folder, what: as for tensor_array.
    """
    if tensor.data_type == onnx.TensorProto.STRING:
        check_texts(tensor, what)
        return
    dtype, shape = tensor_kind(tensor, what)
    wanted = packed_bytes(prod(shape), dtype)
    if is_external(tensor):
        _located(tensor, wanted, folder, what)
        return
    # Each access to the bytes of a tensor copies them.
    is_long = wanted > COPIED_BYTES and _is_plain(tensor, dtype)
    filled = [name for name in LISTS if len(getattr(tensor, name))]
    if is_long or len(tensor.raw_data):
        filled = ["raw_data", *filled]
    if len(filled) > 1:
        raise InputError(f"{what}: elements in {' and '.join(filled)}; need one of them")
    # The length of a list, or of many bytes, is checked when it becomes an array.
    if filled == ["raw_data"] and not is_long:
        check_length(len(tensor.raw_data), dtype, shape, what)


def stored_bytes(tensor: onnx.TensorProto, folder: Path | None, what: str) -> int:
    """The size of a tensor's data in bytes, without reading external data.

    Raises InputError if external data is missing.

    Args:
        folder, what: as for tensor_array.
    """
    dtype = tensor_dtype(tensor.data_type, what)
    if is_external(tensor):
        return _located(tensor, packed_bytes(prod(tensor.dims), dtype), folder, what).size
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data)
    lists = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data)
    return max(map(len, (*lists, tensor.uint64_data))) * dtype.itemsize


class _Located(NamedTuple):
    """The place of external data, in bytes."""

    path: Path
    offset: int
    size: int


def _located(tensor: onnx.TensorProto, wanted: int, folder: Path | None, what: str) -> _Located:
    """The place of a tensor's external data. Raises InputError if it is missing.

    Args:
        wanted: its bytes.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    where = entries.get("location", "")
    if folder is None:
        raise InputError(f"{what}: its data are in {where!r}, but the model has no folder")
    path = file_inside(folder, where, what)
    offset = _size(entries.get("offset", "0"), "offset", what)
    length = _size(entries.get("length", str(wanted)), "length", what)
    if length != wanted:
        kind = f"{tensor_dtype(tensor.data_type, what).name}{list(tensor.dims)}"
        raise InputError(f"{what}: {length} bytes of external data; {kind} has {wanted}")
    try:
        available = path.stat().st_size
    except OSError as error:
        raise InputError(f"{what}: cannot read {where!r}: {error}") from None
    if offset + wanted > available:
        raise InputError(
            f"{what}: bytes {offset}..{offset + wanted} of {where!r}, which has {available}"
        )
    return _Located(path, offset, wanted)


def _external(
    tensor: onnx.TensorProto,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    folder: Path | None,
    what: str,
) -> Array:
    path, offset, wanted = _located(tensor, packed_bytes(prod(shape), dtype), folder, what)
    try:
        if bit_width(dtype) not in (1, 8 * dtype.itemsize):
            inline = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims)
            with path.open("rb") as stream:
                stream.seek(offset)
                inline.raw_data = stream.read(wanted)
            return numpy_helper.to_array(inline)
        if wanted > MAP_ABOVE_BYTES:
            return np.memmap(path, dtype, "r", offset, shape)
        with path.open("rb") as stream:
            stream.seek(offset)
            return np.frombuffer(stream.read(wanted), dtype).reshape(shape)
    except (OSError, OverflowError) as error:
        raise InputError(f"{what}: cannot read {path.name!r}: {error}") from None


def _size(text: str, key: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= SIZE_DIGITS):
        shown = text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}..."
        raise InputError(f"{what}: {key} {shown!r} of external data; need a number of bytes")
    return int(text)
