"""The types of arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[Any]
"""An array of any shape, whose dtype is known at run time only."""

Integers: TypeAlias = NDArray[np.int64]
"""An array of 64-bit integers."""


def integers(value: ArrayLike) -> Integers:
    """An array of 64-bit integers; floats are rounded towards zero."""
    return np.asarray(value, dtype=np.int64)
