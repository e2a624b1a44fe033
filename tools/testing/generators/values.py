"""Values of the tensors of generated programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from ....ir.support.number_kinds import is_unsigned, is_whole
from ...driver.arrays import Array
from .sketch import Data


def values_of(shape: Sequence[int], dtype: np.dtype[Any], seed: int, data: Data) -> Array:
    """The values of a tensor, determined by the arguments alone."""
    random = np.random.default_rng(seed)
    # Only values of one sign show a reduction by max or min that begins at 0.
    sign = _SIGNS[seed // 3 % len(_SIGNS)]
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(bool)
    if is_whole(dtype):
        low, high = (0, 4) if is_unsigned(dtype) else _RANGES[sign]
        return _with_zeros(random.integers(low, high, shape).astype(dtype), random, data)
    if data == "integers":
        return random.integers(*_RANGES[sign], shape).astype(dtype)
    normal = random.standard_normal(shape)
    if sign:
        normal = sign * np.abs(normal)
    if data in ("normal", "zeros"):
        # Tensors differ in magnitude, so that mixing them up shows in a sum.
        scale = 2.0 ** random.integers(-4, 5) * (1.0 if seed % 3 else 1.7)
        return _with_zeros((normal * scale).astype(dtype), random, data)
    special = _special(dtype)
    picked = special[random.integers(0, len(special), shape)]
    return np.where(random.random(shape) < 0.25, picked, normal.astype(dtype)).astype(dtype)


_SIGNS = (0, 0, 0, -1, 1)
"""For each tensor: 0 for numbers of both signs, -1 for negative numbers only, 1 for positive."""
_RANGES = {0: (-3, 4), -1: (-4, 0), 1: (1, 5)}
"""For each sign: the smallest integer, and the exclusive upper limit."""


def _with_zeros(values: Array, random: np.random.Generator, data: Data) -> Array:
    """The values. For data "zeros", half of them are replaced by 0 or, if the dtype has it, -0."""
    if data != "zeros":
        return values
    zeros = np.where(random.random(values.shape) < 0.5, -0.0, 0.0).astype(values.dtype)
    return np.where(random.random(values.shape) < 0.5, zeros, values).astype(values.dtype)


def _special(dtype: np.dtype[Any]) -> Array:
    info = cast(Any, ml_dtypes.finfo(dtype))
    largest, tiny = float(info.max), float(info.smallest_subnormal)
    some = (np.inf, -np.inf, np.nan, -0.0, 0.0, tiny, -3 * tiny, largest, -largest, 1.0)
    return np.array(some, np.float64).astype(dtype)
