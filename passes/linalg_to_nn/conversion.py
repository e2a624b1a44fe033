"""The program of nn while it is made of MLIR's dialects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import IndexType, TensorType, i64
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.refusals import ThoroughConversion, Uncovered


def element_in_nn(element: Attribute) -> Attribute:
    """The element type of nn for one of MLIR: an index is an i64.

    Raises Uncovered for a type that no tile can hold.
    """
    if isinstance(element, IndexType):
        return i64
    try:
        numpy_dtype(element)
    except ValueError as error:
        raise Uncovered(str(error)) from None
    return element


def type_in_nn(type_: Attribute) -> TensorType[Attribute]:
    """The tensor type of nn for a tensor or a number of MLIR. A number is a tensor without axes.

    Raises Uncovered for any other type, and for sizes that are not known.
    """
    if not isinstance(type_, TensorType):
        return nn.tensor((), element_in_nn(type_))
    found = cast("TensorType[Attribute]", type_)
    shape = tuple(found.get_shape())
    if min(shape, default=0) < 0:
        raise Uncovered(f"{type_}: an axis has no size; need static shapes")
    return nn.tensor(shape, element_in_nn(found.element_type))


class ToNn(ThoroughConversion):
    """A program of nn, while it is made of MLIR's dialects.

    Attributes:
        values: the new value of each old one.
        unset: the old tensors whose elements nothing has set yet.
        whole: the integers that old values are, as far as they are known.
    """

    def __init__(self, patterns: Any) -> None:
        super().__init__(patterns, "nn")
        self.values: dict[SSAValue, SSAValue] = {}
        self.unset: set[SSAValue] = set()
        self.whole: dict[SSAValue, int] = {}

    def value(self, old: SSAValue) -> SSAValue:
        """The new value of an old one. A tensor that nothing has set is zeros.

        Raises Uncovered for a value without one.
        """
        if old not in self.values:
            if old not in self.unset:
                raise Uncovered("reads a value that has no tensor in nn")
            type_ = type_in_nn(old.type)
            self.values[old] = self.filled(0, type_)
        return self.values[old]

    def known(self, old: SSAValue) -> int:
        """The integer that an old value is. Raises Uncovered if it is not known."""
        if old not in self.whole:
            raise Uncovered("an offset, a size or a step is not known; need constants")
        return self.whole[old]

    def emit(self, op: Operation) -> SSAValue:
        """Add an operation of nn, and return its first result."""
        return self.add(op, op.name.rpartition(".")[2]).results[0]

    def number(self, value: float | bool | int, element: Attribute) -> SSAValue:
        """A constant without axes. Raises Uncovered for an integer of more than 64 bits."""
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
            raise Uncovered("an integer has more than 64 bits")
        return self.emit(nn.ConstantOp(np.array(value).astype(numpy_dtype(element))))

    def filled(self, value: float | bool | int, type_: TensorType[Attribute]) -> SSAValue:
        """A tensor that repeats one number."""
        return self.emit(nn.ExpandOp(self.number(value, type_.element_type), type_.get_shape()))

    def same(self, old: Operation, make: Callable[[SSAValue], SSAValue]) -> None:
        """Convert an operation of one operand and one result by a function of the operand."""
        self.values[old.results[0]] = make(self.value(old.operands[0]))


def number_that_fills(value: SSAValue) -> float | int | bool | None:
    """The number that a value of nn repeats, if it is a constant; None if it is none."""
    while isinstance(value, OpResult):
        op = value.op
        if isinstance(op, nn.ExpandOp | nn.ReshapeOp):
            value = op.operand
            continue
        if isinstance(op, nn.ConstantOp) and op.value.array.size:
            array = op.value.array
            repeats = array.size == 1 or op.value.data.is_splat
            return array[(0,) * array.ndim].item() if repeats else None
        return None
    assert isinstance(value, BlockArgument)
    return None
