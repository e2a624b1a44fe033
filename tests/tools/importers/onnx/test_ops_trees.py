"""Ensembles of trees."""

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from abele.ir.errors import InputError

from .one_node import computed, one_node

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)


def tensor(values: Any, dtype: type = np.float32):
    return numpy_helper.from_array(np.array(values, dtype))


def ensemble(x: np.ndarray, nodes: list[tuple[Any, ...]], leaves: list[tuple[float, int]], **more):
    """A model whose nodes are (feature, split, mode, yes, no); ("leaf", i) leads to a leaf."""
    rows = [(f, s, m, y, n) for f, s, m, y, n in nodes]

    def following(k: int) -> tuple[list[int], list[int]]:
        ends = [row[k] for row in rows]
        return (
            [e[1] if isinstance(e, tuple) else e for e in ends],
            [int(isinstance(e, tuple)) for e in ends],
        )

    (yes, yes_leaf), (no, no_leaf) = following(3), following(4)
    attributes = {
        "n_targets": 2,
        "tree_roots": [0],
        "nodes_featureids": [row[0] for row in rows],
        "nodes_splits": tensor([row[1] for row in rows]),
        "nodes_modes": tensor([row[2] for row in rows], np.uint8),
        "nodes_truenodeids": yes,
        "nodes_trueleafs": yes_leaf,
        "nodes_falsenodeids": no,
        "nodes_falseleafs": no_leaf,
        "leaf_weights": tensor([weight for weight, _ in leaves]),
        "leaf_targetids": [target for _, target in leaves],
        **more,
    }
    return computed(*one_node("TreeEnsemble", x, domain="ai.onnx.ml", version=5, **attributes))[0]


LEAVES = [(1.0, 0), (2.0, 1), (4.0, 0), (8.0, 1)]
NODES = [
    (0, 0.5, LEQ, 1, 2),
    (1, 2.0, GT, ("leaf", 0), ("leaf", 1)),
    (1, 3.0, NEQ, ("leaf", 2), ("leaf", 3)),
]
X = np.array([[0.5, 2.5], [0.4, 2], [1, 3], [1, np.nan], [np.nan, 3]], np.float32)


def test_each_row_reaches_one_leaf_of_a_tree():
    found = ensemble(X, NODES, LEAVES)
    np.testing.assert_array_equal(found, [[1, 0], [0, 2], [0, 8], [4, 0], [0, 8]])


def test_a_missing_number_passes_where_the_node_says_so():
    found = ensemble(X, NODES, LEAVES, nodes_missing_value_tracks_true=[1, 0, 0])
    np.testing.assert_array_equal(found[-1], [1, 0])


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [(0, [1.0, 4.0]), (1, [2, 8]), (2, [2, 8]), (3, [2, 8])],
)
def test_leaves_of_several_trees_are_merged(aggregate: int, expected):
    nodes = [(0, 0.0, GTE, ("leaf", 0), ("leaf", 1)), (1, 1.0, LT, ("leaf", 1), ("leaf", 2))]
    leaves = [(2.0, 0), (5.0, 0), (8.0, 1)]
    options = {"tree_roots": [0, 1], "aggregate_function": aggregate}
    found = ensemble(np.array([[1, 1]], np.float32), nodes, leaves, **options)
    np.testing.assert_array_equal(found, [expected])


def test_a_node_may_test_for_a_member_of_a_set():
    nodes = [
        (0, 0.0, MEMBER, ("leaf", 0), 1),
        (0, 9.0, EQ, ("leaf", 1), ("leaf", 2)),
        (0, 0.0, MEMBER, ("leaf", 0), ("leaf", 1)),
    ]
    members = tensor([1, 2, 3, np.nan, np.nan])
    x = np.array([[2], [3], [9], [4]], np.float32)
    found = ensemble(x, nodes, LEAVES[:3], membership_values=members)
    np.testing.assert_array_equal(found, [[1, 0], [1, 0], [0, 2], [4, 0]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tree_roots": [3]}, r"tree_roots \[3\]; need nodes of 0 to 2"),
        ({"nodes_truenodeids": [0, 0, 2]}, "a node leads back to itself; need trees"),
        ({"nodes_falsenodeids": [2, 9, 3]}, "node 1 leads to leaf 9"),
        ({"nodes_featureids": [0, 1, 2]}, "node 2: feature 2 of 2"),
        ({"leaf_targetids": [0, 1, 2, 0]}, "4 leaf_targetids for 4 leaves, 2 targets"),
        ({"aggregate_function": 7}, "aggregate_function 7; need 0 to 3"),
    ],
)
def test_trees_that_contradict_themselves_are_refused(change, message: str):
    with pytest.raises(InputError, match=message):
        ensemble(X, NODES, LEAVES, **change)
