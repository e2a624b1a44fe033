"""Converts attributes to the numbers, strings and lists that rules compute with, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint

from ..number_attr import float_attr, integer_attr, integers_attr
from ..upstream import Context, ParseError, Parser

Plain: TypeAlias = "int | float | bool | str | tuple[Any, ...] | Attribute | None"
"""The value of an attribute in a rule: the attribute itself, if rules cannot compute with it."""


def plain(attribute: Attribute | None) -> Plain:
    """The value of an attribute in a rule."""
    match attribute:
        case IntegerAttr():
            whole = cast("IntegerAttr[Any]", attribute)
            if whole.type == i1:
                return bool(whole.value.data)
            return whole.value.data
        case IntAttr():
            return attribute.data
        case FloatAttr():
            return cast("FloatAttr[Any]", attribute).value.data
        case StringAttr():
            return attribute.data
        case SymbolRefAttr():
            return attribute.string_value()
        case UnitAttr():
            return True
        case DenseArrayBase():
            return tuple(cast("DenseArrayBase[IntegerType]", attribute).get_values())
        case ArrayAttr():
            items = tuple(plain(each) for each in attribute.data)
            if all(isinstance(each, int | float | str) for each in items):
                return items
            return attribute
        case _:
            return attribute


def _candidates(value: Plain) -> Iterable[Attribute]:
    """The attributes that can hold a value, the likeliest first."""
    if isinstance(value, Attribute):
        yield value
    elif isinstance(value, bool):
        if value:
            yield UnitAttr()
        yield BoolAttr.from_bool(value)
    elif isinstance(value, int):
        for type_ in (i64, IndexType(), i32):
            yield integer_attr(value, type_)
        yield IntAttr(value)
        if abs(value) < 2**1023:
            yield from _candidates(float(value))
    elif isinstance(value, float):
        yield float_attr(value, f64)
        yield float_attr(value, f32)
    elif isinstance(value, str):
        yield StringAttr(value)
        yield SymbolRefAttr(value)
    elif isinstance(value, tuple):
        whole = all(isinstance(each, int) for each in value)
        if whole:
            for type_ in (i64, i32):
                yield integers_attr(value, type_)
        if all(isinstance(each, int | float) and abs(each) < 2**1023 for each in value):
            for float_ in (f64, f32):
                yield DenseArrayBase.from_list(float_, [float(each) for each in value])
        yield ArrayAttr([next(iter(_candidates(each))) for each in value])


def attribute_of(value: Plain, constraint: AttrConstraint | None) -> Attribute | None:
    """The attribute that holds a value and satisfies a definition; None if there is none.

    Raises ValueError for a value that such a class accepts and finds wrong.

    Args:
        constraint: of the definition. Without one, the likeliest attribute is used. A class of
            attributes may convert values itself, in a class method from_plain(value), which returns
            None for values that it does not accept.
    """
    for each in _candidates(value):
        if constraint is None or constraint.verifies(each):
            return each
    if constraint is None or isinstance(value, Attribute):
        return None
    bases = sorted(constraint.get_bases() or (), key=lambda each: each.name)
    for each in (_written(base, value) for base in bases):
        if each is not None and constraint.verifies(each):
            return each
    return None


def _written(cls: type[Attribute], value: Plain) -> Attribute | None:
    """The attribute of a class that a value stands for; None if there is none."""
    from_plain: Callable[[Plain], Attribute | None] | None = getattr(cls, "from_plain", None)
    return None if from_plain is None else from_plain(value)


def equal_values(a: Plain, b: Plain) -> bool:
    """True if two values are the same in a rule. One of them may be written for an attribute."""
    if isinstance(a, Attribute) == isinstance(b, Attribute):
        return a == b
    attribute, value = (a, b) if isinstance(a, Attribute) else (b, a)
    try:
        return _written(type(cast(Attribute, attribute)), value) == attribute
    except ValueError:
        return False


_SAMPLES: tuple[tuple[str, Plain], ...] = (
    ("int", 1),
    ("float", 0.5),
    ("string", "a"),
    ("ints", (1, 2)),
    ("floats", (0.5, 1.5)),
)


def kind_of(constraint: AttrConstraint) -> str:
    """The kind of values that an attribute's definition allows: one of the library's KINDS.

    A definition that allows neither numbers nor strings, or several kinds of them, is an
    "attribute", or "any" if its constraint has a true `mixed`: rules may then write all that it
    allows. A definition that allows only presence or absence is a "bool".
    """
    kinds = [kind for kind, value in _SAMPLES if attribute_of(value, constraint) is not None]
    # A float may be written as an integer, which does not count as a second kind.
    if kinds == ["int", "float"] and not any(
        constraint.verifies(IntegerAttr(1, each)) for each in (i64, IndexType(), i32)
    ):
        kinds = ["float"]
    if kinds == ["ints", "floats"]:
        whole = (integers_attr((1,), each) for each in (i64, i32))
        floats = (DenseArrayBase.from_list(each, [0.5]) for each in (f32, f64))
        if any(map(constraint.verifies, floats)) and not any(map(constraint.verifies, whole)):
            kinds = ["floats"]
    if len(kinds) == 1:
        return kinds[0]
    if not kinds and constraint.verifies(UnitAttr()):
        return "bool"
    return "any" if getattr(constraint, "mixed", False) else "attribute"


def tensor_parts(type_: Attribute) -> tuple[tuple[int, ...], Attribute] | None:
    """The shape and element type of a tensor, or of a type that describes a tensor's layout."""
    inner = getattr(type_, "tensor", type_)
    if isinstance(inner, TensorType):
        tensor = cast("TensorType[Attribute]", inner)
        return tuple(tensor.get_shape()), tensor.element_type
    return None


_TYPE_LIKE = re.compile(r"(b?f|fp|tf|b?float|[us]?i|u?int)\d+\Z")


def is_no_type(word: str) -> bool:
    """True if a word looks like an element type, such as f33 or float32, but is not one."""
    return bool(_TYPE_LIKE.match(word)) and element_type(word) is None


_WORD = re.compile(r"(bf16|tf32|f\d+\w*|[us]?i\d+|index)\Z")


@lru_cache(maxsize=64)
def element_type(word: str) -> Attribute | None:
    """The element type that a word such as f32 names; None for a name that a rule chose."""
    if not _WORD.match(word):
        return None
    try:
        return Parser(Context(), word).parse_type()
    except ParseError:
        return None
