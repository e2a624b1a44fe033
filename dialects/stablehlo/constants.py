"""Operations without operands: constants and counted numbers."""

from __future__ import annotations

from typing import Any, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, prop_def, result_def

from ...ir.blob import Blob
from ...ir.element_types import dense_element
from ...ir.upstream import VerifyException
from ..blob_attr import BlobAttr
from ..dense import array_of_dense, dense_of_array
from ..source_types import dtype_of_elements, shape_of, tensor
from .base import INTEGER, PureOp, need_axes

MOST_NUMBERS = 64
"""The most elements of a constant that text shows as numbers. Larger constants are blobs."""


@irdl_op_definition
class ConstantOp(PureOp):
    """An array that never changes.

    Example: %0 = "stablehlo.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () ->
    tensor<4xf32>

    Attributes:
        value: the array, of the result's shape and elements: a dense<...>, or a blob if it is
            large.
        output: the array.
    """

    name = "stablehlo.constant"
    value = prop_def(Attribute)
    output = result_def(TensorType)

    def __init__(self, array: NDArray[Any]):
        type_ = tensor(array.shape, dense_element(array.dtype))
        if array.size > MOST_NUMBERS:
            value: Attribute = BlobAttr(Blob(array))
        else:
            value = dense_of_array(array)
        super().__init__(properties={"value": value}, result_types=[type_])

    @property
    def array(self) -> NDArray[Any]:
        """The array, read-only."""
        value = self.value
        if isinstance(value, BlobAttr):
            return value.array
        assert isinstance(value, DenseIntOrFPElementsAttr)
        return array_of_dense(cast("DenseIntOrFPElementsAttr[Any]", value))

    def verify_(self) -> None:
        """Check also that the array has the result's type."""
        super().verify_()
        if not isinstance(self.value, BlobAttr | DenseIntOrFPElementsAttr):
            raise VerifyException(f"value {self.value}; need dense<...> or a blob")
        try:
            array, dtype = self.array, dtype_of_elements(self.output)
        except ValueError as error:
            raise VerifyException(str(error)) from None
        if array.shape != shape_of(self.output) or array.dtype != dtype:
            raise VerifyException(
                f"value of {array.dtype.name}{list(array.shape)}; the result is {self.output.type}"
            )


@irdl_op_definition
class IotaOp(PureOp):
    """Each element's place along an axis, counted from 0.

    Example: %0 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>

    Attributes:
        iota_dimension: the axis.
        output: of any numbers.
    """

    name = "stablehlo.iota"
    iota_dimension = prop_def(INTEGER)
    output = result_def(TensorType)

    def __init__(self, type_: TensorType[Attribute], axis: int):
        super().__init__(properties={"iota_dimension": IntegerAttr(axis, 64)}, result_types=[type_])

    @property
    def axis(self) -> int:
        """The axis."""
        return self.iota_dimension.value.data

    def verify_(self) -> None:
        """Check also that there is such an axis."""
        super().verify_()
        need_axes("iota_dimension", [self.axis], len(shape_of(self.output)))


CONSTANTS = (ConstantOp, IotaOp)
"""All of them."""
