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


# Trees whose nodes are listed by tree, as scikit-learn's are

LISTED = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 2, 2, 2],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 5, 6, 7],
    "nodes_featureids": [0, 1, 0, 0, 0, 0, 1, 0, 0],
    "nodes_modes": [
        *("BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF"),
        *("LEAF", "BRANCH_NEQ", "LEAF", "LEAF"),
    ],
    "nodes_values": [0.5, 2.0, 0, 0, 0, 0, 3.0, 0, 0],
    "nodes_truenodeids": [1, 2, 0, 0, 0, 0, 6, 0, 0],
    "nodes_falsenodeids": [4, 3, 0, 0, 0, 0, 7, 0, 0],
}
"""Three trees: one of two tests, one leaf, and one of one test whose root is node 5."""

LEAF_OF = [(0, 2), (0, 3), (0, 4), (1, 0), (2, 6), (2, 7)]


def listed(operator: str, results: int, prefix: str, weights: list[list[float]], **more):
    """The results for X. weights: of each leaf of LEAF_OF, for each target or class."""
    rows = [(*leaf, i, w) for leaf, ws in zip(LEAF_OF, weights) for i, w in enumerate(ws)]
    names = ("treeids", "nodeids", "ids", "weights")
    own = {f"{prefix}_{n}": list(c) for n, c in zip(names, zip(*rows), strict=True)}
    model = one_node(
        operator, X, domain="ai.onnx.ml", version=3, results=results, **LISTED, **own, **more
    )
    return computed(*model)


@pytest.mark.parametrize(
    ("aggregate", "merge"),
    [("SUM", np.sum), ("AVERAGE", np.mean), ("MIN", np.min), ("MAX", np.max)],
)
def test_a_regressor_merges_the_weights_of_one_leaf_per_tree(aggregate: str, merge: Any):
    weights = [[1.0, -1], [2, -2], [4, -4], [0.5, 0.25], [8, -8], [16, -16]]
    more = {"n_targets": 2, "aggregate_function": aggregate, "base_values": [100.0, 200.0]}
    (found,) = listed("TreeEnsembleRegressor", 1, "target", weights, **more)
    reached = [(0, 3, 4), (1, 3, 4), (2, 3, 5), (2, 3, 4), (2, 3, 5)]
    expected = [merge([weights[i] for i in each], 0) + [100, 200] for each in reached]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_classifier_gives_the_label_of_the_largest_score():
    weights = [[1.0, 0, 0], [0, 2, 0], [0, 0, 4], [1, 0, 0], [0, 1, 0], [2.5, 0, 1]]
    label, scores = listed(
        "TreeEnsembleClassifier", 2, "class", weights, classlabels_int64s=[7, 3, 5]
    )
    np.testing.assert_array_equal(scores[:3], [[2, 1, 0], [1, 3, 0], [3.5, 0, 5]])
    np.testing.assert_array_equal(label, [7, 3, 5, 5, 5])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_two_classes_may_have_one_score_as_in_onnxruntime(sign: int, transform: str):
    weights = [[0.125 * sign], [0.25], [0.5], [0.125], [0.125], [0.0]]
    more = {"classlabels_int64s": [4, 9], "post_transform": transform}
    label, scores = listed("TreeEnsembleClassifier", 2, "class", weights, **more)
    one = np.array([0.25 + 0.125 * sign, 0.5, 0.625, 0.75, 0.625])
    np.testing.assert_array_equal(label, np.where(one > (0.5 if sign > 0 else 0), 9, 4))
    pair = np.stack([-one, one], 1)
    if transform == "LOGISTIC":
        pair = 1 / (1 + np.exp(-pair))
    elif sign > 0:
        pair[:, 0] += 1
    np.testing.assert_allclose(scores, pair, rtol=1e-6)


def test_damaged_trees_are_refused_with_what_is_wrong():
    more = {"n_targets": 1}
    with pytest.raises(InputError, match=r"target_ids of 0 to 0"):
        listed("TreeEnsembleRegressor", 1, "target", [[1.0, 2.0]] * 6, **more)
    for name, index, value, what in (
        ("nodes_truenodeids", 0, 11, "node 0 of tree 0 leads to node 11"),
        ("nodes_featureids", 1, 2, "feature 2 of node 1; the rows have 2"),
        ("nodes_modes", 0, "ODD", "mode 'ODD' of node 0"),
    ):
        changed = {**LISTED, name: [value if i == index else v for i, v in enumerate(LISTED[name])]}
        model = one_node(
            "TreeEnsembleRegressor",
            X,
            domain="ai.onnx.ml",
            version=3,
            **changed,
            target_treeids=[1],
            target_nodeids=[0],
            target_ids=[0],
            target_weights=[1.0],
        )
        with pytest.raises(InputError, match=what):
            computed(*model)
