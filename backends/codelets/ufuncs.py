"""Operations of calls that NumPy's ufuncs perform."""

from __future__ import annotations

import numpy as np

from .calls import Array


def bits(array: Array) -> Array:
    """An array viewed as unsigned integers of its elements' size."""
    return array.view(f"u{array.itemsize}")


def reduce_into(merge: np.ufunc, value: Array, axes: tuple[int, ...], total: Array) -> None:
    """Merge a value's elements along some axes, in NumPy's order."""
    if merge is np.bitwise_or:
        total, value = bits(total), bits(value)
    merge.reduce(value, axis=axes, dtype=total.dtype, out=total)


def merge_into(merge: np.ufunc, total: Array, value: Array) -> None:
    """Merge a value into a total, element by element."""
    if merge is np.bitwise_or:
        total, value = bits(total), bits(value)
    merge(total, value, out=total, dtype=total.dtype, casting="unsafe")


def fill_with(array: Array, element: np.generic) -> None:
    """Fill an array with an element."""
    array.fill(element)
