"""The attributes of operations, as ONNX has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, cast

import onnx
from onnx import helper
from xdsl.dialects.builtin import (
    ArrayAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation

from ....dialects.blob_attr import BlobAttr
from .level_costs import Costs
from .made_by import plain_value


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
        yield helper.make_attribute(name, plain_value(attribute))


def cost_attributes(costs: Costs) -> list[onnx.AttributeProto]:
    """One attribute for each figure."""
    return [helper.make_attribute(name, value) for name, value in costs.items()]
