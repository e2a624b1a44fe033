"""Strided views of arrays of any dtype."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.lib import stride_tricks

from .arrays import Array

_REGISTERED = 2
"""What NumPy calls the dtypes of other packages."""


def as_strided(array: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A view of an array's memory with the given shape and strides. Bounds are not checked.

    NumPy's own function fails for some dtypes of ml_dtypes, which have no short name in NumPy.
    """
    if array.dtype.isbuiltin != _REGISTERED:
        return stride_tricks.as_strided(array, shape, strides)
    seen = stride_tricks.as_strided(array.view(f"u{array.itemsize}"), shape, strides)
    return seen.view(array.dtype)
