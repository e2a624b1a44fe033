"""Element types of the IR as NumPy dtypes, and back: the one table of what tiles can hold.

A tile holds each element in whole bytes: those of less than 8 bits take one byte each.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float4E2M1FNType,
    Float6E2M3FNType,
    Float6E3M2FNType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
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
    np.dtype(ml_dtypes.int4): IntegerType(4),
    np.dtype(ml_dtypes.uint4): IntegerType(4, Signedness.UNSIGNED),
    np.dtype(ml_dtypes.int2): IntegerType(2),
    np.dtype(ml_dtypes.uint2): IntegerType(2, Signedness.UNSIGNED),
    np.dtype(ml_dtypes.float8_e4m3fn): Float8E4M3FNType(),
    np.dtype(ml_dtypes.float8_e4m3fnuz): Float8E4M3FNUZType(),
    np.dtype(ml_dtypes.float8_e5m2): Float8E5M2Type(),
    np.dtype(ml_dtypes.float8_e5m2fnuz): Float8E5M2FNUZType(),
    np.dtype(ml_dtypes.float8_e8m0fnu): Float8E8M0FNUType(),
    np.dtype(ml_dtypes.float6_e2m3fn): Float6E2M3FNType(),
    np.dtype(ml_dtypes.float6_e3m2fn): Float6E3M2FNType(),
    np.dtype(ml_dtypes.float4_e2m1fn): Float4E2M1FNType(),
}
_DTYPES: dict[Attribute, np.dtype[Any]] = {attribute: dtype for dtype, attribute in _TYPES.items()}

_COMPLEX: dict[np.dtype[Any], Attribute] = {
    np.dtype(np.complex64): ComplexType(Float32Type()),
    np.dtype(np.complex128): ComplexType(Float64Type()),
}
_DENSE: dict[Attribute, np.dtype[Any]] = {
    **_DTYPES,
    **{attribute: dtype for dtype, attribute in _COMPLEX.items()},
    IndexType(): np.dtype(np.int64),
}

ELEMENTS: tuple[Attribute, ...] = tuple(_DTYPES)
"""Every element type that a tile can hold."""


def numpy_dtype(element_type: Attribute) -> np.dtype[Any]:
    """The dtype that holds an element type. Raises ValueError for types that no tile can hold."""
    found = _DTYPES.get(element_type)
    if found is None:
        known = ", ".join(sorted(map(str, _DTYPES)))
        raise ValueError(f"element type {element_type}; need one of {known}")
    return found


@lru_cache(maxsize=64)
def dtype_named(element: str) -> np.dtype[Any]:
    """The dtype of an element type, by its name in the text of the IR."""
    return next(dtype for dtype, attribute in _TYPES.items() if str(attribute) == element)


def element_type(dtype: np.dtype[Any]) -> Attribute:
    """The element type of a dtype. Raises ValueError for dtypes that no tile can hold."""
    if dtype not in _TYPES:
        raise ValueError(f"dtype {dtype}; need one of {', '.join(sorted(map(str, _TYPES)))}")
    return _TYPES[dtype]


def dense_dtype(element: Attribute) -> np.dtype[Any]:
    """The dtype of the elements of a dense attribute, which may be complex; an index is an int64.

    Raises ValueError for types that neither a tile can hold nor programs of other compilers.
    """
    return found if (found := _DENSE.get(element)) is not None else numpy_dtype(element)


def dense_element(dtype: np.dtype[Any]) -> Attribute:
    """The element type of a dense attribute of a dtype, which may be complex.

    Raises ValueError for other dtypes that no tile can hold.
    """
    return _COMPLEX.get(dtype) or element_type(dtype)
