"""Words of roundings: what they depend on, and that no two of them are alike."""

from itertools import product

import numpy as np

from abele.backends.codelets.float_rounding import random_words

from .definitions import _philox


def numbers(*values: int) -> list[np.ndarray]:
    return [np.array(each, np.float32) for each in values]


def test_a_word_is_that_of_the_element_the_run_the_seed_the_key_and_the_place():
    seen = set[int]()
    for column, row, low, high, key, place in product(
        (0, 5), (0, 3), (0, 9), (0, 7), (0, 2), (0, 4)
    ):
        word = int(random_words(float(key), *numbers(column, row, low, high), place))
        assert word == _philox((column, row, low, 1 + place), (high, key))
        seen.add(word)
    assert len(seen) == 64


def test_words_of_roundings_are_not_random_numbers():
    zero = numbers(0, 0, 0, 0)
    assert int(random_words(0.0, *zero)) != _philox((0, 0, 0, 0), (0, 0))
