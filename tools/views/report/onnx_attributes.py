"""The attributes of operations, as ONNX has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal, cast

import onnx
from onnx import helper
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation

from ....dialects.blob_attr import BlobAttr
from ...driver.shown_text import shown
from .level_costs import Costs

LONGEST = 200
"""The most characters of an attribute that is text. The text of the program has all of it."""


def named_variables(op: Operation, names: Iterable[str]) -> Iterator[str]:
    """The variables that an operation names in some of its properties."""
    for name in names:
        found = op.properties.get(name)
        for each in (
            cast("ArrayAttr[Attribute]", found) if isinstance(found, ArrayAttr) else (found,)
        ):
            if isinstance(each, SymbolRefAttr):
                yield each.string_value()


def own_names(op: Operation, what: Literal["operands", "regions"]) -> list[str]:
    """The names of an operation's operands or regions; [] for an operation of an unknown class."""
    if not isinstance(op, IRDLOperation):
        return []
    return [name for name, _ in getattr(op.get_irdl_definition(), what)]


def operation_attributes(op: Operation) -> Iterator[onnx.AttributeProto]:
    """The attributes of an operation, except for variables and weights, which are edges."""
    for name, attribute in {**op.properties, **op.attributes}.items():
        if isinstance(attribute, BlobAttr) or name in ("sym_name", "reads", "writes", "turn"):
            continue
        yield helper.make_attribute(name, _plain_value(attribute))


def cost_attributes(costs: Costs) -> list[onnx.AttributeProto]:
    """One attribute for each figure."""
    return [helper.make_attribute(name, value) for name, value in costs.items()]


@lru_cache(maxsize=4096)
def _plain_value(attribute: Attribute) -> int | float | str | list[int] | list[float]:
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
