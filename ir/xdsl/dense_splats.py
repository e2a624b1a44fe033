"""Telling whether the elements of a `dense<...>` are one element, by their bits.

xDSL compares numbers, and 0.0 equals -0.0. So it prints `dense<[0.0, -0.0]>` as `dense<0.0>`.
"""

from __future__ import annotations

from typing import Any

ASKED = "is_splat"
"""The method of xDSL's dense attribute whose answer decides how it is printed."""


def is_splat(attribute: Any) -> bool:
    """Whether all elements of a dense attribute have the same bits; False without elements."""
    data = attribute.data.data
    one = data[: attribute.get_element_type().compile_time_size]
    return bool(data) and data == one * (len(data) // len(one))


def compare_splats_by_bits(dense: type[object]) -> None:
    """Replace the method of xDSL's dense attribute, for the whole process."""
    if not hasattr(dense, ASKED):
        raise AttributeError(f"xDSL's {dense.__name__} has no {ASKED}; need another way to print")
    setattr(dense, ASKED, is_splat)
