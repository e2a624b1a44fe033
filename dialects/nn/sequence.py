"""Operations along one axis whose results depend on all of its elements: scans and sorts.

The axis is a whole dimension of the iteration space: no plan cuts it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import IntegerType, StringAttr, TensorType, UnitAttr, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, traits_def
from xdsl.traits import Pure

from ...ir.geometry.space import AccessMap, Dim, Space
from ...ir.unmet import Unmet, need_one_of
from ...ir.upstream import VerifyException
from ..along import SCANS, Along
from ..structured import Body, Structure, Structured
from .base import (
    INTEGER,
    PureTensorOp,
    axis_map,
    element_of,
    flags,
    integer,
    normal_axis,
    shape_of,
    tensor,
)
from .chain import CHAIN, ChainableOp


def _check_axis(operand: SSAValue, axis: int) -> None:
    rank = len(shape_of(operand))
    if not 0 <= axis < rank:
        raise Unmet(f"axis {axis} of rank {rank}; need 0..{rank - 1}", "axis")


def _structure(operand: SSAValue, axis: int, along: Along) -> Structure:
    """One dimension per axis of the operand, of which the given one is whole."""
    shape = shape_of(operand)
    dims = tuple(Dim(f"d{i}", n, "whole" if i == axis else "parallel") for i, n in enumerate(shape))
    every = AccessMap(tuple(axis_map(n, dims, [(i, 1)]) for i, n in enumerate(shape)))
    return Structure(Space(dims, (every,), (every,)), Body("identity", along=along))


class _AlongAxis(ChainableOp, ABC):
    """An operation along an axis of its operand, with a result of the operand's type."""

    operand = operand_def(TensorType)
    axis = prop_def(INTEGER)

    @property
    @abstractmethod
    def along(self) -> Along:
        """The scan or sort along the axis."""

    def infer(self) -> TensorType[Attribute]:
        """The operand's type."""
        _check_axis(self.operand, self.axis.value.data)
        return tensor(shape_of(self.operand), element_of(self.operand))

    def core_structure(self) -> Structure:
        """One dimension per axis of the operand; the given one is whole."""
        return _structure(self.operand, self.axis.value.data, self.along)


@irdl_op_definition
class ScanOp(_AlongAxis):
    """Merge all elements along an axis up to each one of them.

    Example: %1 = nn.scan "sum" %0 axis 1 exclusive : (tensor<2x8xf32>) -> tensor<2x8xf32>

    Attributes:
        combiner: sum, max, min or prod.
        operand: of any shape, of numbers.
        axis: counted from 0.
        exclusive: each element leaves out itself, and the first one is the combiner's identity.
        reverse: from the last element to the first.
    """

    name = "nn.scan"
    operand = operand_def(TensorType)
    combiner = prop_def(StringAttr)
    axis = prop_def(INTEGER)
    exclusive = opt_prop_def(UnitAttr)
    reverse = opt_prop_def(UnitAttr)
    assembly_format = (
        "$combiner $operand `axis` $axis (`exclusive` $exclusive^)? (`reverse` $reverse^)?" + CHAIN
    )

    def __init__(
        self,
        operand: SSAValue,
        combiner: str,
        axis: int,
        *,
        exclusive: bool = False,
        reverse: bool = False,
    ):
        axis = normal_axis(axis, len(shape_of(operand)))
        properties = {"combiner": StringAttr(combiner), "axis": integer(axis)}
        super().__init__([operand], {**properties, **flags(exclusive=exclusive, reverse=reverse)})

    @property
    def along(self) -> Along:
        """The scan, from the properties."""
        return Along(self.combiner.data, self.reverse is not None, self.exclusive is not None)

    def infer(self) -> TensorType[Attribute]:
        """The operand's type."""
        need_one_of("combiner", self.combiner.data, SCANS)
        element = element_of(self.operand)
        if isinstance(element, IntegerType) and element.width.data == 1:
            raise VerifyException(f"a scan of {element}; need numbers")
        return super().infer()


@irdl_op_definition
class SortOp(_AlongAxis):
    """The elements along an axis in order.

    Example: %1 = nn.sort %0 axis 1 descending : (tensor<2x8xf32>) -> tensor<2x8xf32>

    NaN counts as larger than any number. Equal elements keep their order.

    Attributes:
        operand: of any shape.
        axis: counted from 0.
        descending: from the largest to the smallest.
    """

    name = "nn.sort"
    operand = operand_def(TensorType)
    axis = prop_def(INTEGER)
    descending = opt_prop_def(UnitAttr)
    assembly_format = "$operand `axis` $axis (`descending` $descending^)?" + CHAIN

    def __init__(self, operand: SSAValue, axis: int, *, descending: bool = False):
        axis = normal_axis(axis, len(shape_of(operand)))
        super().__init__([operand], {"axis": integer(axis), **flags(descending=descending)})

    @property
    def along(self) -> Along:
        """The sort, from the properties."""
        return Along("sort", self.descending is not None)


@irdl_op_definition
class SortIndicesOp(PureTensorOp, Structured):
    """The index along an axis of each element in order, as i32.

    Example: %1 = nn.sort_indices %0 axis 1 : (tensor<2x8xf32>) -> tensor<2x8xi32>

    NaN counts as larger than any number. Of equal elements, the first one comes first.

    Attributes:
        operand: of any shape.
        axis: counted from 0.
        descending: from the largest to the smallest.
    """

    name = "nn.sort_indices"
    operand = operand_def(TensorType)
    axis = prop_def(INTEGER)
    descending = opt_prop_def(UnitAttr)
    assembly_format = (
        "$operand `axis` $axis (`descending` $descending^)? attr-dict"
        " `:` functional-type(operands, results)"
    )
    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue, axis: int, *, descending: bool = False):
        axis = normal_axis(axis, len(shape_of(operand)))
        properties = {"axis": integer(axis), **flags(descending=descending)}
        super().__init__(operand, properties=properties)

    def infer(self) -> TensorType[Attribute]:
        """The operand's shape, of i32."""
        _check_axis(self.operand, self.axis.value.data)
        return tensor(shape_of(self.operand), i32)

    def structure(self) -> Structure:
        """One dimension per axis of the operand; the given one is whole."""
        along = Along("sort_indices", self.descending is not None)
        return _structure(self.operand, self.axis.value.data, along)
