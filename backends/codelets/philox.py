"""Philox-4x32-10: random bits that are a function of a counter and a key, without a state.

Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011). The words
are those of Random123's philox4x32 with ten rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
KEY_STEPS = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
ROUNDS = 10
_HALF = np.uint64(32)


def philox(counter: Sequence[NDArray[Any]], key: Sequence[NDArray[Any]]) -> tuple[Words, ...]:
    """Four words of random bits.

    Args:
        counter: four words.
        key: two words. They broadcast together.
    """
    a, b, c, d = (np.asarray(word).astype(np.uint32) for word in counter)
    low, high = (np.asarray(word).astype(np.uint32) for word in key)
    with np.errstate(over="ignore"):
        for _ in range(ROUNDS):
            first, second = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
            a, b = _high(second) ^ b ^ low, second.astype(np.uint32)
            c, d = _high(first) ^ d ^ high, first.astype(np.uint32)
            low, high = low + KEY_STEPS[0], high + KEY_STEPS[1]
    return a, b, c, d


def _high(product: NDArray[np.uint64]) -> Words:
    return (product >> _HALF).astype(np.uint32)
