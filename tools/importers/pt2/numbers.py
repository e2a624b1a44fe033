"""Nodes that compute with sizes.

Sizes are known at import, so these nodes are computed then. A size that only a run knows is a
length, with which they compute too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from xdsl.dialects.builtin import i32

from ....dialects import nn
from ..building import Known, dtype_of, shape_of
from ..lengths import Length, as_length, is_equal, is_less, larger, product, simplest, smaller
from ..padding import lengths_along
from .aten_node import AtenNode, Importer, Results
from .promotion import Number, Undecided


def _of(name: str, function: Callable[..., Any]) -> Importer:
    """A function of numbers, some of which only a run may know."""

    def importer(node: AtenNode) -> Results:
        given: list[Any] = [node.get(each) for each in node.call.arguments]
        if not all(isinstance(each, bool | int | float | Length | Undecided) for each in given):
            raise node.bad("arguments that are no numbers")
        open_ = [each for each in given if isinstance(each, Length | Undecided)]
        try:
            return _of_lengths(node, name, given, open_) if open_ else function(*given)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise node.bad(str(error)) from None

    return importer


def _of_lengths(
    node: AtenNode, name: str, given: list[Any], open_: list[Length | Undecided]
) -> int | bool | Length | Undecided:
    """A function of numbers that only a run knows."""
    lengths = [each if isinstance(each, Length) else each.length for each in open_]
    if name in LOGICAL:
        return Undecided(lengths[0])
    if name not in ON_LENGTHS or not all(isinstance(each, Length | int) for each in given):
        raise node.size_refused("a number", *lengths)
    found = ON_LENGTHS[name](*given)
    if found is None:
        return Undecided(lengths[0])
    return found if isinstance(found, bool) else simplest(found)


def _quotient(left: int | Length, right: int | Length) -> Length:
    """A quotient, rounded down."""
    if isinstance(right, int):
        if right <= 0:
            raise ValueError(f"a size divided by {right}")
        return as_length(left) // right
    exact = as_length(left).divided(right) if right.least > 0 else None
    if exact is None:
        raise ValueError("a size divided by another one that does not divide it in every run")
    return exact


def _remainder(left: int | Length, right: int | Length) -> Length:
    return as_length(left) - _quotient(left, right) * right


def _not_equal(left: int | Length, right: int | Length) -> bool | None:
    return _not(is_equal(left, right))


def _at_least(left: int | Length, right: int | Length) -> bool | None:
    return _not(is_less(left, right))


def _greater(left: int | Length, right: int | Length) -> bool | None:
    return is_less(right, left)


def _at_most(left: int | Length, right: int | Length) -> bool | None:
    return _not(is_less(right, left))


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _negative(length: int | Length) -> int | Length:
    return -length


def _same(length: int | Length) -> int | Length:
    return length


LOGICAL = ("_operator.and_", "_operator.or_", "torch.sym_not")
"""Functions of conditions. One that depends on the run makes the result depend on it."""

ON_LENGTHS: Mapping[str, Callable[..., int | bool | Length | None]] = {
    "_operator.add": operator.add,
    "_operator.sub": operator.sub,
    "_operator.mul": operator.mul,
    "_operator.floordiv": _quotient,
    "_operator.mod": _remainder,
    "_operator.neg": _negative,
    "_operator.pos": _same,
    "_operator.eq": is_equal,
    "_operator.ne": _not_equal,
    "_operator.lt": is_less,
    "_operator.ge": _at_least,
    "_operator.gt": _greater,
    "_operator.le": _at_most,
    **dict.fromkeys(("math.ceil", "math.floor", "math.trunc", "torch.sym_int"), _same),
    "torch.sym_max": larger,
    "torch.sym_min": smaller,
}
"""What functions do with numbers that only a run knows; None for a condition that depends on the
run."""


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > 64 or abs(base) > 2**63:
        raise ValueError(f"{base} to the power of {exponent}")
    return base**exponent


def _chosen(which: Number, yes: Number, no: Number) -> Number:
    return yes if which else no


def _lengths(node: AtenNode) -> list[int | Length]:
    value = node.value("self")
    return [*value.shape] if isinstance(value, Known) else lengths_along(node, value)


def _size(node: AtenNode) -> Results:
    lengths = _lengths(node)
    return lengths[node.axis(node.integer("dim"), len(lengths))]


def _stride(node: AtenNode) -> Results:
    """How far apart two elements along an axis are, in row-major order."""
    lengths = _lengths(node)
    return simplest(product(lengths[node.axis(node.integer("dim"), len(lengths)) + 1 :]))


def _item(node: AtenNode) -> Results:
    """The number in a tensor. One that depends on values needs bounds in the export."""
    value = node.value("self")
    if node.graph.known(value) is not None:
        return node.scalar(value, "self")
    (result,) = node.call.results
    low, high = node.scope.ranges.get(getattr(result, "name", ""), (None, None))
    if dtype_of(value).kind not in "iu" or prod(shape_of(value)) != 1 or high is None:
        raise node.not_constant(
            "a number without a bound",
            [value],
            "need its values, or torch._check(number <= BOUND) in the module",
        )
    node.check_table(high + 1)
    least = max(low or 0, 0)
    number = node.reshape(node.ssa(value), ())
    number = node.add(nn.MaxOp(number, node.constant(least - 1, number)))
    number = node.add(nn.MinOp(number, node.constant(high + 1, number)))
    return node.length_in(node.cast(number, i32), least, high)


def _checked(node: AtenNode) -> Results:
    """A condition of the exported program, which must hold for the sizes that are given.

    A condition on sizes that only a run knows is taken to hold.
    """
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
    **{name: _of(name, function) for name, function in FUNCTIONS.items()},
    "aten.sym_size": _size,
    "aten.sym_stride": _stride,
    "aten.sym_numel": lambda node: simplest(product(_lengths(node))),
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
