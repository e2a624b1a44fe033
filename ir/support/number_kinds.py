"""The kind of numbers that a dtype of NumPy or ml_dtypes has: floating-point, integer or unsigned.

NumPy's own `dtype.kind` does not tell: it is "V" for most types of ml_dtypes, including integers of
4 bits, and "f" for others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, cast

import ml_dtypes
import numpy as np


class WholeLimits(NamedTuple):
    """The smallest and the largest integer of a dtype."""

    min: int
    max: int


@lru_cache(maxsize=256)
def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether the elements are floating-point numbers."""
    return dtype.kind == "f" or dtype.name.startswith(("float", "bfloat"))


@lru_cache(maxsize=256)
def is_whole(dtype: np.dtype[Any]) -> bool:
    """Whether the elements are integers; truth values are not."""
    return dtype.kind in "iu" or dtype.name.startswith(("int", "uint"))


@lru_cache(maxsize=256)
def is_unsigned(dtype: np.dtype[Any]) -> bool:
    """Whether the elements are unsigned integers."""
    return dtype.name.startswith("uint")


@lru_cache(maxsize=64)
def whole_limits(dtype: np.dtype[Any]) -> WholeLimits:
    """The limits of a dtype of integers. Raises ValueError for others."""
    info = cast(Any, ml_dtypes.iinfo(dtype))
    return WholeLimits(int(info.min), int(info.max))


@lru_cache(maxsize=64)
def bit_width(dtype: np.dtype[Any]) -> int:
    """The bits of an element: 4 for int4, although it takes a byte."""
    if dtype.kind == "b":
        return 1
    about = cast(Any, ml_dtypes.iinfo if is_whole(dtype) else ml_dtypes.finfo)
    return int(about(dtype).bits)


@lru_cache(maxsize=256)
def in_whole_bytes(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The NumPy dtype of whole bytes that holds the values of an integer dtype: int8 for int4."""
    if dtype.kind in "iu" or not is_whole(dtype):
        return dtype
    return np.dtype(np.uint8 if is_unsigned(dtype) else np.int8)
