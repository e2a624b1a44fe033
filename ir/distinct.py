"""The different values of an array."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def distinct(values: NDArray[T]) -> NDArray[T]:
    """The different values of an array, ascending: (different values,).

    np.unique of NumPy 2.3 and later hashes, which takes 50 times as long for a million numbers
    that differ; what is asked for counts is sorted.
    """
    return np.unique(values, return_counts=True)[0]
