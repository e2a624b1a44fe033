"""The largest tensors that the compiler and the machine can describe, whatever the target."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

MOST_AXES = 16
"""The most axes of a tensor: a layout may split each axis in two, and NumPy broadcasts at most 32
axes.
"""

MOST_EMPTY_BYTES = 1 << 48
"""The most bytes of an empty tensor, without its axes of size 0. Layouts and strides multiply its
other sizes in 64-bit integers.
"""


def check_tensor_limits(shape: Sequence[int], itemsize: int) -> None:
    """Raise ValueError for a tensor with too many axes, or an empty tensor with huge sizes.

    A huge tensor that has elements fits no target, which is reported where the target is known.

    Args:
        itemsize: bytes of an element.
    """
    if len(shape) > MOST_AXES:
        raise ValueError(f"{len(shape)} axes; a tensor has at most {MOST_AXES}")
    if 0 in shape and prod(n for n in shape if n) * itemsize > MOST_EMPTY_BYTES:
        raise ValueError(
            f"shape {list(shape)} has no elements, but its other sizes make more than 2^48 bytes"
        )
