"""Histograms that widen as numbers arrive, so that one pass over the data is enough."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...ir.support.arrays import Array

BINS = 4096
"""Bins of a histogram: half of them below 0. At least a fourth of them is used."""


@dataclass
class Histogram:
    """How many numbers lie in each of BINS equal bins from -2**exponent to 2**exponent.

    Attributes:
        exponent: None before the first number that is not 0.
        low, high: the least and the largest number so far, and 0.
        rounded: whether a number was not finite.
    """

    exponent: int | None = None
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))
    low: float = 0.0
    high: float = 0.0
    zeros: int = 0

    def add(self, values: Array) -> None:
        """Count finite numbers."""
        if not values.size:
            return
        flat = values.ravel()
        self.low = min(self.low, float(flat.min()))
        self.high = max(self.high, float(flat.max()))
        most = max(self.high, -self.low)
        if not most:
            self.zeros += flat.size
            return
        self._widen(int(np.frexp(most)[1]))
        assert self.exponent is not None
        width = np.ldexp(1.0, self.exponent + 1) / BINS
        places = np.floor(flat.astype(np.float64) / width).astype(np.int64) + BINS // 2
        self.counts += np.bincount(places.clip(0, BINS - 1), minlength=BINS)

    def _widen(self, exponent: int) -> None:
        """Merge bins in pairs until numbers below 2**exponent have a bin."""
        if self.exponent is None:
            self.exponent = exponent
            self.counts[BINS // 2] += self.zeros
        while self.exponent < exponent:
            pairs = self.counts.reshape(-1, 2).sum(1)
            self.counts = np.zeros(BINS, np.int64)
            self.counts[BINS // 4 : BINS // 4 + BINS // 2] = pairs
            self.exponent += 1

    def used(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The centres and counts of the bins that are not empty, in order."""
        if self.exponent is None:
            return np.zeros(1), np.array([max(self.zeros, 1)])
        width = np.ldexp(1.0, self.exponent + 1) / BINS
        filled = np.flatnonzero(self.counts)
        centres = (filled - BINS // 2 + 0.5) * width
        return centres.clip(self.low, self.high), self.counts[filled]
