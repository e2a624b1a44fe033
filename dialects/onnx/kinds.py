"""The kinds of attributes of ONNX's operators: what may be given, and how a message holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from onnx import AttributeProto, SparseTensorProto, TensorProto, TypeProto
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f32,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import AttrConstraint, IntConstraint, VerificationContext

from ...ir.support.errors import InputError
from ...ir.upstream import VerifyException
from .attributes import BytesAttr, MessageAttr, RefAttr, TensorAttr, text_or_bytes
from .fields import whole_message
from .messages import message_attribute, message_of
from .tensors import Load, loaded_inline, tensor_attribute

Texts = StringAttr | BytesAttr


def _is_whole(value: Attribute) -> bool:
    return isinstance(value, IntegerAttr) and cast("IntegerAttr[Any]", value).type == i64


def _is_float(value: Attribute) -> bool:
    return isinstance(value, FloatAttr) and cast("FloatAttr[Any]", value).type == f32


def _is_list_of(element: Attribute) -> Callable[[Attribute], bool]:
    def check(value: Attribute) -> bool:
        return (
            isinstance(value, DenseArrayBase)
            and cast("DenseArrayBase[Any]", value).elt_type == element
        )

    return check


def _is_tensor(value: Attribute) -> bool:
    return isinstance(value, TensorAttr) or (
        isinstance(value, MessageAttr) and value.kind.data == "TensorProto"
    )


def _all(check: Callable[[Attribute], bool]) -> Callable[[Attribute], bool]:
    def check_all(value: Attribute) -> bool:
        return isinstance(value, ArrayAttr) and all(
            map(check, cast("ArrayAttr[Attribute]", value).data)
        )

    return check_all


def _is_text(value: Attribute) -> bool:
    return isinstance(value, Texts)


def _is_dictionary(value: Attribute) -> bool:
    return isinstance(value, DictionaryAttr)


def _is_type(value: Attribute) -> bool:
    return isinstance(value, TypeAttribute | DictionaryAttr)


@dataclass(frozen=True)
class Kind:
    """A kind of attribute.

    Attributes:
        name: what ONNX calls it.
        field: of a node's message, in which the value stands.
        says: a value of the kind, in messages.
        bases: the classes of its values.
        has: whether a value is of the kind.
        read: returns the value of a field.
        written: returns what to put into the field for a value.
    """

    name: str
    field: str
    says: str
    bases: tuple[type[Attribute], ...]
    has: Callable[[Attribute], bool]
    read: Callable[[Any, Load], Attribute]
    written: Callable[[Any, str], Any]

    @property
    def code(self) -> int:
        """Its number in ONNX."""
        return AttributeProto.AttributeType.Value(self.name)

    @property
    def is_list(self) -> bool:
        """Whether the field is a list."""
        return self.field.endswith("s") and self.field != "s"


def _text(data: bytes, load: Load) -> Attribute:
    return text_or_bytes(data)


def _bytes_of(value: Attribute, what: str) -> bytes:
    return value.data if isinstance(value, BytesAttr) else cast(StringAttr, value).data.encode()


def _sparse(value: Any, load: Load) -> Attribute:
    return message_attribute(value, (), load)


def _type(value: Any, load: Load) -> Attribute:
    # As a field of a message: the type alone, if that is all.
    return message_attribute(_TypeField(type=value), (), load).data["type"]


def _TypeField(type: TypeProto) -> Any:
    from onnx import ValueInfoProto  # noqa: PLC0415

    return ValueInfoProto(type=type)


def _listed(read: Callable[[Any, Load], Attribute]) -> Callable[[Any, Load], Attribute]:
    return lambda values, load: ArrayAttr([read(each, load) for each in values])


def _list_written(written: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, what: [written(each, what) for each in value.data]


def _message(kind: type[Any]) -> Callable[[Any, str], Any]:
    return lambda value, what: message_of(value, kind, what)


_KINDS: Sequence[Kind] = (
    Kind(
        *("INT", "i", "a whole number, as 1 : i64", (IntegerAttr,), _is_whole),
        lambda value, load: IntegerAttr(value, i64),
        lambda value, what: value.value.data,
    ),
    Kind(
        *("FLOAT", "f", "a number, as 0.5 : f32", (FloatAttr,), _is_float),
        lambda value, load: FloatAttr(value, f32),
        lambda value, what: value.value.data,
    ),
    Kind("STRING", "s", 'a text, as "a"', (StringAttr, BytesAttr), _is_text, _text, _bytes_of),
    Kind(
        *("INTS", "ints", "whole numbers, as array<i64: 1, 2>", (DenseArrayBase,)),
        _is_list_of(i64),
        lambda values, load: DenseArrayBase.from_list(i64, list(values)),
        lambda value, what: value.get_values(),
    ),
    Kind(
        *("FLOATS", "floats", "numbers, as array<f32: 0.5>", (DenseArrayBase,)),
        _is_list_of(f32),
        lambda values, load: DenseArrayBase.from_list(f32, list(values)),
        lambda value, what: value.get_values(),
    ),
    Kind(
        *("STRINGS", "strings", 'texts, as ["a", "b"]', (ArrayAttr,), _all(_is_text)),
        _listed(_text),
        _list_written(_bytes_of),
    ),
    Kind(
        *("TENSOR", "t", "a tensor, as #onnx.tensor<...>", (TensorAttr, MessageAttr), _is_tensor),
        tensor_attribute,
        _message(TensorProto),
    ),
    Kind(
        *("TENSORS", "tensors", "a list of tensors", (ArrayAttr,), _all(_is_tensor)),
        _listed(tensor_attribute),
        _list_written(_message(TensorProto)),
    ),
    Kind(
        *("SPARSE_TENSOR", "sparse_tensor", "a sparse tensor, as {values = ...}"),
        *((DictionaryAttr,), _is_dictionary, _sparse, _message(SparseTensorProto)),
    ),
    Kind(
        *("SPARSE_TENSORS", "sparse_tensors", "a list of sparse tensors", (ArrayAttr,)),
        *(_all(_is_dictionary), _listed(_sparse), _list_written(_message(SparseTensorProto))),
    ),
    Kind(
        *("TYPE_PROTO", "tp", "a type", (), _is_type, _type, _message(TypeProto)),
    ),
    Kind(
        *("TYPE_PROTOS", "type_protos", "a list of types", (ArrayAttr,), _all(_is_type)),
        *(_listed(_type), _list_written(_message(TypeProto))),
    ),
)

KINDS: Mapping[str, Kind] = {each.name: each for each in _KINDS}
"""The kinds of attributes by ONNX's names, without graphs, which are regions."""

BY_CODE: Mapping[int, Kind] = {each.code: each for each in _KINDS}

GRAPH, GRAPHS = "GRAPH", "GRAPHS"


@dataclass(frozen=True)
class OfKinds(AttrConstraint):
    """A value of one of some kinds, or a reference to a value of one in a model function."""

    kinds: tuple[str, ...]

    @property
    def mixed(self) -> bool:
        """Whether rules may write values of several kinds: numbers and lists for a tensor."""
        return len(self.kinds) > 1 or "TENSOR" in self.kinds

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        """Raise VerifyException for a value of another kind."""
        if isinstance(attr, RefAttr):
            if attr.kind.data in self.kinds:
                return
        elif any(KINDS[each].has(attr) for each in self.kinds) or _is_attribute_message(attr):
            return
        raise VerifyException(f"{attr}; need {self.says}")

    @property
    def says(self) -> str:
        """A value that fits, in messages."""
        return " or ".join(KINDS[each].says for each in self.kinds)

    def get_bases(self) -> set[type[Attribute]]:
        """The classes of values that fit."""
        return {base for each in self.kinds for base in KINDS[each].bases}

    def mapping_type_vars(
        self, type_var_mapping: Mapping[Any, AttrConstraint | IntConstraint]
    ) -> OfKinds:
        """Itself: it has no type variables."""
        return self


def _is_attribute_message(value: Attribute) -> bool:
    return isinstance(value, MessageAttr) and value.kind.data == "AttributeProto"


# One attribute of a node


@dataclass(frozen=True)
class ReadAttribute:
    """The value of an attribute of a node.

    Attributes:
        is_unset: whether its message states the kind but no value, which then is 0 or "".
    """

    value: Attribute
    is_unset: bool = False


def read_attribute(proto: AttributeProto, load: Load = loaded_inline) -> ReadAttribute:
    """The value of an attribute that is no graph."""
    kind = BY_CODE.get(proto.type)
    fields = {field.name for field, _ in proto.ListFields()} - {"name", "type"}
    if fields == {"ref_attr_name"}:
        name = AttributeProto.AttributeType.Name(proto.type)
        return ReadAttribute(RefAttr(StringAttr(proto.ref_attr_name), StringAttr(name)))
    if kind is None or not fields <= {kind.field}:
        return ReadAttribute(MessageAttr.of(proto))
    found = kind.read(getattr(proto, kind.field), load)
    if isinstance(found, MessageAttr) and found.kind.data == "AttributeProto":
        return ReadAttribute(found)
    return ReadAttribute(found, is_unset=not fields and not kind.is_list)


def attribute_proto(
    name: str, value: Attribute, kinds: Sequence[str], what: str, *, is_unset: bool = False
) -> AttributeProto:
    """The message of an attribute of a node.

    Raises InputError for a value of none of the kinds.

    Args:
        kinds: the kinds that it may have, the likeliest first.
        what: for messages.
        is_unset: whether the message states the kind alone.
    """
    if isinstance(value, MessageAttr) and value.kind.data == "AttributeProto":
        return whole_message(value, AttributeProto, what)
    proto: Any = AttributeProto(name=name)
    if isinstance(value, RefAttr):
        proto.ref_attr_name = value.of.data
        try:
            proto.type = AttributeProto.AttributeType.Value(value.kind.data)
        except ValueError:
            raise InputError(f"{what}: kind {value.kind.data}, which ONNX does not have") from None
        return proto
    kind = next((KINDS[each] for each in kinds if KINDS[each].has(value)), None)
    if kind is None:
        need = " or ".join(KINDS[each].says for each in kinds)
        raise InputError(f"{what}: {name} is {value}; need {need}")
    proto.type = kind.code
    if is_unset:
        return proto
    written = kind.written(value, what)
    field: Any = getattr(proto, kind.field)
    if kind.is_list:
        field.extend(written)
    elif kind.name in ("TENSOR", "SPARSE_TENSOR", "TYPE_PROTO"):
        field.CopyFrom(written)
    else:
        setattr(proto, kind.field, written)
    return proto
