"""What a proof has to know of an element type: its kind, its width, and its limits."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ....backends.codelets.conversion import compute_dtype
from ....ir.element_types import dtype_named, element_type
from ....ir.support.number_kinds import bit_width, is_floating, is_unsigned, whole_limits

TRUTH = "i1"
"""The type of truth values."""

DOUBLE = "f64"


@lru_cache(maxsize=64)
def is_float(dtype: str) -> bool:
    """Whether the elements are floats."""
    return is_floating(dtype_named(dtype))


@lru_cache(maxsize=64)
def is_signed(dtype: str) -> bool:
    """Whether the elements are integers with a sign."""
    return dtype != TRUTH and not is_float(dtype) and not is_unsigned(dtype_named(dtype))


@lru_cache(maxsize=64)
def width(dtype: str) -> int:
    """The bits of an element."""
    return bit_width(dtype_named(dtype))


@lru_cache(maxsize=64)
def limits(dtype: str) -> tuple[int, int]:
    """The least and the largest integer of a type; 0 and 1 for truth values."""
    if dtype == TRUTH:
        return 0, 1
    found = whole_limits(dtype_named(dtype))
    return found.min, found.max


@lru_cache(maxsize=256)
def computing(operands: tuple[str, ...], result: str) -> str:
    """The type that a scalar function computes in.

    Args:
        operands: the types of its operands that are numbers.
    """
    found = compute_dtype(*map(dtype_named, operands))
    out: np.dtype[Any] = dtype_named(result)
    if found.kind in "iu" and out.kind in "iu":
        found = max(found, out, key=lambda each: each.itemsize)
    return str(element_type(found))


def wrapped(value: int, dtype: str) -> int:
    """An integer modulo the width of a type, in the range of the type."""
    low = limits(dtype)[0]
    return (value - low) % (1 << width(dtype)) + low
