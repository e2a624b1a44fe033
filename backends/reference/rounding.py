"""Converts values to the kind of a dtype, and bounds the errors of rounding to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.support.number_kinds import is_floating
from ..codelets.conversion import FLOAT64, Doubles, converted, float_limits
from .gather import Array


def as_kind_of(value: Array, dtype: np.dtype[Any]) -> Array:
    """A value converted to the kind of a dtype: floats stay float64, integers wrap."""
    if is_floating(dtype):
        return value.astype(np.float64, copy=False)
    if dtype.kind == "b":
        return converted(value, dtype)
    wide = np.dtype(np.uint64 if dtype == np.uint64 else np.int64)
    return converted(converted(value, dtype), wide)


def rounding_step(value: Array, error: Doubles, dtype: np.dtype[Any], exact: Array) -> Doubles:
    """The error after rounding a value with an error to a float dtype.

    Args:
        exact: where the value is exact; rounding it to a dtype that holds it then adds no error.
    """
    limits = float_limits(dtype)
    step = limits.roundoff * (np.abs(value) + error) + limits.smallest_subnormal
    if not exact.any():
        return step
    held = converted(converted(value, dtype), FLOAT64) == value
    return np.where(exact & held, 0.0, step)
