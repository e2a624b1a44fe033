"""Tree ensembles of the domain ai.onnx.ml: all trees are walked at once, level by level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ..building import is_float
from .node import Importer, Node, Results
from .ops_categories import labels_of
from .ops_extremes import first_largest
from .ops_learned import rows_of_features, transformed
from .tensors import Array

COMPARISONS: dict[int, Callable[[SSAValue, SSAValue], nn.PureTensorOp]] = {
    0: nn.LessEqualOp,
    1: nn.LessOp,
    2: nn.GreaterEqualOp,
    3: nn.GreaterOp,
    4: nn.EqualOp,
}
"""The tests of nodes, by mode."""

EQUAL, DIFFERENT, MEMBER = 4, 5, 6
"""The modes that test for equality, for inequality, and for membership of a set."""

TRANSFORM_NAMES = {0: "NONE", 1: "SOFTMAX", 2: "LOGISTIC", 3: "SOFTMAX_ZERO", 4: "PROBIT"}
"""The names of post_transform."""


@dataclass
class _Test:
    """A node of a tree. If its feature passes the test, `yes` is the next node, else `no`.

    Attributes:
        missing: whether NaN passes.
        yes_leaf, no_leaf: whether the next node is a leaf.
    """

    feature: int
    split: float
    mode: int
    missing: bool
    yes: int
    no: int
    yes_leaf: bool
    no_leaf: bool


def _column(node: Node, name: str) -> Array:
    return node.tensor(name).reshape(-1)


def _tests(node: Node, leaves: int, features: int) -> list[_Test]:
    """The nodes of all trees."""
    names = ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    feature, yes, no, yes_leaf, no_leaf = (node.integers(f"nodes_{name}") for name in names)
    split, mode = _column(node, "nodes_splits"), _column(node, "nodes_modes")
    missing = node.integers("nodes_missing_value_tracks_true", [0] * len(feature))
    columns = (feature, split, mode, missing, yes, no, yes_leaf, no_leaf)
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1 or not lengths[0]:
        raise node.bad(f"lists of {lengths} numbers for nodes; need one or more, of each as many")
    tests = [
        _Test(int(f), float(s), int(m), bool(g), int(y), int(n), bool(a), bool(b))
        for f, s, m, g, y, n, a, b in zip(*columns, strict=True)
    ]
    for i, each in enumerate(tests):
        if not 0 <= each.feature < features or not 0 <= each.mode <= MEMBER:
            raise node.bad(f"node {i}: feature {each.feature} of {features}, mode {each.mode}")
        for following, leaf in ((each.yes, each.yes_leaf), (each.no, each.no_leaf)):
            if not 0 <= following < (leaves if leaf else len(tests)):
                raise node.bad(f"node {i} leads to {'leaf' if leaf else 'node'} {following}")
    return _without_sets(node, tests)


def _without_sets(node: Node, tests: list[_Test]) -> list[_Test]:
    """The nodes, with each set test replaced by a chain of equality tests, one per member."""
    sets = [i for i, each in enumerate(tests) if each.mode == MEMBER]
    if not sets:
        return tests
    values = _column(node, "membership_values")
    ends = np.flatnonzero(np.isnan(values))
    if len(ends) != len(sets):
        raise node.bad(f"{len(ends)} sets in membership_values of {len(sets)} nodes")
    for at, members in zip(sets, np.split(values, ends + 1), strict=False):
        # An empty set becomes a comparison with NaN, which nothing equals.
        tests[at].mode, tests[at].split = EQUAL, float(members[0])
        for member in members[1:-1]:
            tests.append(replace(tests[at], split=float(member)))
            tests[at].no, tests[at].no_leaf = len(tests) - 1, False
            at = len(tests) - 1
    return tests


def _depth(
    node: Node, yes: NDArray[np.int64], no: NDArray[np.int64], roots: Sequence[int], first: int
) -> int:
    """The largest number of steps from the roots to leaves. Leaves are numbered from `first` on."""
    reached = np.unique(np.array(roots))
    for steps in range(first + 1):
        inner = reached[reached < first]
        if not inner.size:
            return steps
        reached = np.unique(np.concatenate([yes[inner], no[inner]]))
    raise node.bad("a node leads back to itself; need trees")


def _tree_ensemble(node: Node) -> Results:
    value = rows_of_features(node)
    dtype = numpy_dtype(nn.element_of(value))
    leaves = _column(node, "leaf_weights").astype(dtype)
    targets, count = np.array(node.integers("leaf_targetids")), node.integer("n_targets", 1)
    if len(targets) != len(leaves) or ((targets < 0) | (targets >= count)).any():
        raise node.bad(f"{len(targets)} leaf_targetids for {len(leaves)} leaves, {count} targets")
    tests = _tests(node, len(leaves), nn.shape_of(value)[1])
    roots = node.integers("tree_roots")
    if not roots or not all(0 <= root < len(tests) for root in roots):
        raise node.bad(f"tree_roots {roots}; need nodes of 0 to {len(tests) - 1}")
    at = _leaf_reached(node, value, tests, roots, len(leaves))
    rows = nn.shape_of(value)[0]
    weight = node.add(nn.GatherOp(node.emitted(leaves), at, 0))
    target = node.add(nn.GatherOp(node.emitted(targets.astype(np.int32)), at, 0))
    weight, target = (node.reshape(each, (rows, len(roots), 1)) for each in (weight, target))
    is_target = node.add(nn.EqualOp(target, node.emitted(node.counted(count, np.int32))))
    return _aggregated(node, weight, is_target, len(roots))


def _leaf_reached(
    node: Node, value: SSAValue, tests: list[_Test], roots: list[int], leaves: int
) -> SSAValue:
    """The leaf that each row of features reaches in each tree, [rows, trees]."""
    first = len(tests)
    itself = np.arange(first, first + leaves)
    yes, no = (
        np.concatenate([[n + first * leaf for n, leaf in pairs], itself]).astype(np.int64)
        for pairs in (
            [(each.yes, each.yes_leaf) for each in tests],
            [(each.no, each.no_leaf) for each in tests],
        )
    )
    shape = (nn.shape_of(value)[0], len(roots))
    at = node.emitted(np.broadcast_to(np.array(roots, np.int32), shape))
    for _ in range(_depth(node, yes, no, roots, first)):
        at = _next(node, value, tests, at, yes, no)
    return node.add(nn.ShiftOp(at, -float(first)))


def _next(
    node: Node,
    value: SSAValue,
    tests: list[_Test],
    at: SSAValue,
    yes: NDArray[np.int64],
    no: NDArray[np.int64],
) -> SSAValue:
    """The next node or leaf of each row of features, in each tree.

    Args:
        at: the present ones.
    """
    rest = len(yes) - len(tests)

    def looked_up(numbers: Sequence[float], dtype: np.dtype[np.generic]) -> SSAValue:
        table = np.array([*numbers, *[0] * rest]).astype(dtype)
        if (table == table[0]).all():
            return node.emitted(table[:1].reshape(()))
        return node.add(nn.GatherOp(node.emitted(table), at, 0))

    dtype = numpy_dtype(nn.element_of(value))
    whole, boolean = np.dtype(np.int32), np.dtype(np.bool_)
    feature = looked_up([each.feature for each in tests], whole)
    if not nn.shape_of(feature):
        feature = node.add(nn.ExpandOp(feature, nn.shape_of(at)))
    read = node.add(nn.GatherAlongOp(value, feature, 1))
    split = looked_up([each.split for each in tests], dtype)
    passed = _passed(node, read, split, tests, looked_up)
    if any(each.missing for each in tests):
        missing = looked_up([each.missing for each in tests], boolean)
        also = node.add(nn.LogicalAndOp(node.add(nn.IsNaNOp(read)), missing))
        passed = node.add(nn.LogicalOrOp(passed, also))
    following = (
        node.add(nn.GatherOp(node.emitted(table.astype(np.int32)), at, 0)) for table in (yes, no)
    )
    return node.add(nn.SelectOp(passed, *following))


def _passed(
    node: Node,
    read: SSAValue,
    split: SSAValue,
    tests: list[_Test],
    looked_up: Callable[[Sequence[float], np.dtype[np.generic]], SSAValue],
) -> SSAValue:
    """Whether the features that were read pass the nodes' tests, each with its own mode."""
    modes = sorted({each.mode for each in tests})
    results: list[SSAValue] = []
    for mode in modes:
        if mode == DIFFERENT:
            results.append(node.add(nn.LogicalNotOp(node.add(nn.EqualOp(read, split)))))
        else:
            results.append(node.add(COMPARISONS[mode](read, split)))
    found = results[0]
    for mode, other in zip(modes[1:], results[1:], strict=True):
        is_mode = looked_up([each.mode == mode for each in tests], np.dtype(np.bool_))
        found = node.add(
            nn.LogicalOrOp(
                node.add(nn.LogicalAndOp(is_mode, other)),
                node.add(nn.LogicalAndOp(node.add(nn.LogicalNotOp(is_mode)), found)),
            )
        )
    return found


def _aggregated(node: Node, weight: SSAValue, is_target: SSAValue, trees: int) -> SSAValue:
    """The weights of the leaves of all trees, merged for each target."""
    aggregate = node.integer("aggregate_function", 1)
    combiner, none = _combiner(node, aggregate, numpy_dtype(nn.element_of(weight)))
    each = node.add(nn.SelectOp(is_target, weight, node.constant(none, weight)))
    total = node.add(nn.ReduceOp(each, combiner, [1]))
    total = node.add(nn.ScaleOp(total, 1 / trees)) if aggregate == 0 else total
    transform = node.integer("post_transform", 0)
    return transformed(node, total, TRANSFORM_NAMES.get(transform, str(transform)))


def _combiner(node: Node, aggregate: int, dtype: np.dtype[np.generic]) -> tuple[str, float]:
    """The combiner for the weights of trees, and the value for a target that a leaf does not
    have."""
    limits = np.finfo(cast("np.dtype[np.floating]", dtype))
    combiners = {
        0: ("sum", 0.0),
        1: ("sum", 0.0),
        2: ("min", float(limits.max)),
        3: ("max", float(limits.min)),
    }
    if aggregate not in combiners:
        raise node.bad(f"aggregate_function {aggregate}; need 0 to 3")
    return combiners[aggregate]


# TreeEnsembleRegressor and TreeEnsembleClassifier, which list nodes by tree

MODES = {
    b"BRANCH_LEQ": 0,
    b"BRANCH_LT": 1,
    b"BRANCH_GTE": 2,
    b"BRANCH_GT": 3,
    b"BRANCH_EQ": 4,
    b"BRANCH_NEQ": 5,
}
LEAF = b"LEAF"
"""The names of modes."""

AGGREGATES = {"SUM": 1, "AVERAGE": 0, "MIN": 2, "MAX": 3}
"""The numbers of aggregate_function in TreeEnsemble."""


@dataclass
class _Forest:
    """Trees whose leaves are numbered.

    Attributes:
        numbers: of each leaf, by tree and node.
    """

    tests: list[_Test]
    roots: list[int]
    numbers: dict[tuple[int, int], int]


def _numbers(node: Node, name: str) -> Array:
    """An attribute of floats: a list or, in later versions, a tensor; empty if neither is given."""
    if node.has_attribute(f"{name}_as_tensor"):
        return node.tensor(f"{name}_as_tensor").reshape(-1)
    return np.array(node.numbers(name, []), np.float32)


def _forest(node: Node, features: int) -> _Forest:
    """The trees that the attributes nodes_... list."""
    trees, numbers = node.integers("nodes_treeids", []), node.integers("nodes_nodeids", [])
    feature, yes, no = (
        node.integers(f"nodes_{name}", []) for name in ("featureids", "truenodeids", "falsenodeids")
    )
    modes = (
        list(node.attributes["nodes_modes"].strings) if node.has_attribute("nodes_modes") else []
    )
    split = _numbers(node, "nodes_values")
    missing = node.integers("nodes_missing_value_tracks_true", []) or [0] * len(trees)
    columns = (trees, numbers, feature, yes, no, modes, split, missing)
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1 or not trees:
        raise node.bad(f"lists of {lengths} numbers for nodes; need one or more, of each as many")
    keys = list(zip(trees, numbers, strict=True))
    if len(set(keys)) != len(keys):
        raise node.bad("a node of a tree is listed twice")
    leaves = {
        key: i for i, key in enumerate(k for k, m in zip(keys, modes, strict=True) if m == LEAF)
    }
    inner = {key: i for i, key in enumerate(k for k in keys if k not in leaves)}
    followers: set[tuple[int, int]] = set()
    tests: list[_Test] = []
    for key, f, y, n, mode, value, gap in zip(keys, *columns[2:], strict=True):
        if key in leaves:
            continue
        if mode not in MODES:
            raise node.bad(f"mode {mode.decode(errors='replace')!r} of node {key[1]}")
        if not 0 <= f < features:
            raise node.bad(f"feature {f} of node {key[1]}; the rows have {features}")
        places: list[tuple[int, bool]] = []
        for follower in ((key[0], y), (key[0], n)):
            if follower not in inner and follower not in leaves:
                raise node.bad(f"node {key[1]} of tree {key[0]} leads to node {follower[1]}")
            followers.add(follower)
            is_leaf = follower in leaves
            places.append((leaves[follower] if is_leaf else inner[follower], is_leaf))
        (y, y_leaf), (n, n_leaf) = places
        tests.append(_Test(f, float(value), MODES[mode], bool(gap), y, n, y_leaf, n_leaf))
    tops: dict[int, tuple[int, int]] = {}
    for key in keys:
        if key not in followers:
            tops.setdefault(key[0], key)
    if len(tops) != len(set(trees)):
        raise node.bad("a tree has no root: each of its nodes follows another")
    roots = [inner[k] if k in inner else len(tests) + leaves[k] for k in tops.values()]
    return _Forest(tests, roots, leaves)


def _totals(
    node: Node, prefix: str, count: int, aggregate: int
) -> tuple[SSAValue, list[int], NDArray[np.floating]]:
    """Merged weights [rows, count] of the leaves that rows reach, with the columns and the weights.

    Args:
        prefix: of the attributes that list weights, target or class.
        aggregate: as in TreeEnsemble.
    """
    value = rows_of_features(node)
    if not is_float(value):
        value = node.cast(value, f32)
    forest = _forest(node, nn.shape_of(value)[1])
    columns = node.integers(f"{prefix}_ids", [])
    places = list(
        zip(
            node.integers(f"{prefix}_treeids", []),
            node.integers(f"{prefix}_nodeids", []),
            strict=False,
        )
    )
    weights = _numbers(node, f"{prefix}_weights")
    if not len(places) == len(columns) == len(weights) or not places:
        raise node.bad(f"{len(columns)} {prefix}_ids and {len(weights)} weights of leaves")
    if not set(columns) <= set(range(count)) or not set(places) <= forest.numbers.keys():
        raise node.bad(f"{prefix}_ids of 0 to {count - 1}, and weights of leaves, are needed")
    dtype = numpy_dtype(nn.element_of(value))
    combiner, none = _combiner(node, aggregate, dtype)
    table = np.full((len(forest.numbers), count), none, dtype)
    at = (np.array([forest.numbers[each] for each in places]), np.array(columns))
    if combiner == "sum":
        np.add.at(table, at, weights.astype(dtype))
    else:
        table[at] = weights
        table[:, [i for i in range(count) if i not in set(columns)]] = 0
    tests, roots = forest.tests, forest.roots
    if tests:
        reached = _leaf_reached(node, value, tests, roots, len(table))
    else:
        shape = (nn.shape_of(value)[0], len(roots))
        reached = node.emitted(np.broadcast_to(np.array(roots, np.int32), shape))
    found = node.add(nn.GatherOp(node.emitted(table), reached, 0))
    total = node.add(nn.ReduceOp(found, combiner, [1]))
    total = node.reshape(total, (nn.shape_of(value)[0], count))
    total = node.add(nn.ScaleOp(total, 1 / len(roots))) if aggregate == 0 else total
    return total, columns, weights


def _with_base(node: Node, total: SSAValue, base: Array) -> SSAValue:
    """Totals plus a base per column, or one base for all."""
    if not base.size:
        return total
    if base.size not in (1, nn.shape_of(total)[1]):
        raise node.bad(f"{base.size} base_values for {nn.shape_of(total)[1]} columns")
    dtype = numpy_dtype(nn.element_of(total))
    return node.add(nn.AddOp(total, node.emitted(base.astype(dtype))))


def _tree_regressor(node: Node) -> Results:
    name = node.text("aggregate_function", "SUM")
    if name not in AGGREGATES:
        raise node.bad(f"aggregate_function {name}; need one of {', '.join(AGGREGATES)}")
    total, _, _ = _totals(node, "target", node.integer("n_targets", 1), AGGREGATES[name])
    total = _with_base(node, total, _numbers(node, "base_values"))
    return node.cast(transformed(node, total, node.text("post_transform", "NONE")), f32)


def _tree_classifier(node: Node) -> Results:
    """The label of the largest score, and the scores.

    If only one of two classes has weights, there is one score s, as in onnxruntime. If no weight is
    negative, s is a probability: the scores are 1 - s and s, and the second label applies if s is
    above 0.5. Otherwise the scores are -s and s, and it applies if s is above 0. LOGISTIC turns -s
    and s into probabilities.
    """
    labels = labels_of(node, "classlabels_strings", "classlabels_int64s")
    classes = len(labels.names)
    if classes < 2:
        raise node.unsupported("one class", "need two or more")
    name = node.text("post_transform", "NONE")
    total, columns, weights = _totals(node, "class", classes, 1)
    base, rows = _numbers(node, "base_values"), nn.shape_of(total)[0]
    if classes > 2 or len(set(columns)) > 1:
        total = _with_base(node, total, base)
        scores = transformed(node, total, name)
        place = node.reshape(first_largest(node, total, 1), (rows,))
        return [labels.at(node, place), node.cast(scores, f32)]
    column = node.add(nn.SliceOp(total, [0, columns[0]], [1, 1], [rows, 1]))
    one = _with_base(node, column, base[-1:])
    positive = bool((weights >= 0).all())
    other = node.add(nn.NegOp(one))
    if positive and name != "LOGISTIC":
        other = node.add(nn.ShiftOp(other, 1.0))
    scores = node.add(nn.ConcatOp([other, one], 1))
    scores = node.add(nn.SigmoidOp(scores)) if name == "LOGISTIC" else scores
    least = node.constant(0.5 if positive else 0.0, one)
    place = node.cast(node.reshape(node.add(nn.GreaterOp(one, least)), (rows,)), i32)
    return [labels.at(node, place), node.cast(scores, f32)]


TREES: dict[str, Importer] = {
    "TreeEnsemble": _tree_ensemble,
    "TreeEnsembleRegressor": _tree_regressor,
    "TreeEnsembleClassifier": _tree_classifier,
}
"""Importers of the domain ai.onnx.ml."""
