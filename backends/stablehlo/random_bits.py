"""Random bits of a state, by Threefry-2x32 and Philox-4x32.

The generators are those of Salmon, Moraes, Dror and Shaw (Parallel random numbers: as easy as 1, 2,
3, 2011). Which element gets which word is XLA's choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...ir.support.arrays import Array
from ..codelets.philox import philox

WORD = (1 << 32) - 1
LONG = (1 << 64) - 1


def random_bits(
    algorithm: str, state: Array, shape: Sequence[int], dtype: np.dtype[Any]
) -> list[Array]:
    """The next state, and elements of whole numbers of a dtype.

    Args:
        algorithm: THREE_FRY, PHILOX, or DEFAULT, which is Philox.
        state: the key and the counter, of which Philox may have two words of 64 bits.
    """
    drawn = _by_threefry if algorithm == "THREE_FRY" else _by_philox
    after, words = drawn([int(each) for each in state], tuple(shape), dtype.itemsize == 8)
    bits = words.astype(f"u{dtype.itemsize}").view(dtype).reshape(shape)
    return [np.array(after, np.uint64), bits]


def _by_threefry(
    state: list[int], shape: tuple[int, ...], is_long: bool
) -> tuple[list[int], Array]:
    key, counter = state
    if is_long:
        low, high = _threefry(key, _counters(counter, prod(shape)))
        return [key, (counter + prod(shape)) & LONG], low | high << np.uint64(32)
    whole = shape or (1,)
    even = [a for a, n in enumerate(whole) if n % 2 == 0]
    axis = even[0] if even else whole.index(max(whole))
    blocks = [-(-n // 2) if a == axis else n for a, n in enumerate(whole)]
    pair = _threefry(key, _counters(counter, prod(blocks)))
    words = np.stack([each.reshape(blocks) for each in pair], axis + 1)
    words = words.reshape([2 * n if a == axis else n for a, n in enumerate(blocks)])
    kept = words[tuple(slice(n) for n in whole)]
    return [key, (counter + prod(blocks)) & LONG], kept


def _counters(first: int, count: int) -> Array:
    """Consecutive numbers, which wrap around."""
    return np.uint64(first) + np.arange(count, dtype=np.uint64)


def _threefry(key: int, counters: Array) -> tuple[Array, Array]:
    """Two words of 32 bits of each counter, after 20 rounds."""
    keys = [key & WORD, key >> 32]
    keys.append(keys[0] ^ keys[1] ^ 0x1BD11BDA)
    x = counters + np.uint64(keys[0]) & np.uint64(WORD)
    y = (counters >> np.uint64(32)) + np.uint64(keys[1]) & np.uint64(WORD)
    for turn in range(20):
        places = ((13, 15, 26, 6), (17, 29, 16, 24))[turn // 4 % 2][turn % 4]
        x = x + y & np.uint64(WORD)
        y = (y << np.uint64(places) | y >> np.uint64(32 - places)) & np.uint64(WORD) ^ x
        if turn % 4 == 3:
            number = turn // 4 + 1
            x = x + np.uint64(keys[number % 3]) & np.uint64(WORD)
            y = y + np.uint64(keys[(number + 1) % 3] + number) & np.uint64(WORD)
    return x, y


def _by_philox(state: list[int], shape: tuple[int, ...], is_long: bool) -> tuple[list[int], Array]:
    key, low = state[:2]
    first = low | (state[2] if len(state) > 2 else key) << 64
    count = prod(shape)
    blocks = -(-count // (2 if is_long else 4))
    lower = _counters(first & LONG, blocks)
    # The half above is one more where the half below has wrapped around.
    upper = np.uint64(first >> 64) + (lower < np.uint64(first & LONG))
    words = [half >> np.uint64(32 * i) & np.uint64(WORD) for half in (lower, upper) for i in (0, 1)]
    made = [np.asarray(each, np.uint64) for each in philox(words, _key(key))]
    if is_long:
        made = [made[i] | made[i + 1] << np.uint64(32) for i in (0, 2)]
    after = first + blocks
    following = [key, after & LONG, after >> 64 & LONG][: len(state)]
    return following, np.stack(made, -1).reshape(-1)[:count]


def _key(key: int) -> list[Array]:
    return [np.array(key & WORD, np.uint64), np.array(key >> 32, np.uint64)]
