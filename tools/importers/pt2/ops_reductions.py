"""ATen operators that merge elements along axes, and scans and sorts along one axis."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ....dialects import nn
from ....ir.support.number_kinds import is_floating
from ..building import dtype_of
from ..onnx.ops_normalise import moments
from .aten_node import I64, AtenNode, Importer, Results, only

BOOL = np.dtype(np.bool_)


def _all_axes(node: AtenNode) -> list[int]:
    """The axes in the argument dim; all of them if none are given."""
    return node.axes("dim", len(node.shape("self"))) if node.shape("self") else []


def _reduced(
    node: AtenNode, operator: str, value: SSAValue, axes: list[int], *, keep: bool
) -> SSAValue:
    if not axes:
        return value
    return node.apply(operator, value, node.integers_known(axes), keepdims=int(keep))


def _total(operator: str) -> Importer:
    """A sum or a product. Truth values and narrow integers become int64."""

    def importer(node: AtenNode) -> Results:
        own = node.dtype("self")
        dtype = node.wanted_dtype(own if is_floating(own) else I64)
        value = node.converted(node.value("self"), dtype)
        return _reduced(node, operator, value, _all_axes(node), keep=node.flag("keepdim", False))

    return importer


def _prod(node: AtenNode) -> Results:
    own = node.dtype("self")
    dtype = node.wanted_dtype(own if is_floating(own) else I64)
    value, rank = node.converted(node.value("self"), dtype), len(node.shape("self"))
    axes = [node.along(node.integer("dim"), rank)] if node.has("dim") else list(range(rank))
    return _reduced(node, "ReduceProd", value, axes, keep=node.flag("keepdim", False))


def _mean(node: AtenNode) -> Results:
    value = node.converted(node.value("self"), node.wanted_dtype(node.dtype("self")))
    return _reduced(node, "ReduceMean", value, _all_axes(node), keep=node.flag("keepdim", False))


def _extreme(operator: str) -> Importer:
    return lambda node: _reduced(
        node, operator, node["self"], _all_axes(node), keep=node.flag("keepdim", False)
    )


def _extreme_along(operator: str, index: str) -> Importer:
    """The extreme along an axis, and its index; without an axis, the extreme of all elements."""

    def importer(node: AtenNode) -> Results:
        value = node["self"]
        if not node.has("dim"):
            axes = list(range(len(node.shape("self"))))
            return _reduced(node, operator, value, axes, keep=False)
        shape, keep = node.shape("self"), node.flag("keepdim", False)
        if not shape:
            return [value, node.known(np.zeros((), np.int64))]
        axis = node.along(node.integer("dim"), len(shape))
        found = _reduced(node, operator, value, [axis], keep=keep)
        if not node.wants(1):
            return [found, None]
        return [found, node.apply(index, value, axis=axis, keepdims=int(keep))]

    return importer


def _arg(operator: str) -> Importer:
    def importer(node: AtenNode) -> Results:
        value, shape, keep = node["self"], node.shape("self"), node.flag("keepdim", False)
        if not node.has("dim"):
            flat = node.reshape(value, (prod(shape),))
            found = node.apply(operator, flat, axis=0, keepdims=0)
            return node.reshape(found, [1] * len(shape)) if keep else found
        axis = node.along(node.integer("dim"), len(shape))
        return node.apply(operator, value, axis=axis, keepdims=int(keep))

    return importer


def _truths(operator: str) -> Importer:
    """Whether any element is true, or all are: the largest or smallest of 0 and 1."""

    def importer(node: AtenNode) -> Results:
        value = node.converted(node.value("self"), BOOL)
        number = node.converted(value, np.dtype(np.int32))
        found = _reduced(node, operator, number, _all_axes(node), keep=node.flag("keepdim", False))
        # Of no elements, the largest is the smallest number, and the smallest is the largest.
        return node.add(nn.GreaterOp(found, node.constant(0, found)))

    return importer


def _correction(node: AtenNode) -> float:
    """How much smaller the divisor of a variance is than the number of elements."""
    if node.has("correction"):
        return node.number("correction")
    return 1.0 if node.flag("unbiased", True) else 0.0


def _variance(node: AtenNode) -> tuple[SSAValue, SSAValue]:
    """The variance along axes, and the mean."""
    value, shape = node.wide(node["self"]), node.shape("self")
    axes, keep = _all_axes(node), node.flag("keepdim", False)
    count = prod(shape[a] for a in axes)
    _, average, variance = moments(node, value, axes)
    rest = count - _correction(node)
    if rest != count:
        factor = count / rest if rest > 0 else np.nan
        variance = node.add(nn.ScaleOp(variance, factor))
    kept = shape_without(nn.shape_of(variance), [] if keep else axes)
    element = nn.element_of(node["self"])
    found = [node.cast(node.reshape(each, kept), element) for each in (variance, average)]
    return found[0], found[1]


def shape_without(shape: tuple[int, ...], axes: list[int]) -> list[int]:
    """A shape without some axes."""
    return [n for i, n in enumerate(shape) if i not in axes]


def _var(node: AtenNode) -> Results:
    return _variance(node)[0]


def _std(node: AtenNode) -> Results:
    return node.add(nn.SqrtOp(_variance(node)[0]))


def _std_mean(node: AtenNode) -> Results:
    variance, average = _variance(node)
    return [node.add(nn.SqrtOp(variance)), average]


def _norm(order: str, axes: str) -> Importer:
    """The norm of vectors along axes: the size of order 2, 1, infinity or another."""

    def importer(node: AtenNode) -> Results:
        value = node.converted(node.value("self"), node.wanted_dtype(node.dtype("self")))
        given = node.number(order, 2.0)
        along = node.axes(axes, len(node.shape("self")))
        keep = node.flag("keepdim", False)
        simple = {1.0: "ReduceL1", 2.0: "ReduceL2"}
        if given in simple:
            return _reduced(node, simple[given], value, along, keep=keep)
        sizes = node.add(nn.AbsOp(value))
        if np.isinf(given):
            operator = "ReduceMax" if given > 0 else "ReduceMin"
            return _reduced(node, operator, sizes, along, keep=keep)
        if given == 0:
            zero = node.add(nn.EqualOp(sizes, node.constant(0, sizes)))
            ones = node.cast(node.add(nn.LogicalNotOp(zero)), nn.element_of(value))
            return _reduced(node, "ReduceSum", ones, along, keep=keep)
        powers = node.add(nn.PowerOp(sizes, given))
        total = _reduced(node, "ReduceSum", powers, along, keep=keep)
        return node.add(nn.PowerOp(total, 1.0 / given))

    return importer


def _log_sum_exp(node: AtenNode) -> Results:
    axes = _all_axes(node)
    return _reduced(
        node, "ReduceLogSumExp", node.floats("self"), axes, keep=node.flag("keepdim", False)
    )


def _scan(operator: str) -> Importer:
    def importer(node: AtenNode) -> Results:
        own = node.dtype("self")
        dtype = node.wanted_dtype(own if is_floating(own) else I64)
        value, rank = node.converted(node.value("self"), dtype), len(node.shape("self"))
        if not rank:
            return value
        axis = node.along(node.integer("dim"), rank)
        return node.apply(operator, value, node.known(np.array(axis, np.int64)))

    return importer


def _top_k(node: AtenNode) -> Results:
    axis = node.along(node.integer("dim", -1), len(node.shape("self")))
    return node.apply_all(
        "TopK",
        node["self"],
        node.integers_known([node.integer("k")]),
        results=2,
        axis=axis,
        largest=int(node.flag("largest", True)),
    )


def _order(node: AtenNode) -> tuple[SSAValue, SSAValue, int]:
    """A value with an axis, its order along this axis, and the axis."""
    value = node["self"]
    if not nn.shape_of(value):
        value = node.reshape(value, (1,))
    axis = node.along(node.integer("dim", -1), len(nn.shape_of(value)))
    down = node.flag("descending", False)
    return value, node.add(nn.SortIndicesOp(value, axis, descending=down)), axis


def _sort(node: AtenNode) -> Results:
    value, order, axis = _order(node)
    found = node.add(nn.GatherAlongOp(value, order, axis))
    shape = node.shape("self")
    return [node.reshape(found, shape), node.reshape(node.cast(order, i64), shape)]


def _arg_sort(node: AtenNode) -> Results:
    _, order, _ = _order(node)
    return node.reshape(node.cast(order, i64), node.shape("self"))


# Losses

Loss = Callable[[AtenNode, SSAValue, SSAValue], SSAValue]

NONE, MEAN = 0, 1
"""How torch merges the losses of elements: not at all, by their mean, or by their sum (2)."""


def merged(node: AtenNode, losses: SSAValue) -> SSAValue:
    """The losses of elements, merged as the argument reduction says."""
    how = node.integer("reduction", MEAN)
    axes = list(range(len(nn.shape_of(losses))))
    if how == NONE:
        return losses
    return _reduced(node, "ReduceMean" if how == MEAN else "ReduceSum", losses, axes, keep=False)


def _loss(of_elements: Loss) -> Importer:
    def importer(node: AtenNode) -> Results:
        left, right = node.alike(node.value("self"), node.value("target"))
        return merged(node, of_elements(node, left, right))

    return importer


def _squared(node: AtenNode, left: SSAValue, right: SSAValue) -> SSAValue:
    return node.add(nn.SquareOp(node.add(nn.SubOp(left, right))))


def _absolute(node: AtenNode, left: SSAValue, right: SSAValue) -> SSAValue:
    return node.add(nn.AbsOp(node.add(nn.SubOp(left, right))))


def _smooth(node: AtenNode, left: SSAValue, right: SSAValue) -> SSAValue:
    """Squares near 0 and absolute values elsewhere, joined at beta."""
    beta = node.number("beta", 1.0)
    size = _absolute(node, left, right)
    if not beta:
        return size
    near = node.add(nn.ScaleOp(node.add(nn.SquareOp(size)), 0.5 / beta))
    far = node.add(nn.ShiftOp(size, -0.5 * beta))
    is_near = node.add(nn.LessOp(size, node.constant(beta, size)))
    return node.add(nn.SelectOp(is_near, near, far))


def _with_logits(node: AtenNode, logits: SSAValue, target: SSAValue) -> SSAValue:
    """The cross entropy of a sigmoid: softplus(x) - x * target."""
    if node.has("weight") or node.has("pos_weight"):
        raise node.unsupported("a loss with weights", "need one without")
    curve = node.add(nn.SoftplusOp(logits))
    return node.add(nn.SubOp(curve, node.add(nn.MulOp(logits, target))))


def _huber(node: AtenNode, left: SSAValue, right: SSAValue) -> SSAValue:
    """Half of squares near 0, and a line elsewhere, joined at delta."""
    delta = node.number("delta", 1.0)
    size = _absolute(node, left, right)
    near = node.add(nn.ScaleOp(node.add(nn.SquareOp(size)), 0.5))
    far = node.add(nn.ScaleOp(node.add(nn.ShiftOp(size, -0.5 * delta)), delta))
    is_near = node.add(nn.LessOp(size, node.constant(delta, size)))
    return node.add(nn.SelectOp(is_near, near, far))


def _negative_log(node: AtenNode, logs: SSAValue) -> Results:
    """The negated logarithms at the classes of the targets, and the sum of their weights.

    Classes lie along axis 1, or along the only axis.
    """
    shape, target = nn.shape_of(logs), node.converted(node.value("target"), I64)
    axis = min(1, len(shape) - 1)
    apart = list(nn.shape_of(target))
    apart.insert(axis, 1)
    safe, is_ignored = node.ignoring(target, node.integer("ignore_index", -100))
    picked = node.apply("GatherElements", logs, node.reshape(safe, apart), axis=axis)
    losses = node.add(nn.NegOp(node.reshape(picked, nn.shape_of(target))))
    zero, one = node.constant(0, losses), node.constant(1, losses)
    own = node.operand("weight")
    weights = one if own is None else node.apply("Gather", own, safe, axis=0)
    weights = node.add(nn.SelectOp(is_ignored, zero, weights))
    losses = node.add(nn.MulOp(losses, weights))
    how = node.integer("reduction", MEAN)
    if how == NONE:
        return [losses, None]
    axes = list(range(len(nn.shape_of(losses))))
    total = _reduced(node, "ReduceSum", losses, axes, keep=False)
    count = _reduced(node, "ReduceSum", weights, axes, keep=False)
    return [node.add(nn.DivOp(total, count)) if how == MEAN else total, count]


def _nll(node: AtenNode) -> Results:
    return _negative_log(node, node["self"])


def _cross_entropy(node: AtenNode) -> Results:
    """The negated logarithms of a softmax, at the classes of the targets or by their chances."""
    value, target = node["self"], node.value("target")
    if node.number("label_smoothing", 0.0):
        raise node.unsupported("label_smoothing", "need 0")
    axis = min(1, len(nn.shape_of(value)) - 1)
    logs = node.apply("LogSoftmax", value, axis=axis)
    if not is_floating(dtype_of(target)):
        return only(_negative_log(node, logs))
    if node.has("weight"):
        raise node.unsupported("weights with targets that are chances", "need none")
    products = node.add(nn.MulOp(logs, node.ssa(target)))
    sums = _reduced(node, "ReduceSum", products, [axis], keep=False)
    return merged(node, node.add(nn.NegOp(sums)))


REDUCTIONS: dict[str, Importer] = {
    "sum": _total("ReduceSum"),
    "prod": _prod,
    "mean": _mean,
    "amax": _extreme("ReduceMax"),
    "amin": _extreme("ReduceMin"),
    "max": _extreme_along("ReduceMax", "ArgMax"),
    "min": _extreme_along("ReduceMin", "ArgMin"),
    "argmax": _arg("ArgMax"),
    "argmin": _arg("ArgMin"),
    "any": _truths("ReduceMax"),
    "all": _truths("ReduceMin"),
    "var": _var,
    "std": _std,
    "var_mean": lambda node: [*_variance(node)],
    "std_mean": _std_mean,
    "linalg_vector_norm": _norm("ord", "dim"),
    "norm": _norm("p", "dim"),
    "logsumexp": _log_sum_exp,
    "cumsum": _scan("CumSum"),
    "cumprod": _scan("CumProd"),
    "topk": _top_k,
    "sort": _sort,
    "argsort": _arg_sort,
    "mse_loss": _loss(_squared),
    "l1_loss": _loss(_absolute),
    "smooth_l1_loss": _loss(_smooth),
    "huber_loss": _loss(_huber),
    "cross_entropy_loss": _cross_entropy,
    "nll_loss": lambda node: only(_nll(node)),
    "nll_loss_nd": lambda node: only(_nll(node)),
    "nll_loss2d": lambda node: only(_nll(node)),
    "nll_loss_forward": _nll,
    "nll_loss2d_forward": _nll,
    "binary_cross_entropy_with_logits": _loss(_with_logits),
}
"""The importers of reductions, scans, sorts and losses."""
