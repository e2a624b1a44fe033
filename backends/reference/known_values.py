"""The arrays of values that follow from constants alone, while a program is built."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.ir import OpResult, SSAValue

from ...dialects import nn
from ...ir.support.arrays import Array
from .run import evaluate_pure, is_evaluable

Begins = Callable[[SSAValue], Array | None]
"""The array of a value that its operation does not compute; None if it is not known."""

Closed = Callable[[SSAValue], bool]
"""Whether a value is what its operation computes."""


class KnownValues:
    """The arrays of values of nn that follow from constants alone. Each is computed once.

    Chains of operations may have any length.

    Args:
        most: larger values are not known, whatever they follow from.
        begins: the array of a value that its operation does not compute.
        is_closed: whether a value is what its operation computes.
    """

    def __init__(
        self,
        most: int,
        begins: Begins = lambda value: None,
        is_closed: Closed = lambda value: True,
    ) -> None:
        self._most = most
        self._begins = begins
        self._is_closed = is_closed
        self._found: dict[SSAValue, Array | None] = {}

    def array(self, value: SSAValue) -> Array | None:
        """The array of a value; None if it is not known, or too large."""
        found = self._found
        pending = [value]
        while pending:
            each = pending[-1]
            if each in found:
                pending.pop()
                continue
            operands = self._operands(each) if self._is_closed(each) else None
            if operands is None or any(found.get(v, v) is None for v in operands):
                found[each] = None if operands is not None else self._begins(each)
                continue
            unknown = next((v for v in operands if v not in found), None)
            if unknown is not None:
                pending.append(unknown)
                continue
            assert isinstance(each, OpResult)
            arrays = [array for v in operands if (array := found[v]) is not None]
            found[each] = evaluate_pure(each.op, arrays)[each.index]
        return found[value]

    def _operands(self, value: SSAValue) -> list[SSAValue] | None:
        """The values that an array is computed from; None if none is."""
        if not isinstance(value, OpResult):
            return None
        if prod(nn.shape_of(value)) > self._most or not is_evaluable(value.op):
            return None
        return list(value.op.operands)
