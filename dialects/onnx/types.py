"""The types of values of an ONNX model, and how they and the messages of ONNX become each other.

A tensor of known rank is `tensor<2x?xf32, #onnx.dims<["", "N"]>>`: the second attribute names the
sizes that are unknown, and is there only if one is. ONNX may know less of a value than a program of
`nn` does, down to nothing at all (`!onnx.unknown`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, cast

import numpy as np
import onnx
from onnx import TypeProto
from onnx.helper import np_dtype_to_tensor_dtype, tensor_dtype_to_np_dtype
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IntAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def

from ...ir.element_types import dense_dtype, dense_element
from ...ir.open_types import agree
from ...ir.upstream import NoneAttr


@irdl_attr_definition
class UnknownType(ParametrizedAttribute, TypeAttribute):
    """The type of a value of which ONNX knows nothing."""

    name = "onnx.unknown"
    OPENS: ClassVar[bool] = True


@irdl_attr_definition
class RanklessType(ParametrizedAttribute, TypeAttribute):
    """The type of a tensor of which ONNX knows only the elements."""

    name = "onnx.any_rank"
    element_type: Attribute = param_def()
    OPENS: ClassVar[bool] = True


@irdl_attr_definition
class SkippedType(ParametrizedAttribute, TypeAttribute):
    """The type of an optional operand that is left out."""

    name = "onnx.skipped"


@irdl_attr_definition
class StringType(ParametrizedAttribute, TypeAttribute):
    """The type of elements that are texts."""

    name = "onnx.string"


@irdl_attr_definition
class ElementType(ParametrizedAttribute, TypeAttribute):
    """The type of elements that abele does not know, by its number in ONNX."""

    name = "onnx.element"
    code: IntAttr = param_def()


@irdl_attr_definition
class SequenceType(ParametrizedAttribute, TypeAttribute):
    """The type of a list of values of one type."""

    name = "onnx.sequence"
    element: Attribute = param_def()


@irdl_attr_definition
class OptionalType(ParametrizedAttribute, TypeAttribute):
    """The type of a value that may be missing."""

    name = "onnx.optional"
    element: Attribute = param_def()


@irdl_attr_definition
class MapType(ParametrizedAttribute, TypeAttribute):
    """The type of a table from numbers or texts to values of one type."""

    name = "onnx.map"
    key: Attribute = param_def()
    value: Attribute = param_def()


@irdl_attr_definition
class SparseType(ParametrizedAttribute, TypeAttribute):
    """The type of a sparse tensor, as the type of the same tensor with all elements."""

    name = "onnx.sparse"
    tensor: Attribute = param_def()


@irdl_attr_definition
class DimsAttr(ParametrizedAttribute):
    """The names of the unknown sizes of a tensor: one text per axis, "" for an axis without a name.

    Attributes:
        OPENS: tells rules that sizes of such a tensor may be unknown.
    """

    name = "onnx.dims"
    names: ArrayAttr[StringAttr] = param_def()
    OPENS: ClassVar[bool] = True

    def named(self, axis: int) -> bool:
        """Whether the size of an axis has a name."""
        return axis < len(self.names.data) and bool(self.names.data[axis].data)


UNKNOWN, SKIPPED = UnknownType(), SkippedType()

__all__ = ["SKIPPED", "UNKNOWN", "agree", "merged", "sizes_of", "tensor_of", "type_proto"]


# Elements


@lru_cache(maxsize=64)
def element_of_code(code: int) -> Attribute:
    """The element type of one of ONNX's numbers for element types."""
    if code == onnx.TensorProto.STRING:
        return StringType()
    try:
        return dense_element(np.dtype(tensor_dtype_to_np_dtype(code)))
    except (KeyError, ValueError, TypeError):
        return ElementType(IntAttr(code))


@lru_cache(maxsize=64)
def code_of_element(element: Attribute) -> int:
    """ONNX's number for an element type. Raises ValueError for elements that ONNX does not have."""
    if isinstance(element, StringType):
        return int(onnx.TensorProto.STRING)
    if isinstance(element, ElementType):
        return element.code.data
    return code_of_dtype(dense_dtype(element))


def code_of_dtype(dtype: np.dtype[Any]) -> int:
    """ONNX's number for the elements of an array. Raises ValueError if ONNX has none."""
    try:
        return int(np_dtype_to_tensor_dtype(dtype))
    except (KeyError, ValueError, TypeError):
        raise ValueError(f"elements of type {dtype.name}, which ONNX does not have") from None


# Types


def tensor_of(element: Attribute, sizes: tuple[int | str, ...]) -> TensorType[Attribute]:
    """A tensor type; a size that is a text is unknown and has this name, which may be ""."""
    shape = [DYNAMIC_INDEX if isinstance(size, str) else size for size in sizes]
    names = [StringAttr(size if isinstance(size, str) else "") for size in sizes]
    is_open = any(isinstance(size, str) for size in sizes)
    return TensorType(element, shape, DimsAttr(ArrayAttr(names)) if is_open else NoneAttr())


def sizes_of(type_: TensorType[Attribute]) -> tuple[int | str, ...]:
    """The sizes of a tensor: a number, or the name of an unknown size."""
    encoding = type_.encoding
    names = [each.data for each in encoding.names] if isinstance(encoding, DimsAttr) else []
    names += [""] * (len(type_.get_shape()) - len(names))
    return tuple(
        name if size == DYNAMIC_INDEX else size
        for size, name in zip(type_.get_shape(), names, strict=False)
    )


def _from_tensor(proto: TypeProto) -> Attribute:
    return _tensor(proto.tensor_type)


def _tensor(tensor: TypeProto.Tensor | TypeProto.SparseTensor) -> Attribute:
    element = element_of_code(tensor.elem_type)
    if not tensor.HasField("shape"):
        return RanklessType(element)
    sizes = (
        each.dim_value if each.HasField("dim_value") and each.dim_value >= 0 else each.dim_param
        for each in tensor.shape.dim
    )
    return tensor_of(element, tuple(sizes))


def _from_map(proto: TypeProto) -> Attribute:
    return MapType(element_of_code(proto.map_type.key_type), value_type(proto.map_type.value_type))


_READ: Mapping[str | None, Callable[[TypeProto], Attribute]] = {
    "tensor_type": _from_tensor,
    "sparse_tensor_type": lambda proto: SparseType(_tensor(proto.sparse_tensor_type)),
    "sequence_type": lambda proto: SequenceType(value_type(proto.sequence_type.elem_type)),
    "optional_type": lambda proto: OptionalType(value_type(proto.optional_type.elem_type)),
    "map_type": _from_map,
}


def value_type(proto: TypeProto) -> Attribute:
    """The type that a message states, as far as abele's types can."""
    read = _READ.get(proto.WhichOneof("value"))
    return UNKNOWN if read is None else read(proto)


def type_proto(type_: Attribute) -> TypeProto:
    """The message for a type. Raises ValueError for a type that ONNX does not have."""
    proto = TypeProto()
    if isinstance(type_, TensorType | RanklessType):
        _set_tensor(proto.tensor_type, cast("TensorType[Attribute]", type_))
    elif isinstance(type_, SparseType):
        _set_tensor(proto.sparse_tensor_type, cast("TensorType[Attribute]", type_.tensor))
    elif isinstance(type_, SequenceType):
        proto.sequence_type.elem_type.CopyFrom(type_proto(type_.element))
    elif isinstance(type_, OptionalType):
        proto.optional_type.elem_type.CopyFrom(type_proto(type_.element))
    elif isinstance(type_, MapType):
        proto.map_type.key_type = code_of_element(type_.key)
        proto.map_type.value_type.CopyFrom(type_proto(type_.value))
    elif not isinstance(type_, UnknownType):
        raise ValueError(f"type {type_}, which ONNX does not have")
    return proto


def _set_tensor(
    into: TypeProto.Tensor | TypeProto.SparseTensor, type_: TensorType[Attribute] | RanklessType
) -> None:
    into.elem_type = code_of_element(type_.element_type)
    if isinstance(type_, RanklessType):
        return
    # A shape without axes is a shape too.
    into.shape.SetInParent()
    for size in sizes_of(type_):
        dim = into.shape.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size:
            dim.dim_param = size


# What is known of one value from two sources


def merged(known: Attribute, more: Attribute) -> Attribute:
    """What two types that agree say together; the name of a size is that of the first one."""
    if isinstance(known, UnknownType | RanklessType):
        return known if isinstance(more, UnknownType) else more
    if not (isinstance(known, TensorType) and isinstance(more, TensorType)):
        return cast(Attribute, known)
    a, b = cast("TensorType[Attribute]", known), cast("TensorType[Attribute]", more)
    sizes = (
        m if isinstance(m, int) else n if isinstance(n, int) else m or n
        for m, n in zip(sizes_of(a), sizes_of(b), strict=True)
    )
    return tensor_of(a.element_type, tuple(sizes))
