"""Tensors of ONNX as attributes, and back without loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from ...ir.blob import Blob
from ...ir.support.errors import InputError
from ..blob_attr import BlobAttr
from .attributes import MessageAttr, TensorAttr, text_or_bytes
from .fields import set_fields, whole_message
from .types import code_of_dtype, element_of_code, tensor_of

Load: TypeAlias = "Callable[[TensorProto], NDArray[Any] | None]"
"""Returns the elements of a tensor; None if no array can hold them."""

RAW = "raw_data"
STORED = "stored"
"""The entry of a tensor's form that names the field with its elements."""

LISTS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
NOTHING = "nothing"
"""The value of STORED for a tensor that has no field with elements, because it has none."""

_COPIED = frozenset(("dims", "data_type", RAW, *LISTS))


def loaded_inline(proto: TensorProto) -> NDArray[Any] | None:
    """The elements that a message holds itself."""
    if proto.data_location == TensorProto.EXTERNAL or proto.data_type == TensorProto.STRING:
        return None
    try:
        array = np.asarray(numpy_helper.to_array(proto))
    # onnx's own function raises whatever damaged bytes lead to.
    except Exception:
        return None
    return array if array.shape == tuple(proto.dims) else None


def tensor_attribute(proto: TensorProto, load: Load = loaded_inline) -> Attribute:
    """The attribute of a tensor: its array, or else its whole message.

    Args:
        load: returns the array. It may know elements that the message does not hold.
    """
    array = load(proto)
    if array is None:
        return MessageAttr.of(proto)
    form: dict[str, Attribute] = {}
    is_external = proto.data_location == TensorProto.EXTERNAL
    filled = [name for name in LISTS if len(getattr(proto, name))]
    # The reader takes the bytes of large weights out of the message.
    has_raw = proto.HasField(RAW) or not (filled or is_external or array.size == 0)
    if not has_raw and not is_external:
        form[STORED] = StringAttr(filled[0] if filled else NOTHING)
    for field, value in proto.ListFields():
        if field.name not in _COPIED:
            form[field.name] = _form_entry(field.name, value)
    try:
        attribute = TensorAttr(BlobAttr(Blob(array)), DictionaryAttr(form))
        code_of_dtype(array.dtype)
    except ValueError:
        return MessageAttr.of(proto)
    # Where an array's bytes are the message's, there is nothing to compare.
    if is_external or (has_raw and not filled and not _is_packed(array)):
        return attribute
    return attribute if tensor_proto(attribute, "") == proto else MessageAttr.of(proto)


def _form_entry(name: str, value: Any) -> Attribute:
    if name in ("external_data", "metadata_props"):
        return ArrayAttr(
            [
                DictionaryAttr(
                    {field.name: StringAttr(cast(str, text)) for field, text in each.ListFields()}
                )
                for each in value
            ]
        )
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, bytes):
        return text_or_bytes(value)
    return MessageAttr.of(value)


def _is_packed(array: NDArray[Any]) -> bool:
    """Whether ONNX packs several elements of an array into a byte."""
    return code_of_dtype(array.dtype) in _PACKED


_PACKED = frozenset(
    int(getattr(TensorProto, name))
    for name in ("INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2")
    if hasattr(TensorProto, name)
)


def tensor_proto(attribute: Attribute, what: str, *, inline: bool = False) -> TensorProto:
    """The message of a tensor. The elements of external data are not in it.

    Raises InputError for an attribute that holds no tensor.

    Args:
        what: for messages.
        inline: put the elements of external data into the message too.
    """
    if isinstance(attribute, MessageAttr):
        return whole_message(attribute, TensorProto, what)
    if not isinstance(attribute, TensorAttr):
        raise InputError(f"{what}: {attribute}; need a tensor, as #onnx.tensor<...>")
    array = attribute.array
    proto = TensorProto()
    try:
        proto.data_type = code_of_dtype(array.dtype)
    except ValueError as error:
        raise InputError(f"{what}: {error}") from None
    proto.dims.extend(array.shape)
    form = attribute.form.data
    external = ("external_data", "data_location") if inline else ()
    set_fields(proto, attribute.form, what, (STORED, *external))
    if proto.data_location == TensorProto.EXTERNAL:
        return proto
    stored = form.get(STORED)
    field = RAW if inline or not isinstance(stored, StringAttr) else stored.data
    if field == RAW:
        proto.raw_data = raw_bytes(array)
    elif field in LISTS:
        getattr(proto, field).extend(_elements(array, field, what))
    elif field != NOTHING or array.size:
        raise InputError(f"{what}: {STORED} = {field!r}; need one of {', '.join((RAW, *LISTS))}")
    return proto


def raw_bytes(array: NDArray[Any]) -> bytes:
    """The bytes of an array as ONNX stores them."""
    if _is_packed(array):
        return bytes(numpy_helper.from_array(array).raw_data)
    return np.ascontiguousarray(array).tobytes()


def _elements(array: NDArray[Any], field: str, what: str) -> NDArray[Any]:
    """The elements of an array as numbers of a field of lists. Raises InputError."""
    flat = np.ascontiguousarray(array).reshape(-1)
    bits = np.frombuffer(raw_bytes(array), np.uint8)
    if array.dtype.kind == "c" and field in ("float_data", "double_data"):
        return flat.view(np.float32 if array.dtype.itemsize == 8 else np.float64)
    if field == "int32_data" and array.dtype.kind not in "iub":
        return bits.view(np.uint16).astype(np.int32) if array.dtype.itemsize == 2 else bits
    if field == "int32_data" and _is_packed(array):
        return bits
    kind = _LISTED[field]
    if not np.can_cast(array.dtype, kind):
        raise InputError(f"{what}: {field} does not hold elements of type {array.dtype.name}")
    return flat.astype(kind)


_LISTED: dict[str, type[np.generic]] = {
    "float_data": np.float32,
    "int32_data": np.int32,
    "int64_data": np.int64,
    "double_data": np.float64,
    "uint64_data": np.uint64,
}


def tensor_type_of(proto: TensorProto) -> Attribute:
    """The type of a tensor."""
    return tensor_of(element_of_code(proto.data_type), tuple(map(int, proto.dims)))
