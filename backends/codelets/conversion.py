"""The dtypes that scalar functions compute in, and conversions from one dtype to another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Array
from ...ir.support.number_kinds import WholeLimits, in_whole_bytes, is_floating, whole_limits

Arrays = tuple[Array, ...]
Doubles = NDArray[np.float64]
Parameters = tuple[float, ...]

FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)


@dataclass(frozen=True)
class FloatLimits:
    """The limits of a floating-point dtype.

    Attributes:
        roundoff: the largest relative error of rounding to this dtype, 2^-24 for float32.
    """

    roundoff: float
    largest: float
    smallest_normal: float
    smallest_subnormal: float


@lru_cache(maxsize=64)
def float_limits(dtype: np.dtype[Any]) -> FloatLimits:
    """The limits of a dtype. Raises ValueError for integers."""
    info = cast(Any, ml_dtypes.finfo(dtype))
    return FloatLimits(
        float(info.eps) / 2,
        float(info.max),
        float(info.smallest_normal),
        float(info.smallest_subnormal),
    )


@lru_cache(maxsize=256)
def compute_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which a scalar function computes, given those of its operands; int8 for bool."""
    if any(map(is_floating, dtypes)):
        return FLOAT64 if FLOAT64 in dtypes else FLOAT32
    widest = np.result_type(*map(in_whole_bytes, dtypes))
    return np.dtype(np.int8) if widest == BOOL else widest


@lru_cache(maxsize=256)
def storage_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a scalar function's result, given those of its operands."""
    first = dtypes[0]
    if all(dtype == first for dtype in dtypes):
        return first
    floats = tuple(dtype for dtype in dtypes if is_floating(dtype))
    if floats and all(dtype == floats[0] for dtype in floats):
        return floats[0]
    return compute_dtype(*dtypes)


def convert_into(values: Array, out: Array) -> None:
    """Write values into an array of any dtype.

    To a float, values are rounded to nearest. From a float to an integer, they are truncated, NaN
    becomes 0, and values out of range become the nearest limit. From integer to integer, they wrap.
    To bool, a value becomes whether it differs from 0.
    """
    if out.dtype == BOOL:
        np.not_equal(values, 0, out=out)
        return
    with np.errstate(all="ignore"):
        if is_floating(values.dtype) and not is_floating(out.dtype):
            _truncate_into(values, out)
        else:
            np.copyto(out, values, casting="unsafe")


def _truncate_into(values: Array, out: Array) -> None:
    limits = whole_limits(out.dtype)
    if limits.max < 1 << 32:
        _truncate_exactly(values, out, limits)
        return
    # A limit may round up in float64, so values at or beyond the upper limit are set separately.
    wide = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    wide = np.broadcast_to(wide, out.shape)
    low, high = wide <= float(limits.min), wide >= float(limits.max)
    np.copyto(out, np.where(low | high, 0.0, wide), casting="unsafe")
    out[low] = limits.min
    out[high] = limits.max


def _truncate_exactly(values: Array, out: Array, limits: WholeLimits) -> None:
    """Like _truncate_into, for a dtype whose limits the computing dtype holds exactly."""
    computing = FLOAT32 if limits.max < 1 << 16 and values.dtype.itemsize <= 4 else FLOAT64
    kept = np.empty(values.shape, computing)
    np.maximum(values, computing.type(limits.min), out=kept, dtype=computing, casting="unsafe")
    np.minimum(kept, computing.type(limits.max), out=kept)
    unknown = kept != kept
    if unknown.any():
        kept = np.where(unknown, computing.type(0), kept)
    np.copyto(out, kept, casting="unsafe")


def converted(values: Array, dtype: np.dtype[Any]) -> Array:
    """Values converted to a dtype as by convert_into; the same array if it already has it."""
    if values.dtype == dtype:
        return values
    out = np.empty(values.shape, dtype)
    convert_into(values, out)
    return out
