"""Messages of ONNX as attributes, and back without loss.

The fields of a message come from its descriptor, so a field that a later ONNX adds needs no code
here. A field that is not set is not in the attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, TypeVar, cast

import onnx
from google.protobuf.message import Message
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f32,
    f64,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute

from ...ir.support.errors import InputError
from .attributes import MessageAttr, text_or_bytes
from .fields import REALS, Field, whole_message
from .fields import set_fields as set_plain_fields
from .tensors import Load, loaded_inline, tensor_attribute, tensor_proto
from .types import type_proto, value_type

M = TypeVar("M", bound=Message)


def message_attribute(
    message: Message, without: Container[str] = (), load: Load = loaded_inline
) -> DictionaryAttr:
    """The fields of a message that are set, by name.

    Args:
        without: fields to leave out.
        load: returns the elements of a tensor.
    """
    return DictionaryAttr(
        {
            field.name: _listed(field, value, load)
            if field.is_repeated
            else _value(field, value, load)
            for field, value in message.ListFields()
            if field.name not in without
        }
    )


def _listed(field: Field, values: Any, load: Load) -> Attribute:
    return ArrayAttr([_value(field, each, load) for each in values])


def _value(field: Field, value: Any, load: Load) -> Attribute:
    if field.cpp_type == Field.CPPTYPE_MESSAGE:
        return _SPECIAL.get(_kind_of(field), _plain)(value, load)
    if field.cpp_type == Field.CPPTYPE_STRING:
        return StringAttr(value) if field.type == Field.TYPE_STRING else text_or_bytes(value)
    if field.cpp_type in REALS:
        return FloatAttr(value, f32 if field.cpp_type == Field.CPPTYPE_FLOAT else f64)
    return IntegerAttr(int(value), i64)


def _kind_of(field: Field) -> str:
    """The name of the message that a field holds."""
    return cast(Any, field).message_type.name


def _plain(message: Message, load: Load) -> Attribute:
    return message_attribute(message, (), load)


def _tensor(message: Any, load: Load) -> Attribute:
    return tensor_attribute(message, load)


def _type(message: Any, load: Load) -> Attribute:
    """A type, or the fields of a message that says more than a type can."""
    found = value_type(message)
    try:
        is_all = type_proto(found) == message
    except ValueError:
        is_all = False
    return found if is_all else _plain(message, load)


def _whole(message: Message, load: Load) -> Attribute:
    return MessageAttr.of(message)


_SPECIAL: Mapping[str, Callable[[Any, Load], Attribute]] = {
    "TensorProto": _tensor,
    "TypeProto": _type,
    "GraphProto": _whole,
}
"""The messages that become more than the list of their fields."""


# Back


def message_of(attribute: Attribute, kind: type[M], what: str) -> M:
    """The message of an attribute.

    Raises InputError for a field that the message does not have, and for a value of a wrong kind.

    Args:
        what: for messages.
    """
    if isinstance(attribute, MessageAttr):
        return whole_message(attribute, kind, what)
    if kind is cast(Any, onnx.TensorProto):
        return cast(M, tensor_proto(attribute, what))
    if kind is cast(Any, onnx.TypeProto) and isinstance(attribute, TypeAttribute):
        try:
            return cast(M, type_proto(attribute))
        except ValueError as error:
            raise InputError(f"{what}: {error}") from None
    if not isinstance(attribute, DictionaryAttr):
        raise InputError(f"{what}: {attribute}; need a dictionary of fields, as {{name = ...}}")
    message = kind()
    set_fields(message, attribute, what)
    return message


def set_fields(
    message: Message, fields: DictionaryAttr, what: str, without: Container[str] = ()
) -> None:
    """Set the fields of a message that a dictionary has, tensors and types among them.

    Raises InputError for a field that the message does not have, and for a value of a wrong kind.

    Args:
        what: for messages.
        without: entries of the dictionary that are no fields.
    """
    set_plain_fields(message, fields, what, without, message_of)
