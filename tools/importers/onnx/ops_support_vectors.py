"""Support vector machines of the domain ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Region, SSAValue

from ....dialects import control, nn
from ..loops import in_block
from .node import Importer, Node, Results
from .ops_categories import labels_of
from .ops_extremes import first_largest
from .ops_learned import rows_of_features, transformed
from .tensors import Array

MOST_SWEEPS = 100
"""The most sweeps of the search for probabilities. Source: libsvm, multiclass_probability."""

PRECISION = 0.005
"""The allowed error of probabilities, times the number of classes. Source: as MOST_SWEEPS."""

LEAST_PROBABILITY = 1e-7
"""The least probability of one of two classes. Source: as MOST_SWEEPS."""


def _squared_distances(node: Node, value: SSAValue, vectors: Array) -> SSAValue:
    """The squared distance of each row of features from each vector, [rows, vectors]."""
    rows, features = nn.shape_of(value)
    column = node.reshape(value, (rows, 1, features))
    apart = node.add(nn.SubOp(column, node.emitted(vectors)))
    return node.add(nn.ReduceOp(node.add(nn.SquareOp(apart)), "sum", [2]))


def _products(node: Node, value: SSAValue, vectors: Array) -> SSAValue:
    return node.add(nn.MatMulOp(value, node.emitted(vectors), transpose_rhs=True))


def _linear(node: Node, value: SSAValue, vectors: Array, *_: float) -> SSAValue:
    return _products(node, value, vectors)


def _scaled(node: Node, value: SSAValue, vectors: Array, gamma: float, constant: float) -> SSAValue:
    scaled = node.add(nn.ScaleOp(_products(node, value, vectors), gamma))
    return node.add(nn.ShiftOp(scaled, constant))


def _power(
    node: Node, value: SSAValue, vectors: Array, gamma: float, constant: float, degree: float
) -> SSAValue:
    base = _scaled(node, value, vectors, gamma, constant)
    return node.add(nn.PowOp(base, node.constant(degree, base)))


def _sigmoid(
    node: Node, value: SSAValue, vectors: Array, gamma: float, constant: float, _: float
) -> SSAValue:
    return node.add(nn.TanhOp(_scaled(node, value, vectors, gamma, constant)))


def _radial(node: Node, value: SSAValue, vectors: Array, gamma: float, *_: float) -> SSAValue:
    distances = _squared_distances(node, value, vectors)
    return node.add(nn.ExpOp(node.add(nn.ScaleOp(distances, -gamma))))


KERNELS: dict[str, Callable[..., SSAValue]] = {
    "LINEAR": _linear,
    "POLY": _power,
    "RBF": _radial,
    "SIGMOID": _sigmoid,
}
"""The kernels, by name. Arguments are rows, vectors, gamma, the constant and the degree."""


def _kernels(node: Node, count: int) -> SSAValue:
    """The kernel of each row of features with each support vector, [rows, vectors].

    Args:
        count: the number of support vectors.
    """
    value = rows_of_features(node)
    value = value if nn.element_of(value) == f32 else node.cast(value, f32)
    vectors = np.array(node.numbers("support_vectors"), np.float32)
    features = nn.shape_of(value)[1]
    if vectors.size != count * features:
        raise node.bad(f"{vectors.size} numbers in {count} vectors; the rows have {features}")
    kind = node.text("kernel_type", "LINEAR")
    if kind not in KERNELS:
        raise node.bad(f"kernel {kind!r}; need one of {', '.join(KERNELS)}")
    gamma, constant, degree = (*node.numbers("kernel_params"), 0.0, 0.0, 3.0)[:3]
    return KERNELS[kind](node, value, vectors.reshape(count, features), gamma, constant, degree)


def _regressor(node: Node) -> Results:
    count = node.integer("n_supports", 0)
    if not count:
        raise node.unsupported("a model without support vectors", "need one or more")
    coefficients = np.array(node.numbers("coefficients"), np.float32)
    rho = np.array(node.numbers("rho"), np.float32)
    if coefficients.size != count or not rho.size:
        raise node.bad(f"{coefficients.size} coefficients of {count} vectors, and {rho.size} rho")
    products = nn.MatMulOp(_kernels(node, count), node.emitted(coefficients.reshape(count, 1)))
    found = node.add(nn.AddOp(node.add(products), node.emitted(rho[:1])))
    if node.flag("one_class"):
        inside = node.add(nn.GreaterOp(found, node.constant(0.0, found)))
        one = node.constant(1.0, found)
        found = node.add(nn.SelectOp(inside, one, node.constant(-1.0, found)))
    return transformed(node, found, node.text("post_transform", "NONE"))


def _classifier(node: Node) -> Results:
    """The label with the most votes of all pairs of classes, and scores.

    With `prob_a`, the scores are the probabilities of the classes. Otherwise they are those of the
    pairs; of two classes, -s and s, as in onnxruntime.
    """
    labels = labels_of(node, "classlabels_strings", "classlabels_ints")
    per_class = np.array(node.integers("vectors_per_class", []), np.int64)
    classes, count = len(labels.names), int(per_class.sum())
    if not count:
        raise node.unsupported("a model without support vectors", "need one or more")
    if len(per_class) != classes or classes < 2 or (per_class < 0).any():
        raise node.bad(f"{len(per_class)} vectors_per_class of {classes} labels")
    pairs = np.array(list(combinations(range(classes), 2)))
    scores = _pair_scores(node, per_class, pairs)
    rows = nn.shape_of(scores)[0]
    first = node.cast(node.add(nn.GreaterOp(scores, node.constant(0.0, scores))), f32)
    # A pair votes for its first class if its score is above 0, else for its second.
    votes = np.zeros((2, len(pairs), classes), np.float32)
    votes[0, np.arange(len(pairs)), pairs[:, 0]] = 1
    votes[1, np.arange(len(pairs)), pairs[:, 1]] = 1
    counted = node.add(nn.MatMulOp(first, node.emitted(votes[0] - votes[1])))
    counted = node.add(nn.AddOp(counted, node.emitted(votes[1].sum(0))))
    place = node.reshape(first_largest(node, counted, 1), (rows,))
    name = node.text("post_transform", "NONE")
    if node.has_attribute("prob_a"):
        found = _probabilities(node, scores, pairs, classes)
    elif classes == 2:
        if name != "NONE":
            raise node.unsupported(f"post_transform {name} of two classes", "NONE is")
        found = node.add(nn.ConcatOp([node.add(nn.NegOp(scores)), scores], 1))
    else:
        found = scores
    return [labels.at(node, place), transformed(node, found, name)]


def _pair_scores(node: Node, per_class: Array, pairs: Array) -> SSAValue:
    """The score of each pair of classes for each row of features, [rows, pairs].

    Coefficients are [classes - 1, vectors]: row j - 1 holds those of the vectors of a class i for
    the pair (i, j), and row i those of the vectors of j.
    """
    classes, count = len(per_class), int(per_class.sum())
    given = np.array(node.numbers("coefficients"), np.float32)
    rho = np.array(node.numbers("rho"), np.float32)
    if given.size != (classes - 1) * count or rho.size != len(pairs):
        raise node.bad(
            f"{given.size} coefficients and {rho.size} rho; need {(classes - 1) * count} and "
            f"{len(pairs)}"
        )
    given, owner = given.reshape(classes - 1, count), np.repeat(np.arange(classes), per_class)
    first, second = pairs[:, :1], pairs[:, 1:]
    matrix = np.where(owner == first, given[second[:, 0] - 1], 0)
    matrix = np.where(owner == second, given[first[:, 0]], matrix).astype(np.float32)
    products = node.add(nn.MatMulOp(_kernels(node, count), node.emitted(matrix.T)))
    return node.add(nn.AddOp(products, node.emitted(rho)))


def _probabilities(node: Node, scores: SSAValue, pairs: Array, classes: int) -> SSAValue:
    """The probabilities of the classes from the scores of their pairs, [rows, classes].

    They minimise the differences from the probabilities of the pairs. Source: Wu, Lin and Weng,
    Probability Estimates for Multi-class Classification by Pairwise Coupling, 2004, algorithm 2.
    """
    rows = nn.shape_of(scores)[0]
    a, b = (np.array(node.numbers(name), np.float32) for name in ("prob_a", "prob_b"))
    if a.size != len(pairs) or b.size != len(pairs):
        raise node.bad(f"{a.size} prob_a and {b.size} prob_b; need {len(pairs)}")
    logits = node.add(nn.AddOp(node.add(nn.MulOp(scores, node.emitted(a))), node.emitted(b)))
    each = node.add(nn.SigmoidOp(node.add(nn.NegOp(logits))))
    each = node.add(nn.MaxOp(each, node.constant(LEAST_PROBABILITY, each)))
    each = node.add(nn.MinOp(each, node.constant(1 - LEAST_PROBABILITY, each)))
    other = node.add(nn.ShiftOp(node.add(nn.NegOp(each)), 1.0))
    both = node.add(nn.ConcatOp([each, other], 1))
    # The place of r[i, j], the probability of i if it is i or j, among both; 0 on the diagonal.
    at = np.zeros((classes, classes), np.int64)
    at[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    at[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs)) + len(pairs)
    apart = node.emitted(1 - np.eye(classes, dtype=np.float32))
    r, turned = (
        node.reshape(
            node.add(nn.GatherOp(both, node.emitted(places.reshape(-1)), 1)),
            (rows, classes, classes),
        )
        for places in (at, at.T)
    )
    turned = node.add(nn.MulOp(turned, apart))
    diagonal = node.add(nn.ReduceOp(node.add(nn.SquareOp(turned)), "sum", [2], keep_dims=True))
    diagonal = node.add(nn.MulOp(diagonal, node.emitted(np.eye(classes, dtype=np.float32))))
    q = node.add(nn.SubOp(diagonal, node.add(nn.MulOp(turned, r))))
    begin = node.emitted(np.full((rows, classes), 1 / classes, np.float32))
    return _coupled(node, q, begin)


def _coupled(node: Node, q: SSAValue, begin: SSAValue) -> SSAValue:
    """The p that minimises p q p, of sum 1: sweeps over the classes until all rows are near.

    Args:
        q: [rows, classes, classes].
        begin: the first p, [rows, classes].
    """
    state = [node.emitted(np.array(0, np.int32)), node.emitted(np.array(True)), begin]
    types = [each.type for each in state]
    with in_block(node, types) as body:
        number, _, p = body.args
        new, on = _sweep(node, q, p)
        following = node.add(nn.ShiftOp(number, 1.0))
        node.add_control(control.YieldOp(following, on, new))
    with in_block(node, types) as test:
        below = node.add(nn.LessOp(test.args[0], node.constant(MOST_SWEEPS, test.args[0])))
        node.add_control(control.ConditionOp(node.add(nn.LogicalAndOp(below, test.args[1]))))
    return node.add_control(control.WhileOp(state, Region(test), Region(body)))[2]


def _sweep(node: Node, q: SSAValue, p: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The next p, in which rows that are near enough stay, and whether a row was not."""
    rows, classes = nn.shape_of(p)

    def sum_of(value: SSAValue) -> SSAValue:
        return node.add(nn.ReduceOp(value, "sum", [1], keep_dims=True))

    def row(i: int) -> SSAValue:
        part = node.add(nn.SliceOp(q, [0, i, 0], [1, 1, 1], [rows, 1, classes]))
        return node.reshape(part, (rows, classes))

    def entry(value: SSAValue, i: int) -> SSAValue:
        return node.add(nn.SliceOp(value, [0, i], [1, 1], [rows, 1]))

    spread = node.reshape(p, (rows, 1, classes))
    qp = node.add(nn.ReduceOp(node.add(nn.MulOp(q, spread)), "sum", [2]))
    pqp = sum_of(node.add(nn.MulOp(p, qp)))
    errors = node.add(nn.AbsOp(node.add(nn.SubOp(qp, pqp))))
    worst = node.add(nn.ReduceOp(errors, "max", [1], keep_dims=True))
    is_far = node.add(nn.GreaterEqualOp(worst, node.constant(PRECISION / classes, worst)))
    new = p
    for i in range(classes):
        own = row(i)
        near, middle = entry(qp, i), entry(own, i)
        step = node.add(nn.DivOp(node.add(nn.SubOp(pqp, near)), middle))
        total = node.add(nn.ShiftOp(step, 1.0))
        one = node.emitted(np.eye(classes, dtype=np.float32)[i])
        new = node.add(nn.AddOp(new, node.add(nn.MulOp(step, one))))
        new = node.add(nn.DivOp(new, total))
        twice = node.add(nn.AddOp(near, near))
        growth = node.add(nn.AddOp(node.add(nn.MulOp(step, middle)), twice))
        pqp = node.add(nn.AddOp(pqp, node.add(nn.MulOp(step, growth))))
        pqp = node.add(nn.DivOp(node.add(nn.DivOp(pqp, total)), total))
        qp = node.add(nn.AddOp(qp, node.add(nn.MulOp(step, own))))
        qp = node.add(nn.DivOp(qp, total))
    on = node.add(nn.ReduceOp(node.cast(is_far, f32), "max", [0, 1]))
    on = node.add(nn.GreaterOp(on, node.constant(0.0, on)))
    return node.add(nn.SelectOp(is_far, new, p)), on


SUPPORT_VECTORS: dict[str, Importer] = {
    "SVMRegressor": _regressor,
    "SVMClassifier": _classifier,
}
"""Importers of the domain ai.onnx.ml."""
