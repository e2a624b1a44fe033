"""The types of values above nn: tensors of what a tile can hold, or of complex numbers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ComplexType, TensorType
from xdsl.ir import Attribute, SSAValue

from ..ir.element_types import dense_dtype
from ..ir.support.number_kinds import bit_width
from ..ir.upstream import VerifyException
from .nn import base
from .nn.base import tensor
from .tensor_limits import check_tensor_limits

__all__ = [
    "bits_of",
    "dtype_of_elements",
    "element_of",
    "is_complex",
    "part_type",
    "shape_of",
    "tensor",
    "tensor_of",
]


def is_complex(value: SSAValue | Attribute) -> bool:
    """Whether a value is a tensor of complex numbers."""
    given = value.type if isinstance(value, SSAValue) else value
    return isinstance(given, TensorType) and isinstance(given.element_type, ComplexType)


def part_type(value: SSAValue | Attribute) -> TensorType[Attribute]:
    """The type of the real parts of a tensor of complex numbers, and of the imaginary ones."""
    found = tensor_of(value)
    return tensor(found.get_shape(), cast("ComplexType[Any]", found.element_type).element_type)


def tensor_of(value: SSAValue | Attribute) -> TensorType[Attribute]:
    """The type of a value that must be a tensor of static shape.

    Raises VerifyException if it is anything else.
    """
    given = value.type if isinstance(value, SSAValue) else value
    if not is_complex(given):
        return base.tensor_of(given)
    type_ = cast("TensorType[Attribute]", given)
    shape = tuple(type_.get_shape())
    if min(shape, default=0) < 0:
        raise VerifyException(f"{type_}: axis {shape.index(min(shape))} has no size")
    try:
        check_tensor_limits(shape, dtype_of_elements(type_).itemsize)
    except ValueError as error:
        raise VerifyException(str(error)) from None
    return tensor(shape, type_.element_type)


def shape_of(value: SSAValue | Attribute) -> tuple[int, ...]:
    """The shape of a tensor."""
    if not is_complex(value):
        return base.shape_of(value)
    return tuple(tensor_of(value).get_shape())


def element_of(value: SSAValue | Attribute) -> Attribute:
    """The element type of a tensor."""
    return tensor_of(value).element_type


def dtype_of_elements(value: SSAValue | Attribute) -> np.dtype[Any]:
    """The dtype of a tensor. Raises ValueError for elements that no dtype holds."""
    given = value.type if isinstance(value, SSAValue) else value
    return dense_dtype(cast("TensorType[Attribute]", given).element_type)


def bits_of(value: SSAValue | Attribute) -> int:
    """The bits of an element of a tensor."""
    dtype = dtype_of_elements(value)
    return 8 * dtype.itemsize if is_complex(value) else bit_width(dtype)
