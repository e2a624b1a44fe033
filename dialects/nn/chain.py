"""Structured operations of nn, and the functions that may be computed together with them.

Whether an operation is computed together with others is a decision: see `group`. It changes no
meaning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation

from ...ir.geometry.space import AccessMap, AxisMap
from ...ir.xdsl.cached_by_form import cached_by_form
from ..structured import Structure, Structured
from .base import PureTensorOp, Shape, element_of

CHAIN = " attr-dict `:` functional-type(operands, results)"
"""The end of the assembly format of every structured operation."""


class ChainableOp(PureTensorOp, Structured, ABC):
    """An operation with a space and a body, in which functions of its result may be computed."""

    @abstractmethod
    def core_structure(self) -> Structure:
        """The space and body, from types, properties and attributes alone."""

    @final
    @cached_by_form
    def structure(self) -> Structure:
        """The space and body."""
        return self.core_structure()


def can_chain(op: Operation) -> bool:
    """Whether functions of an operation's result may be computed in the operation itself."""
    return isinstance(op, ChainableOp) and isinstance(element_of(op.result), AnyFloat)


def extra_map(shape: Shape, result_shape: Shape, result: AccessMap) -> AccessMap:
    """The map of a further operand: the result's axes without those that it broadcasts over.

    The result's map may view one axis of the tensor as several, such as (group, channel).
    """
    axes: list[AxisMap] = []
    skip = len(result_shape) - len(shape)
    for i, viewed in enumerate(_axes_of(result_shape, result)):
        if i >= skip:
            axes += viewed if shape[i - skip] != 1 else (AxisMap(1),)
    return AccessMap(tuple(axes))


def _axes_of(shape: Shape, access: AccessMap) -> list[tuple[AxisMap, ...]]:
    """The axes of a map that make up each axis of a tensor."""
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
