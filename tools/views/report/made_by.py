"""What operations do, as values and texts: their attributes, and the shapes of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation

from ....backends.reference import tensor_kind
from ....dialects.blob_attr import BlobAttr
from ...driver.shown_text import shown
from .nodes import Nodes

LONGEST = 200
"""The most characters of an attribute that is text. The text of the program has all of it."""


def made_by(ops: Iterable[Operation], nodes: Nodes) -> Mapping[int, Mapping[str, str]]:
    """For each operation of a report, its columns shape and attributes.

    The attributes are those of the first operation in the IR that has some.

    Args:
        ops: of the highest level, in order.
    """
    found: dict[int, dict[str, str]] = {}
    for op in ops:
        number = nodes.known_operation(op)
        if number < 0 or op.regions:
            continue
        row = found.setdefault(number, {"shape": "", "attributes": ""})
        for result in op.results[:1]:
            if isinstance(result.type, TensorType):
                row["shape"] = shape_text(cast(Attribute, result.type))
        row["attributes"] = row["attributes"] or attributes_text(op)
    return found


def shape_text(type_: Attribute) -> str:
    """The shape and the element type of a tensor: "1x64x56x56 float32"."""
    shape, dtype = tensor_kind(type_)
    return f"{'x'.join(map(str, shape)) or 'scalar'} {dtype.name}"


def attributes_text(op: Operation) -> str:
    """The attributes of an operation in a line, without weights and symbols."""
    texts: list[str] = []
    for name, attribute in op.properties.items():
        if isinstance(attribute, BlobAttr | SymbolRefAttr) or name == "operandSegmentSizes":
            continue
        texts.append(f"{name} {plain_value(attribute)}")
    return _cut(", ".join(texts))


@lru_cache(maxsize=4096)
def plain_value(attribute: Attribute) -> int | float | str | list[int] | list[float]:
    """An attribute as a number, a list of numbers, or text."""
    match attribute:
        case IntegerAttr():
            value = attribute.value.data
            return value if -(2**63) <= value < 2**63 else str(value)
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return _cut(attribute.data)
        case SymbolRefAttr():
            return "@" + _cut(attribute.string_value())
        case UnitAttr():
            return 1
        case DenseArrayBase() | ArrayAttr():
            given = cast(Any, attribute)
            found: list[Any] = (
                list(given.get_values())
                if isinstance(attribute, DenseArrayBase)
                else [e.value.data if isinstance(e, IntegerAttr | FloatAttr) else e for e in given]
            )
            whole = all(isinstance(each, int) and abs(each) < 2**63 for each in found)
            if found and (whole or all(isinstance(each, float) for each in found)):
                return found
            return attribute_text(attribute)
        case _:
            return attribute_text(attribute)


@lru_cache(maxsize=4096)
def attribute_text(attribute: Attribute) -> str:
    """The text of an attribute, cut off after LONGEST characters."""
    own: Callable[[], str] = getattr(attribute, "text", attribute.__str__)
    return _cut(own())


def _cut(text: str) -> str:
    found = shown(text)
    return found if len(found) <= LONGEST else found[: LONGEST - 1] + "…"
