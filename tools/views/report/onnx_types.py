"""The names and types of values, as ONNX has them."""

from __future__ import annotations

from typing import Any, cast

import onnx
from onnx import helper
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from ....dialects.dtypes import numpy_dtype
from .made_by import attribute_text


def named_info(type_: Attribute, name: str, told: str = "") -> onnx.ValueInfoProto:
    """A value of a type.

    Args:
        told: the description of the value; by default, its layout.
    """
    tensor = tensor_of(type_)
    if tensor is None:
        return helper.make_tensor_value_info(name, element_number(type_), [], told)
    kind = element_number(tensor.element_type)
    return helper.make_tensor_value_info(
        name, kind, list(tensor.get_shape()), told or layout_text(type_)
    )


def tensor_of(type_: Attribute) -> TensorType[Attribute] | None:
    """The tensor of a type, laid out or not; None for a type of another kind."""
    found: Any = getattr(type_, "tensor", type_)
    return cast("TensorType[Attribute]", found) if isinstance(found, TensorType) else None


def layout_text(type_: Attribute) -> str:
    """The layout of a type; "" for a type without one."""
    layout = getattr(type_, "layout", None)
    return "" if layout is None else f"layout {attribute_text(layout)}"


def element_number(type_: Attribute) -> int:
    """ONNX's number for an element type; the number for bytes if ONNX does not have the type."""
    try:
        return int(helper.np_dtype_to_tensor_dtype(numpy_dtype(type_)))
    except (ValueError, KeyError):
        return onnx.TensorProto.UINT8


def array_number(array: Any) -> int | None:
    """ONNX's number for the elements of an array; None if ONNX does not have their type."""
    try:
        return int(helper.np_dtype_to_tensor_dtype(array.dtype))
    except (ValueError, KeyError):
        return None
