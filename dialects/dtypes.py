"""Element types of the IR as NumPy dtypes, and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

_TYPES: dict[np.dtype[Any], Attribute] = {
    np.dtype(np.float16): Float16Type(),
    np.dtype(np.float32): Float32Type(),
    np.dtype(np.float64): Float64Type(),
    np.dtype(ml_dtypes.bfloat16): BFloat16Type(),
    np.dtype(np.bool_): IntegerType(1),
    **{np.dtype(f"i{n}"): IntegerType(8 * n) for n in (1, 2, 4, 8)},
    **{np.dtype(f"u{n}"): IntegerType(8 * n, Signedness.UNSIGNED) for n in (1, 2, 4, 8)},
}
_DTYPES = {attribute: dtype for dtype, attribute in _TYPES.items()}


def numpy_dtype(element_type: Attribute) -> np.dtype[Any]:
    """The dtype that holds an element type. Raises ValueError for types that no tile can hold."""
    if element_type not in _DTYPES:
        known = ", ".join(sorted(map(str, _DTYPES)))
        raise ValueError(f"element type {element_type}; need one of {known}")
    return _DTYPES[element_type]


def element_type(dtype: np.dtype[Any]) -> Attribute:
    """The element type of a dtype. Raises ValueError for dtypes that no tile can hold."""
    if dtype not in _TYPES:
        raise ValueError(f"dtype {dtype}; need one of {', '.join(sorted(map(str, _TYPES)))}")
    return _TYPES[dtype]
