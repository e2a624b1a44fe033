"""Writes into tensors and their views, as Python makes them."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from abele.ir.support.errors import InputError

from .fixture_models import imported, results
from .written import node_tree, written

X = np.arange(16, dtype=np.float32).reshape(4, 4)


def computed(nodes: list[Any], *outputs: str) -> list[np.ndarray]:
    return results(imported(written({"x": ((4, 4), "float32")}, nodes, [*outputs])), [X])


def test_a_write_changes_the_tensor_and_its_other_views():
    whole, row, column, changed = computed(
        [
            node_tree("select.int", "row", self="x", dim=0, index=1),
            node_tree("select.int", "column", self="x", dim=1, index=0),
            node_tree("mul_.Tensor", "same", self="row", other=10.0),
        ],
        *("x", "row", "column"),
    )
    wanted = X.copy()
    wanted[1] *= 10
    for found, each in ((whole, wanted), (row, wanted[1]), (column, wanted[:, 0])):
        np.testing.assert_array_equal(found, each)
    np.testing.assert_array_equal(changed, wanted)


def test_one_tensor_may_be_written_to_thousands_of_times():
    names = ["x", *(f"r{i}" for i in range(2000))]
    nodes = [node_tree("add_.Tensor", new, self=old, other=1.0) for old, new in pairwise(names)]
    found, *_ = computed(nodes, names[-1])
    np.testing.assert_array_equal(found, X + 2000)


def test_views_of_views_without_end_are_refused():
    names = ["x", *(f"v{i}" for i in range(500))]
    nodes = [node_tree("view.default", new, self=old, size=[4, 4]) for old, new in pairwise(names)]
    nodes.append(node_tree("add_.Tensor", "same", self="x", other=1.0))
    nodes.append(node_tree("relu.default", "y", self=names[-1]))
    with pytest.raises(InputError, match=r"net.py:7: .*views of views, nested too deeply"):
        computed(nodes, "y")
