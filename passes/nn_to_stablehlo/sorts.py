"""The region of stablehlo.sort that orders elements as nn does."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import AnyFloat, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import nn, stablehlo
from ...dialects.along import Along
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import is_unsigned
from ..exporting.terms import Term
from .numbers import Numbers, constant


class _Region:
    """A block that operations are added to."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def emit(self, op: Operation) -> SSAValue:
        """Add an operation, and return its first result."""
        self._block.add_op(op)
        return op.results[0]

    def known(self, array: NDArray[Any]) -> SSAValue:
        """A constant. No region of a sort reads a value of outside."""
        return self.emit(constant(array))


def comparator(elements: Sequence[Attribute], along: Along) -> Region:
    """Whether one element of the first tensor comes before another.

    Args:
        elements: of all tensors.
    """
    body = Block(arg_types=[nn.tensor((), each) for each in elements for _ in range(2)])
    first = elements[0]
    to = Numbers((), _Region(body))
    left, right = (_comparable(to, Term(each, first)) for each in body.args[:2])
    kind = "SIGNED"
    if isinstance(first, AnyFloat):
        kind = "TOTALORDER"
    elif first == i1 or is_unsigned(numpy_dtype(first)):
        kind = "UNSIGNED"
    made = stablehlo.CompareOp.build(
        operands=[left.value, right.value],
        result_types=[nn.tensor((), i1)],
        properties={
            "comparison_direction": stablehlo.ComparisonDirectionAttr(
                "GT" if along.reverse else "LT"
            ),
            "compare_type": stablehlo.ComparisonTypeAttr(kind),
        },
    )
    body.add_ops([made, stablehlo.ReturnOp.build(operands=[[made.results[0]]])])
    return Region(body)


def _comparable(to: Numbers, term: Term) -> Term:
    """One zero in place of both, and one NaN in place of all: the total order has places for each.

    The largest of all is this NaN.
    """
    if not term.is_float:
        return term
    none = to.like(0.0, term)
    value = to.select(to.compare("equal", term, none), none, term)
    return to.select(to.compare("not_equal", term, term), to.like(nan, term), value)
