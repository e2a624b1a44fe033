"""Fields of messages of ONNX, set from the entries of a dictionary of attributes."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from .attributes import BytesAttr, MessageAttr

M = TypeVar("M", bound=Message)

Field = FieldDescriptor

Inner: TypeAlias = "Callable[[Attribute, type[Message], str], Message]"
"""Makes the message of a field that holds one: from an attribute, for a kind, named for errors."""

REALS = (Field.CPPTYPE_FLOAT, Field.CPPTYPE_DOUBLE)
"""The kinds of fields that hold numbers that are not whole."""


def whole_message(attribute: MessageAttr, kind: type[M], what: str) -> M:
    """The message that an attribute holds as bytes. Raises InputError for damaged bytes."""
    if attribute.kind.data != kind.DESCRIPTOR.name:
        raise InputError(f"{what}: a {attribute.kind.data}; need a {kind.DESCRIPTOR.name}")
    try:
        return kind.FromString(attribute.data_bytes)
    except DecodeError:
        raise InputError(f"{what}: damaged {kind.DESCRIPTOR.name}") from None


def plain_message(attribute: Attribute, kind: type[M], what: str) -> M:
    """The message of an attribute whose inner messages hold no tensors and no types.

    Raises InputError as set_fields does.
    """
    if isinstance(attribute, MessageAttr):
        return whole_message(attribute, kind, what)
    if not isinstance(attribute, DictionaryAttr):
        raise InputError(f"{what}: {attribute}; need a dictionary of fields, as {{name = ...}}")
    message = kind()
    set_fields(message, attribute, what)
    return message


def set_fields(
    message: Message,
    fields: DictionaryAttr,
    what: str,
    without: Container[str] = (),
    inner: Inner = plain_message,
) -> None:
    """Set the fields of a message that a dictionary has.

    Raises InputError for a field that the message does not have, and for a value of a wrong kind.

    Args:
        what: for messages.
        without: entries of the dictionary that are no fields.
        inner: makes the messages in it.
    """
    known = cast("Mapping[str, Field]", message.DESCRIPTOR.fields_by_name)
    for name, value in fields.data.items():
        if name in without:
            continue
        field = known.get(name)
        if field is None:
            raise InputError(
                f"{what}: {message.DESCRIPTOR.name} has no field {name}{suggestion(name, known)}"
            )
        _set(message, field, value, f"{what}: {name}", inner)


def _set(message: Message, field: Field, value: Attribute, what: str, inner: Inner) -> None:
    is_message = field.cpp_type == Field.CPPTYPE_MESSAGE
    try:
        if not field.is_repeated:
            if is_message:
                getattr(message, field.name).CopyFrom(inner(value, _kind_of(field), what))
            else:
                setattr(message, field.name, _scalar(field, value, what))
            return
        if not isinstance(value, ArrayAttr):
            raise InputError(f"{what}: {value}; need a list")
        into: Any = getattr(message, field.name)
        for each in cast("ArrayAttr[Attribute]", value).data:
            if is_message:
                into.add().CopyFrom(inner(each, _kind_of(field), what))
            else:
                into.append(_scalar(field, each, what))
    except (ValueError, TypeError) as error:
        # protobuf refuses numbers that are too large for a field.
        raise InputError(f"{what}: {error}") from None


def _kind_of(field: Field) -> type[Message]:
    return cast("type[Message]", cast(Any, field).message_type._concrete_class)


def _scalar(field: Field, value: Attribute, what: str) -> Any:
    is_text, is_real = field.cpp_type == Field.CPPTYPE_STRING, field.cpp_type in REALS
    match value:
        case StringAttr() if is_text:
            return value.data if field.type == Field.TYPE_STRING else value.data.encode()
        case BytesAttr() if field.type == Field.TYPE_BYTES:
            return value.data
        case FloatAttr() if is_real:
            return cast("FloatAttr[Any]", value).value.data
        case IntegerAttr() if not (is_text or is_real):
            return cast("IntegerAttr[Any]", value).value.data
        case _:
            need = "a number, as 0.5 : f32" if is_real else "a whole number, as 1 : i64"
            raise InputError(f"{what}: {value}; need {'a text' if is_text else need}")
