"""The workload of a codelet: everything that its price depends on, except the sizes of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any, Literal

import numpy as np

from ...dialects.combiners import MEMBERS
from ...dialects.structured import Body, Structure
from ...ir.support.number_kinds import is_floating
from ..target import Target


@dataclass(frozen=True)
class Workload:
    """One operator with given dtypes on a target. With the sizes of a cell, it has a price.

    Attributes:
        operand: the dtype of the first operand that is a number.
        result: the dtype of the first result.
        lookups: whether indices are spread evenly over the rows of a table, or all name rows of the
            priced cell.
        in_place: whether updates are written over the operand that they begin with; otherwise that
            is copied.
    """

    structure: Structure
    operand: np.dtype[Any]
    result: np.dtype[Any]
    target: Target
    lookups: Literal["spread", "together"] = "spread"
    in_place: bool = False

    @classmethod
    def of(cls, structure: Structure, dtypes: Sequence[np.dtype[Any]], target: Target) -> Workload:
        """The workload of an operator.

        Args:
            dtypes: of the operands and, last, of the results.
        """
        count = len(dtypes) - len(structure.space.results)
        return cls(structure, number_dtype(dtypes[:count]), dtypes[count], target)

    @property
    def roles(self) -> Roles | None:
        """The roles of the dimensions of a contraction; None for other operators."""
        return roles(self.structure)

    @property
    def partials(self) -> np.dtype[Any]:
        """The dtype in which a contraction accumulates."""
        return partials_dtype(self.result, self.structure.body, self.operand)

    @property
    def unchained(self) -> Workload:
        """The same workload without the chain, in the dtype that the chain begins with."""
        return replace(self, structure=self.structure.unchained, result=self.begun)

    @property
    def begun(self) -> np.dtype[Any]:
        """The dtype of the result before the chain: float32 if the chain converts it to
        integers."""
        made = self.structure.body.then and not is_floating(self.result)
        return np.dtype(np.float32) if made else self.result


@dataclass(frozen=True)
class Roles:
    """The dimensions of a contraction by their role in its prices.

    Attributes:
        field: in the first operand and the result.
        out_channels: in the second operand and the result.
        groups: in both operands and the result.
        in_channels: merged, and in both operands.
        kernel: merged, and sliding over an axis of the first operand.
    """

    field: tuple[int, ...]
    in_channels: tuple[int, ...]
    out_channels: tuple[int, ...]
    kernel: tuple[int, ...]
    groups: tuple[int, ...]


@lru_cache(maxsize=1024)
def roles(structure: Structure) -> Roles | None:
    """The roles of the dimensions of a sum of products of two tensors; None for other operators."""
    space, body = structure.space, structure.body
    if not body.is_product or space.relations:
        return None
    first, second = (access.dims() for access in space.operands[: body.function_arity])
    merged = space.of_kind("reduction")
    kept = space.of_kind("parallel", "whole")
    if not any(d in first and d in second for d in merged):
        return None
    field = tuple(d for d in kept if d not in second)
    slides = {
        d
        for axis in space.operands[0].axes
        if any(e in field for e, _ in axis.terms)
        for d, _ in axis.terms
        if d in merged
    }
    return Roles(
        field=field,
        in_channels=tuple(d for d in merged if d not in slides),
        out_channels=tuple(d for d in kept if d in second and d not in first),
        kernel=tuple(d for d in merged if d in slides),
        groups=tuple(d for d in kept if d in first and d in second),
    )


def macs_of(structure: Structure) -> int:
    """The multiplications and additions of a sum of products; 0 for other bodies.

    An index of a relation names one row, so the dimension of the rows does not count.
    """
    space, body = structure.space, structure.body
    related = bool(space.relations) and body.sums_products
    if not related and not body.is_packed_product and roles(structure) is None:
        return 0
    rows = {d for relation in space.relations for d, _ in relation.axis.terms}
    return prod(size for d, size in enumerate(space.sizes) if d not in rows)


def partials_dtype(
    result: np.dtype[Any], body: Body | None = None, operand: np.dtype[Any] | None = None
) -> np.dtype[Any]:
    """The dtype in which a contraction accumulates.

    It is float32 for narrower floats, unless the body allows narrow sums, and for integers that a
    chain computes from floats. Narrow sums have the dtype of the operand, if that is narrower;
    products of 8-bit floats are added up in float16.
    """
    if body is not None and body.is_scaled_product:
        return np.dtype(np.float16)
    if body is not None and body.narrow and operand is not None and operand.itemsize < 4:
        return operand
    if body is not None and body.then and not is_floating(result):
        return np.dtype(np.float32)
    return np.dtype(np.float32) if is_floating(result) and result.itemsize < 4 else result


def member_dtypes(
    structure: Structure, operands: Sequence[np.dtype[Any]]
) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the members that a structure leaves as partials; () without members.

    Args:
        operands: the dtypes of its operands.
    """
    body = structure.body
    kinds = body.member_kinds
    if body.function == MEMBERS:
        return tuple(operands[: len(kinds)])
    element = number_dtype(operands[: body.function_arity]) if kinds else np.dtype(np.float32)
    dtypes = {
        "element": element,
        "index": np.dtype(np.int32),
        "wide": partials_dtype(element),
    }
    return tuple(dtypes[kind] for kind in kinds)


def left_dtypes(
    structure: Structure, operands: Sequence[np.dtype[Any]], result: np.dtype[Any]
) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the partials: one per member, or that of a result's sums."""
    body = structure.body
    operand = number_dtype(operands[: body.function_arity])
    return member_dtypes(structure, operands) or (partials_dtype(result, body, operand),)


def number_dtype(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The dtype of the first operand that is not boolean, as the condition of a select is.

    Without operands it is int32, in which coordinates are counted.
    """
    numbers = (d for d in dtypes if d != np.bool_)
    return next(numbers, dtypes[0] if dtypes else np.dtype(np.int32))
