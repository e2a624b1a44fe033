"""Gaussian blur."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

_gaussian = cast(Callable[..., Any], getattr(ndimage, "gaussian_filter"))  # noqa: B009


def blurred(values: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    """The values after a Gaussian blur, with zeros beyond the edges: (rows, columns)."""
    return cast(NDArray[np.float32], _gaussian(values, sigma, truncate=3, mode="constant"))
