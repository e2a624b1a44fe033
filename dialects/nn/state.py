"""State with its loads and stores, and constants."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure, SymbolOpInterface

from ...ir.blob import Blob
from ...ir.upstream import VerifyException
from ..blob_attr import BlobAttr
from ..dtypes import element_type, numpy_dtype
from ..home import verify_home
from .base import tensor, tensor_of


def tensor_type_of(array: NDArray[Any]) -> TensorType[Attribute]:
    """The tensor type of an array."""
    return tensor(array.shape, element_type(array.dtype))


def _as_attribute(array: NDArray[Any] | Blob | BlobAttr) -> BlobAttr:
    if isinstance(array, BlobAttr):
        return array
    return BlobAttr(array if isinstance(array, Blob) else Blob(array))


def _check_blob(blob: BlobAttr, type_: Attribute) -> None:
    wanted = tensor_of(type_)
    array = blob.array
    if array.shape != tuple(wanted.get_shape()) or array.dtype != numpy_dtype(wanted.element_type):
        raise VerifyException(
            f"blob of {array.dtype.name}{list(array.shape)}; the type says {wanted}"
        )


@irdl_op_definition
class StateOp(IRDLOperation):
    """A tensor that lasts from one run to the next, such as a weight, with its first value.

    Example: nn.state @conv1.weight : tensor<96x3x11x11xf32> = <"39296d74...">

    Attributes may say where it has to lie (see dialects/home.py).

    Attributes:
        sym_name: its name in loads and stores.
        elements: its shape and element type.
        value: its value before the first run, of that type.
    """

    name = "nn.state"
    sym_name = prop_def(SymbolNameConstraint())
    elements = prop_def(TensorType)
    value = prop_def(BlobAttr)
    assembly_format = "$sym_name `:` $elements `=` $value attr-dict"
    traits = traits_def(SymbolOpInterface())

    def __init__(self, symbol: str, array: NDArray[Any] | Blob | BlobAttr):
        value = _as_attribute(array)
        super().__init__(
            properties={
                "sym_name": StringAttr(symbol),
                "elements": tensor_type_of(value.array),
                "value": value,
            }
        )

    def verify_(self) -> None:
        """Check that the blob has the type's shape and elements, and that a home has as many
        elements.
        """
        _check_blob(self.value, self.elements)
        name = f"@{self.sym_name.data}"
        verify_home(self, name, self.elements.get_shape(), may_be_remote=True)


@irdl_op_definition
class LoadOp(IRDLOperation):
    """The value that a state has when the run begins.

    Example: %w = nn.load @w : tensor<4xf32>

    Attributes:
        state: an nn.state of the result's type.
    """

    name = "nn.load"
    state = prop_def(SymbolRefAttr)
    result = result_def(TensorType)
    assembly_format = "$state attr-dict `:` type($result)"
    traits = traits_def(MemoryReadEffect())

    def __init__(self, symbol: str, type_: TensorType[Attribute]):
        super().__init__(properties={"state": SymbolRefAttr(symbol)}, result_types=[type_])


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Set the value that a state has at the beginning of the next run.

    Example: nn.store %0, @counter : tensor<1xi32>

    Attributes:
        stored: that value.
        state: an nn.state of its type.
    """

    name = "nn.store"
    stored = operand_def(TensorType)
    state = prop_def(SymbolRefAttr)
    assembly_format = "$stored `,` $state attr-dict `:` type($stored)"
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, stored: SSAValue, symbol: str):
        super().__init__(operands=[stored], properties={"state": SymbolRefAttr(symbol)})


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """An array that never changes.

    Example: %0 = nn.constant <"8f14..."> : tensor<4xf32>

    Attributes:
        value: the array, of the result's shape and elements.
    """

    name = "nn.constant"
    value = prop_def(BlobAttr)
    result = result_def(TensorType)
    assembly_format = "$value attr-dict `:` type($result)"
    traits = traits_def(Pure())

    def __init__(self, array: NDArray[Any] | Blob | BlobAttr):
        value = _as_attribute(array)
        super().__init__(properties={"value": value}, result_types=[tensor_type_of(value.array)])

    def verify_(self) -> None:
        """Check that the blob has the type's shape and elements, and that a home has as many
        elements.
        """
        _check_blob(self.value, self.result.type)
        verify_home(self, self.name, self.result.type.get_shape())
