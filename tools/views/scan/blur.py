"""Gaussian blur."""

from __future__ import annotations

import numpy as np

from .kernels import Floats, blur_columns, blur_rows
from .threads import in_slices

WIDTHS = 3
"""The radius of the blur, in standard deviations."""

FEW = 1_000_000
"""The number of values below which starting a thread takes longer than the blur."""


def blur(values: Floats, sigma: float) -> None:
    """Blur an array in place, with zeros beyond its edges.

    Args:
        values: (rows, columns) or (rows, columns, channels), row by row without gaps. Channels are
            blurred separately.
        sigma: the standard deviation, in rows and in columns.
    """
    assert values.flags.c_contiguous
    radius = int(WIDTHS * sigma + 0.5)
    if not radius:
        return
    bell = np.exp(-0.5 * (np.arange(radius + 1) / sigma) ** 2)
    weights = (bell / (2 * bell.sum() - bell[0])).astype(np.float32)
    flat = values.reshape(len(values), -1)
    channels = values.shape[2] if values.ndim == 3 else 1
    few = len(flat) + 1 if values.size < FEW else 0

    def across(_: int, first: int, last: int) -> None:
        blur_rows(flat, weights, channels, first, last)

    def down(_: int, first: int, last: int) -> None:
        blur_columns(flat, weights, first, last)

    in_slices(across, flat.shape[0], few=few)
    in_slices(down, flat.shape[1], few=few and flat.shape[1] + 1)
