"""What small transformers learn in 16 bits, beside float32."""

import numpy as np
import pytest

from abele.tools import Training
from abele.tools.workshop.learning.arithmetics import ARITHMETICS, Arithmetic
from abele.tools.workshop.transformers.graphs import Shape
from abele.tools.workshop.transformers.training import (
    IGNORED,
    following,
    masked,
    trained,
    words_of_manual,
)

FLOAT32, FLOAT16, _, UNIT = ARITHMETICS[:4]

SMALL = Shape(layers=1, width=16, heads=2, hidden=16, words=3200, tokens=32)


@pytest.mark.large
@pytest.mark.parametrize(("name", "halves"), [("bert", (FLOAT16, UNIT)), ("gpt2", (FLOAT16,))])
def test_the_losses_in_float16_fall_as_in_float32(name: str, halves: tuple[Arithmetic, ...]):
    asked = Training(learning_rate=0.3)
    wide, *narrow = (trained(name, SMALL, each, asked, "tiny:8", 4) for each in (FLOAT32, *halves))
    assert wide.losses[-1] < 0.96 * wide.losses[0]
    assert all(0 < each.distance(wide) < 3e-4 for each in narrow)


def test_the_words_are_numbered_from_the_most_frequent_one():
    words = words_of_manual()
    count = np.bincount(words)
    assert (count > 0).all()
    assert (np.diff(count) <= 0).all()
    assert len(count) < SMALL.words


def test_every_word_but_the_last_is_followed_by_the_next():
    batch = following(np.array([5, 3, 9]), 10, 0)
    assert batch.ids.tolist() == [5, 3]
    assert batch.target.tolist() == [3, 9]


def test_a_masked_word_is_to_be_found_and_no_other():
    words = words_of_manual()[:129]
    batch = masked(words, 3200, 1)
    hidden = batch.ids == 3199
    assert 0.05 < hidden.mean() < 0.3
    np.testing.assert_array_equal(batch.target[hidden], words[:-1][hidden])
    np.testing.assert_array_equal(batch.ids[~hidden], words[:-1][~hidden])
    assert (batch.target[~hidden] == IGNORED).all()
    assert (masked(words, 3200, 2).ids != batch.ids).any()
