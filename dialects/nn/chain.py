"""Structured operations of nn, and the functions that may be computed together with them.

Whether an operation is computed together with others is a decision: see `group`. It changes no
meaning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from math import prod
from typing import final

from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.ir import Attribute, Operation

from ...ir.geometry.space import AccessMap, AxisMap
from ...ir.xdsl.cached_by_form import cached_by_form
from ..structured import Structure, Structured
from .base import PureTensorOp, Shape, element_of, shape_of, tensor, wide_element

CHAIN = " attr-dict `:` functional-type(operands, results)"
"""The end of the assembly format of every structured operation."""


class Followed(Structured, ABC):
    """A structured operation: further functions of its result may be computed together with it."""

    @property
    def is_of_one_type(self) -> bool:
        """Whether the result has the type that the body computes in, so the operation is not a
        cast.
        """
        return True


class ChainableOp(PureTensorOp, Followed, ABC):
    """An operation with one result whose type and structure follow from its definition.

    The result may also be f32 where narrower floats follow. It is then not rounded.
    """

    @abstractmethod
    def core_structure(self) -> Structure:
        """The space and body, from types, properties and attributes alone."""

    @final
    @cached_by_form
    def structure(self) -> Structure:
        """The space and body."""
        return self.core_structure()

    def _allowed_results(
        self, inferred: TensorType[Attribute]
    ) -> tuple[TensorType[Attribute], ...]:
        wide = wide_element(inferred.element_type)
        return (inferred, tensor(shape_of(inferred), wide))


def can_chain(op: Operation) -> bool:
    """Whether functions of an operation's result may be computed together with the operation."""
    if not isinstance(op, Followed) or len(op.results) != 1:
        return False
    return op.is_of_one_type and isinstance(element_of(op.results[0]), AnyFloat)


def composed(access: AccessMap, own: AccessMap, shape: Shape, result: AccessMap) -> AccessMap:
    """The map of a further operand, over the dimensions of the operation that its reader follows.

    Args:
        access, own: the maps of the operand and of the reader's result, over the reader's own
            dimensions.
        shape: the shape of the reader's result.
        result: the map of the result of the operation that is followed, which may view one axis of
            the tensor as several, such as (group, channel).
    """
    viewed = _axes_of(shape, result)
    of_dim = {d: viewed[i] for i, axis in enumerate(own.axes) for d, _ in axis.terms}
    axes: list[AxisMap] = []
    for axis in access.axes:
        own_parts = of_dim.get(axis.terms[0][0], ()) if axis.terms else ()
        is_dim = axis.terms and axis == AxisMap(axis.size, ((axis.terms[0][0], 1),))
        if is_dim and prod(each.size for each in own_parts) == axis.size:
            axes += own_parts
            continue
        terms: dict[int, int] = {}
        for d, coefficient in axis.terms:
            step = coefficient
            for part in reversed(of_dim.get(d, ())):
                for e, c in part.terms:
                    terms[e] = terms.get(e, 0) + step * c
                step *= part.size
        kept = tuple((e, c) for e, c in terms.items() if c)
        axes.append(replace(axis, terms=kept))
    return AccessMap(tuple(axes), access.fill)


def _axes_of(shape: Shape, access: AccessMap) -> list[tuple[AxisMap, ...]]:
    """The axes of a map, grouped by the axis of the tensor that they make up."""
    groups: list[tuple[AxisMap, ...]] = []
    first = 0
    for n in shape:
        last, size = first, 1
        while last == first or size != n:
            size *= access.axes[last].size
            last += 1
        groups.append(access.axes[first:last])
        first = last
    return groups
