"""Generators against a second implementation, and against published numbers."""

import numpy as np

from abele.ir.support.xoroshiro import SKIPPED, next_numbers, seeded

WHOLE = 1 << 64
JUMP = 0xD86B048B86AA9922BEAC0467EBA5FACB
"""The polynomial that moves a state on by 2^64 numbers, published with the 2016 version of
xoroshiro128plus.c (Blackman, Vigna), whose states follow each other by the same rule."""


def rotated(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) % WHOLE


def following(first: int, second: int) -> tuple[int, int, int]:
    """The next number, and both words of the state after it."""
    either, both = first ^ second, first & second
    number = either ^ (rotated(both, 1) | rotated(both, 2))
    return number, rotated(first, 55) ^ either ^ (either << 14) % WHOLE, rotated(either, 36)


def test_numbers_and_states_are_those_of_the_published_recurrence():
    states = np.random.default_rng(0).integers(0, WHOLE, (3, 2, 2), np.uint64)
    expected = states.tolist()
    for _ in range(100):
        found = next_numbers(states)
        for tile in range(3):
            for worker in range(2):
                number, *expected[tile][worker] = following(*expected[tile][worker])
                assert found[tile, worker] == number
    assert states.tolist() == expected


def test_states_follow_each_other_as_in_xoroshiro128plus():
    """The published jump equals 2^64 steps, computed by squaring the matrix of one step."""
    columns = [1 << bit for bit in range(128)]

    def step(state: int) -> int:
        states = np.array([[state % WHOLE, state >> 64]], np.uint64)
        _ = next_numbers(states)
        first, second = states[0].tolist()
        return first | second << 64

    def applied(matrix: list[int], state: int) -> int:
        found = 0
        for bit, column in enumerate(matrix):
            found ^= column * (state >> bit & 1)
        return found

    matrix = [step(column) for column in columns]
    for _ in range(64):
        matrix = [applied(matrix, column) for column in matrix]
    state = jumped = 0x0123456789ABCDEF_FEDCBA9876543210
    jumped = 0
    for bit in range(128):
        jumped ^= state * (JUMP >> bit & 1)
        state = step(state)
    assert applied(matrix, 0x0123456789ABCDEF_FEDCBA9876543210) == jumped


def test_seeds_are_the_published_ones():
    seed, modifier = 0x123456789ABCDEF0, 7
    states = seeded(seed, 1500, 6, modifier)
    for tile, worker in ((0, 0), (3, 5), (1471, 2)):
        words = seed, (tile << 4 ^ 0xAAAAAAA0) | worker | (modifier ^ 0x55555555) << 32
        for _ in range(SKIPPED):
            _, *words = following(*words)
        assert states[tile, worker].tolist() == list(words)
    assert len({bytes(each) for each in states.reshape(-1, 2)}) == 1500 * 6


def test_bits_are_fair_independent_and_differ_between_workers():
    states = seeded(1, 64, 6)
    numbers = np.stack([next_numbers(states) for _ in range(256)])
    bits = np.unpackbits(numbers.reshape(-1, 1).view(np.uint8), axis=1)
    deviation = 0.5 / np.sqrt(len(bits))
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 5 * deviation
    signs = 1.0 - 2.0 * bits.astype(np.float64)
    between = signs.T @ signs / len(signs) - np.eye(64)
    assert np.abs(between).max() < 6 / np.sqrt(len(signs))
    low = (numbers & np.uint64(0xFFFF)).astype(np.float64).reshape(256, -1)
    low = (low - low.mean()) / low.std()
    workers = low.T @ low / 256 - np.eye(low.shape[1])
    assert np.abs(workers).max() < 7 / np.sqrt(256)
    following_ = (low[:-1] * low[1:]).mean(axis=0)
    assert np.abs(following_).max() < 6 / np.sqrt(255)
