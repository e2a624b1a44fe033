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
KEY_STEPS = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
ROUNDS = 10
_HALF, _MASK = np.uint64(32), np.uint64(0xFFFFFFFF)


def philox(counter: Sequence[NDArray[Any]], key: Sequence[NDArray[Any]]) -> tuple[Words, ...]:
    """Four words of random bits.

    Args:
        counter: four words.
        key: two words. They broadcast together.
    """
    # Words are held in 64 bits, in which a product of two words has room.
    a, b, c, d = (_held(word) for word in counter)
    low, high = (_held(word) for word in key)
    for _ in range(ROUNDS):
        first, second = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, b = (second >> _HALF) ^ (b ^ low), second & _MASK
        c, d = (first >> _HALF) ^ (d ^ high), first & _MASK
        low, high = (low + KEY_STEPS[0]) & _MASK, (high + KEY_STEPS[1]) & _MASK
    return tuple(word.astype(np.uint32) for word in (a, b, c, d))


def _held(word: NDArray[Any]) -> NDArray[np.uint64]:
    """The lowest 32 bits of whole numbers."""
    return np.asarray(word).astype(np.uint64) & _MASK
