"""Types that leave something open about a value, and whether two of them can be of one value.

A dialect whose programs may not know the shape of a value marks its types: the class constant
`OPENS` of a type, or of the second attribute of a tensor type, is true. All other types are equal
or differ.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute


def opens(attribute: Attribute) -> bool:
    """Whether an attribute marks a type as one that leaves something open."""
    return bool(getattr(type(attribute), "OPENS", False))


def is_certain(type_: Attribute) -> bool:
    """Whether two values of this very type have the same shape and elements.

    A size that is not known may have a name, which then stands for one number.
    """
    if isinstance(type_, TensorType):
        tensor = cast("TensorType[Attribute]", type_)
        return DYNAMIC_INDEX not in tensor.get_shape() or _names_all(tensor)
    return not _holds_open(type_)


def _names_all(tensor: TensorType[Attribute]) -> bool:
    named = getattr(tensor.encoding, "named", None)
    sizes = enumerate(tensor.get_shape())
    return named is not None and all(named(axis) for axis, n in sizes if n == DYNAMIC_INDEX)


def agree(one: Attribute, other: Attribute) -> bool:
    """Whether one value can have both types: neither contradicts the other."""
    if one == other:
        return True
    left, right = _tensor(one), _tensor(other)
    if left is not None and right is not None:
        return _tensors_agree(left, right)
    if opens(one) or opens(other):
        return _open_agrees(one, other) if opens(one) else _open_agrees(other, one)
    if isinstance(one, ParametrizedAttribute) and type(one) is type(other):
        some, others = one.parameters, cast(ParametrizedAttribute, other).parameters
        return any(map(_holds_open, (*some, *others))) and all(map(agree, some, others))
    return False


def _tensor(type_: Attribute) -> TensorType[Attribute] | None:
    return cast("TensorType[Attribute]", type_) if isinstance(type_, TensorType) else None


def _tensors_agree(one: TensorType[Attribute], other: TensorType[Attribute]) -> bool:
    if one.element_type != other.element_type or not (opens(one.encoding) or opens(other.encoding)):
        return False
    left, right = tuple(one.get_shape()), tuple(other.get_shape())
    return len(left) == len(right) and all(
        m == n or DYNAMIC_INDEX in (m, n) for m, n in zip(left, right, strict=True)
    )


def _open_agrees(one: Attribute, other: Attribute) -> bool:
    """Whether a type that opens something agrees: one with an element type knows only that."""
    element = getattr(one, "element_type", None)
    return element is None or element == getattr(other, "element_type", element)


def _holds_open(attribute: Attribute) -> bool:
    if opens(attribute) or opens(getattr(attribute, "encoding", attribute)):
        return True
    inner = attribute.parameters if isinstance(attribute, ParametrizedAttribute) else ()
    return any(map(_holds_open, inner))
