"""Nodes that compute with sizes. Sizes are known at import, so these nodes are computed then."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from .aten_node import AtenNode, Importer, Results
from .promotion import Number


def _of(function: Callable[..., Any]) -> Importer:
    """A function of numbers."""

    def importer(node: AtenNode) -> Results:
        given: list[Any] = [node.get(name) for name in node.call.arguments]
        if not all(isinstance(each, bool | int | float) for each in given):
            raise node.bad("arguments that are no numbers")
        try:
            return function(*given)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise node.bad(str(error)) from None

    return importer


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > 64 or abs(base) > 2**63:
        raise ValueError(f"{base} to the power of {exponent}")
    return base**exponent


def _chosen(which: Number, yes: Number, no: Number) -> Number:
    return yes if which else no


def _size(node: AtenNode) -> Results:
    shape = node.shape("self")
    return shape[node.axis(node.integer("dim"), len(shape))]


def _stride(node: AtenNode) -> Results:
    """How far apart two elements along an axis are, in row-major order."""
    shape = node.shape("self")
    return prod(shape[node.axis(node.integer("dim"), len(shape)) + 1 :])


def _item(node: AtenNode) -> Results:
    return node.scalar(node.value("self"), "self")


def _checked(node: AtenNode) -> Results:
    """A condition of the exported program, which must hold for the sizes that are given."""
    holds: Any = node.get("self", True)
    if isinstance(holds, bool | int) and not holds:
        raise node.bad(f"the sizes break a condition of the export: {node.get('assert_msg', '')}")
    return None


def _nothing(node: AtenNode) -> Results:
    """A check that concerns torch only."""
    del node


OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "pos"),
    *("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_"),
)
"""Functions of Python's module operator that are what a file calls them."""

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{f"_operator.{name}": getattr(operator, name) for name in OPERATORS},
    "_operator.pow": _power,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.trunc": math.trunc,
    "torch.sym_int": int,
    "torch.sym_float": float,
    "torch.sym_max": max,
    "torch.sym_min": min,
    "torch.sym_not": operator.not_,
    "torch.sym_ite": _chosen,
    "torch._sym_sqrt": math.sqrt,
}
"""The functions of numbers, by their name in a file."""

NUMBERS: dict[str, Importer] = {
    **{name: _of(function) for name, function in FUNCTIONS.items()},
    "aten.sym_size": _size,
    "aten.sym_stride": _stride,
    "aten.sym_numel": lambda node: prod(node.shape("self")),
    "aten.sym_storage_offset": lambda node: 0,
    "aten._local_scalar_dense": _item,
    "aten.item": _item,
    "aten._assert_scalar": _checked,
    **dict.fromkeys(
        (
            "aten._assert_async",
            "aten._assert_tensor_metadata",
            "aten.sym_constrain_range",
            "aten.sym_constrain_range_for_size",
        ),
        _nothing,
    ),
}
"""The importers of nodes that make numbers, or nothing, by their target without its overload."""
