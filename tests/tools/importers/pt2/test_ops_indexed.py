"""Bags of rows, by indices and offsets."""

from itertools import pairwise

import numpy as np
import pytest

from abele.ir.support.errors import InputError

from .fixture_models import imported, results
from .written import node_tree, written

TABLE = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)


def bags(offsets: list[int], mode: int, count: int = 7) -> bytes:
    node = node_tree(
        "embedding_bag.padding_idx",
        ["sums", "a", "b", "c"],
        weight="table",
        indices="words",
        offsets="offsets",
        mode=mode,
    )
    return written(
        {"words": ((count,), "int64")},
        [node],
        ["sums"],
        constants={"table": TABLE, "offsets": np.array(offsets)},
    )


MERGE = (
    lambda rows: rows.sum(0),
    lambda rows: rows.mean(0),
    lambda rows: rows.max(0),
)


@pytest.mark.parametrize("mode", range(3))
@pytest.mark.parametrize("offsets", [[0, 2, 3], [0, 0, 5, 5], [0], [0, 3, 7]])
def test_bags_of_any_sizes_are_merged(offsets: list[int], mode: int):
    words = np.array([1, 8, 0, 3, 3, 5, 2])
    (found,) = results(imported(bags(offsets, mode)), [words])
    edges = [*offsets, len(words)]
    wanted = [
        MERGE[mode](TABLE[words[a:b]]) if b > a else np.zeros(4, np.float32)
        for a, b in pairwise(edges)
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_number_of_operations_does_not_grow_with_the_bags():
    few, many = (
        sum(1 for _ in imported(bags(offsets, 1, 100)).walk())
        for offsets in ([0, 5, 50], [0, *range(3, 99)])
    )
    assert few == many


def test_offsets_out_of_order_are_refused():
    with pytest.raises(InputError, match=r"offsets \[0, 5, 3, 7\] of 7 indices; need"):
        imported(bags([0, 5, 3], 0))
