"""The methods of calibration: which scaling holds the numbers that a tensor was seen to have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .formats import Format, Scaling
from .histogram import Histogram

Method = Literal["minmax", "percentile", "mse", "entropy"]

KEPT = 0.9999
"""The share of numbers that the method percentile keeps inside the range."""

SHARES = np.linspace(0.2, 1.0, 81)
"""The shares of the whole range that the methods mse and entropy try."""

LEAST_SHARE = 1e-9
"""Added to shares of numbers, so that the logarithm of an empty level is finite."""

_Choose = Callable[[Histogram, Format, str], Scaling]


def _whole(seen: Histogram, form: Format, what: str) -> Scaling:
    """The scaling that holds all numbers."""
    return form.for_range(seen.low, seen.high, what)


def _percentile(seen: Histogram, form: Format, what: str) -> Scaling:
    """The scaling that holds all numbers but the same share of the largest and of the least."""
    centres, counts = seen.used()
    below = np.cumsum(counts) / counts.sum()
    tail = (1 - KEPT) / 2
    low = centres[np.searchsorted(below, tail, side="right").clip(max=len(below) - 1)]
    high = centres[np.searchsorted(below, 1 - tail).clip(max=len(below) - 1)]
    return form.for_range(float(low), float(high), what)


def _mean_square(seen: Histogram, form: Format, what: str) -> Scaling:
    """The scaling of the least mean square error."""
    centres, counts = seen.used()
    numbers = centres.astype(np.float32)

    def error(scaling: Scaling) -> float:
        return float(np.dot(counts, (form.rounded(numbers, scaling) - centres) ** 2))

    return min(_candidates(seen, form, what), key=error)


def _divergence(seen: Histogram, form: Format, what: str) -> Scaling:
    """The scaling whose levels, spread over the bins that they hold, are distributed most like the
    numbers: the least relative entropy. Numbers beyond the range count at its ends.

    Source: S. Migacz, 8-bit inference with TensorRT, 2017.
    """
    centres, counts = seen.used()
    numbers = centres.astype(np.float32)
    return min(
        _candidates(seen, form, what),
        key=lambda scaling: _relative_entropy(numbers, counts, form, scaling),
    )


def _relative_entropy(
    numbers: NDArray[np.float32], counts: NDArray[np.int64], form: Format, scaling: Scaling
) -> float:
    held = form.rounded(numbers, scaling)
    low, high = held[0], held[-1]
    inside = (numbers >= low) & (numbers <= high)
    inside[np.searchsorted(numbers, low).clip(max=len(numbers) - 1)] = True
    inside[(np.searchsorted(numbers, high, side="right") - 1).clip(min=0)] = True
    first, last = np.flatnonzero(inside)[[0, -1]]
    known = counts.astype(np.float64)
    clipped = known[first : last + 1].copy()
    clipped[0] += known[:first].sum()
    clipped[-1] += known[last + 1 :].sum()
    _, level = np.unique(held[first : last + 1], return_inverse=True)
    of_level = np.bincount(level, known[first : last + 1]) / np.bincount(level)
    spread = of_level[level]
    p, q = clipped / clipped.sum(), spread / max(spread.sum(), 1.0)
    return float(np.sum(p * np.log((p + LEAST_SHARE) / (q + LEAST_SHARE))))


def _candidates(seen: Histogram, form: Format, what: str) -> Iterator[Scaling]:
    """Different scalings of parts of the range, the widest last."""
    tried = set[tuple[float, int]]()
    for share in SHARES[::-1]:
        scaling = form.for_range(share * seen.low, share * seen.high, what)
        key = float(scaling.scale), scaling.zero
        if key not in tried:
            tried.add(key)
            yield scaling


METHODS: dict[Method, _Choose] = {
    "minmax": _whole,
    "percentile": _percentile,
    "mse": _mean_square,
    "entropy": _divergence,
}
"""The methods of calibration by name."""

DEFAULT: Method = "mse"
