"""The arrays of MLIR's dense attributes, and dense attributes of arrays."""

from __future__ import annotations

from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute

from ..ir.element_types import dense_dtype, dense_element


def array_of_dense(attribute: DenseIntOrFPElementsAttr) -> NDArray[Any]:
    """The array of a dense attribute, bit by bit. Arrays that repeat one element share it.

    Raises ValueError for element types that no tile can hold.
    """
    type_ = cast("TensorType[Attribute]", attribute.type)
    dtype, data = dense_dtype(type_.element_type), attribute.data.data
    shape = tuple(type_.get_shape())
    if dtype == np.bool_:
        # xDSL keeps true as 0xff.
        found = np.frombuffer(data, np.uint8) != 0
    elif isinstance(type_.element_type, IntegerType):
        # xDSL extends integers of less than 8 bits by their sign, as casts of ml_dtypes do.
        found = np.frombuffer(data, np.int8 if dtype.itemsize == 1 else dtype).astype(dtype)
    else:
        found = np.frombuffer(data, dtype)
    # An element that is repeated very often is held once.
    return found.reshape(shape) if found.size == prod(shape) else np.broadcast_to(found, shape)


def dense_of_array(array: NDArray[Any]) -> DenseIntOrFPElementsAttr:
    """A dense attribute of the same bits. Raises ValueError for dtypes that no tile can hold."""
    type_ = TensorType(dense_element(array.dtype), array.shape)
    stored = array.astype(np.uint8) * 255 if array.dtype == np.bool_ else array
    data = np.ascontiguousarray(stored).tobytes()
    return DenseIntOrFPElementsAttr(cast("Any", type_), BytesAttr(data))
