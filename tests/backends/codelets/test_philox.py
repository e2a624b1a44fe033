"""The random bits are those that Random123 publishes."""

import numpy as np
import pytest

from abele.backends.codelets.philox import philox
from abele.backends.codelets.scalar import scalar_function

PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)
"""The first bits of the fraction of pi."""


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ((0,) * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 6, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (PI, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ],
)
def test_bits_are_the_known_answers_of_random123(words, known):
    numbers = [np.array([word], np.uint32) for word in words]
    found = philox(numbers[:4], numbers[4:])
    assert tuple(int(word[0]) for word in found) == known


def test_a_codelet_takes_the_first_word_for_an_index_and_a_step():
    index, step, seed = np.arange(5, dtype=np.uint32), np.uint32([7]), np.uint32([11])
    found = scalar_function("random_bits").apply((13.0,), index, step, seed)
    zero = np.uint32(0)
    assert found.dtype == np.uint32
    np.testing.assert_array_equal(found, philox((index, zero, step, zero), (seed, 13 + zero))[0])
