"""xoroshiro128aox: the generator of random bits that each worker of a tile has.

A generator is 128 bits of state, held as two words of 64 bits. All functions work on any number of
generators at once.

Source: Hanlon, Felix: A fast hardware pseudorandom number generator based on xoroshiro128
(arXiv:2203.04058). The seeds are those of poplibs poprand, which draws 15 numbers and leaves them
out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

States = NDArray[np.uint64]
"""States of generators: uint64[..., 2]."""

SKIPPED = 15
"""The numbers that a generator draws and leaves out when it is seeded."""

_TILE, _MODIFIER = 0xAAAAAAA0, 0x55555555


def next_numbers(states: States) -> NDArray[np.uint64]:
    """One number of 64 bits of each generator, which moves on."""
    first, second = states[..., 0], states[..., 1]
    either, both = first ^ second, first & second
    numbers = either ^ (_rotated(both, 1) | _rotated(both, 2))
    states[..., 0] = _rotated(first, 55) ^ either ^ (either << np.uint64(14))
    states[..., 1] = _rotated(either, 36)
    return numbers


def seeded(seed: int, tiles: int, workers: int, modifier: int = 0) -> States:
    """The generators of the workers of tiles: uint64[tiles, workers, 2].

    Args:
        seed: 64 bits.
        modifier: 32 bits, which tell several sets of generators with one seed apart.
    """
    tile, worker = np.arange(tiles, dtype=np.uint64), np.arange(workers, dtype=np.uint64)
    low = (tile << np.uint64(4) ^ np.uint64(_TILE))[:, None] | worker
    states = np.empty((tiles, workers, 2), np.uint64)
    states[..., 0] = seed & 0xFFFFFFFFFFFFFFFF
    states[..., 1] = (low & np.uint64(0xFFFFFFFF)) | np.uint64((modifier ^ _MODIFIER) << 32)
    for _ in range(SKIPPED):
        _ = next_numbers(states)
    return states


def _rotated(words: NDArray[np.uint64], by: int) -> NDArray[np.uint64]:
    return words << np.uint64(by) | words >> np.uint64(64 - by)
