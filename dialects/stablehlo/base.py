"""What all operations of stablehlo share."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence
from typing import Any, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def, var_operand_def
from xdsl.traits import IsTerminator, Pure

from ...ir.upstream import VerifyException
from ..dense import array_of_dense
from ..source_types import element_of, shape_of
from ..tensor_limits import check_tensor_limits

INTEGERS = DenseArrayBase.constr(i64)
"""A property that is a list of integers, such as array<i64: 1, 2>."""

FLAGS = DenseArrayBase.constr(i1)
"""A property that is a list of truth values, such as array<i1: true, false>."""

INTEGER = IntegerAttr.constr(i64)
"""A property that is an integer."""


def integers_of(attribute: DenseArrayBase[IntegerType] | None, default: Sequence[int]) -> Any:
    """The values of a property that is a list of integers, as a tuple.

    Args:
        default: the values if the property is absent.
    """
    return tuple(default) if attribute is None else tuple(map(int, attribute.get_values()))


def pairs_of(attribute: DenseIntOrFPElementsAttr | None, count: int) -> tuple[tuple[int, int], ...]:
    """The pairs of numbers in a property that is a tensor of two columns.

    Raises VerifyException for another shape.

    Args:
        count: the number of pairs; all are (0, 0) if the property is absent.
    """
    if attribute is None:
        return ((0, 0),) * count
    if tuple(attribute.get_shape()) != (count, 2):
        raise VerifyException(f"padding of shape {list(attribute.get_shape())}; need [{count}, 2]")
    return tuple((int(low), int(high)) for low, high in array_of_dense(attribute))


def window_places(
    size: int,
    window: int,
    stride: int,
    pads: tuple[int, int],
    *,
    dilation: int = 1,
    reach: int = 1,
) -> int:
    """The number of places of a window that moves along an axis.

    Args:
        size, window: the elements along the axis, and under the window.
        stride: from one place to the next.
        pads: the elements that are added before and after the axis.
        dilation: from one element of the axis to the next, with added elements between.
        reach: from one element under the window to the next.
    """
    held = max(size - 1, 0) * dilation + min(size, 1) + sum(pads)
    span = max(window - 1, 0) * reach + min(window, 1)
    return 0 if span > held else (held - span) // stride + 1


class StablehloOp(IRDLOperation, ABC):
    """An operation on tensors of static shapes, whose results have the types that it names."""

    def verify_(self) -> None:
        """Check that each operand and result is a tensor of static shape, or no tensor at all."""
        for value in (*self.operands, *self.results):
            if isinstance(value.type, TensorType):
                _ = _checked(cast("TensorType[Attribute]", value.type))


def _checked(type_: TensorType[Attribute]) -> None:
    shape = tuple(type_.get_shape())
    unknown = [i for i, n in enumerate(shape) if n < 0]
    if unknown:
        raise VerifyException(f"{type_}: axis {unknown[0]} has no size; need static shapes")
    try:
        check_tensor_limits(shape, 1)
    except ValueError as error:
        raise VerifyException(str(error)) from None


class PureOp(StablehloOp, ABC):
    """An operation that only computes its results."""

    traits = traits_def(Pure())


def need_shape(what: str, value: SSAValue, shape: Sequence[int]) -> None:
    """Raise VerifyException unless a tensor has a shape."""
    if shape_of(value) != tuple(shape):
        raise VerifyException(f"{what} has shape {list(shape_of(value))}; need {list(shape)}")


def need_element(what: str, value: SSAValue, element: Attribute) -> None:
    """Raise VerifyException unless a tensor's elements have a type."""
    if element_of(value) != element:
        raise VerifyException(f"{what} has elements {element_of(value)}; need {element}")


def need_same_element(what: str, value: SSAValue, like: SSAValue) -> None:
    """Raise VerifyException unless a tensor's elements have the type of another's."""
    need_element(what, value, element_of(like))


def need_integers(what: str, value: SSAValue) -> None:
    """Raise VerifyException unless a tensor's elements are integers."""
    element = element_of(value)
    if not isinstance(element, IntegerType | IndexType) or element == i1:
        raise VerifyException(f"{what} has elements {element}; need integers")


def need_axes(what: str, axes: Iterable[int], rank: int) -> None:
    """Raise VerifyException unless all axes exist, each at most once."""
    found = list(axes)
    if len(set(found)) != len(found) or any(not 0 <= each < rank for each in found):
        raise VerifyException(f"{what} {found}; need axes of 0..{rank - 1}, each at most once")


def need_length(what: str, values: Sequence[object], length: int) -> None:
    """Raise VerifyException unless a list has a length."""
    if len(values) != length:
        raise VerifyException(f"{what} has {len(values)} entries; need {length}")


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """End a region of an operation, with its results.

    Example: "stablehlo.return"(%0) : (tensor<f32>) -> ()

    Attributes:
        values: the results of the region.
    """

    name = "stablehlo.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


NumberArray = NDArray[Any]
"""An array of numbers of any type."""
