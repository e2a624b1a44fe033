"""Counts of n-grams."""

import numpy as np
import pytest

from abele.ir.errors import InputError

from .one_node import agree_with_onnx, computed, one_node

ITEMS = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int32)


def counts(x: np.ndarray = ITEMS, **changed):
    attributes = {
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": 2,
        "max_skip_count": 0,
        "ngram_counts": [0, 4],
        "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
        "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    }
    return one_node("TfIdfVectorizer", x, **{**attributes, **changed})


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("least", [1, 2])
def test_ngrams_are_counted_with_gaps(mode: str, least: int):
    weights = [0.5, 1.0, 2.0, 3.0, -1.0, 4.0, 0.25]
    skips = {"min_gram_length": least, "max_skip_count": 5}
    agree_with_onnx(*counts(mode=mode, weights=weights, **skips))
    agree_with_onnx(*counts(ITEMS[1], mode=mode, weights=weights, **skips))


def test_columns_that_no_ngram_has_are_0():
    (found,) = computed(*counts(ngram_indexes=[8, 1, 2, 3, 4, 0, 6]))
    np.testing.assert_array_equal(found, [[0, 3, 0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 0, 1, 0, 0]])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ngram_indexes": [0]}, "1 ngram_indexes of 7 n-grams"),
        ({"ngram_counts": [0, 3]}, r"ngram_counts \[0, 3\] of a pool of 10 items"),
        ({"weights": [1.0], "mode": "IDF"}, "1 weights; need one per n-gram"),
        ({"mode": "TTF"}, "mode 'TTF'; need one of TF, IDF, TFIDF"),
    ],
)
def test_pools_that_contradict_themselves_are_refused(changed, message: str):
    with pytest.raises(InputError, match=message):
        computed(*counts(**changed))
