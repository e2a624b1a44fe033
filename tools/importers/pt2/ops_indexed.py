"""ATen operators that read or write elements by indices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value, dtype_of, shape_of
from .aten_node import I64, AtenNode, Importer, Results

BOOL = np.dtype(np.bool_)

Integers = NDArray[np.int64]


def _embedding(node: AtenNode) -> Results:
    return node.apply("Gather", node["weight"], node["indices"], axis=0)


def _index_select(node: AtenNode) -> Results:
    axis = node.along(node.integer("dim"), len(node.shape("self")))
    return node.apply("Gather", node["self"], node["index"], axis=axis)


def _gather(node: AtenNode) -> Results:
    if not node.shape("self"):
        return node.reshape(node["self"], node.shape("index"))
    axis = node.along(node.integer("dim"), len(node.shape("self")))
    return node.apply("GatherElements", node["self"], node["index"], axis=axis)


def _take_along(node: AtenNode) -> Results:
    value, index = node["self"], node["indices"]
    if not node.has("dim"):
        value, index = (node.reshape(each, (prod(nn.shape_of(each)),)) for each in (value, index))
    axis = node.along(node.integer("dim", 0), len(nn.shape_of(value)))
    shape, given = nn.shape_of(value), nn.shape_of(index)
    both = np.broadcast_shapes(
        *([n for i, n in enumerate(each) if i != axis] for each in (shape, given))
    )

    def spread(each: SSAValue) -> SSAValue:
        own = nn.shape_of(each)[axis]
        return node.expanded(each, (*both[:axis], own, *both[axis:]))

    return node.apply("GatherElements", spread(value), spread(index), axis=axis)


# x[i, j], x[:, i], x[mask]


def _indices(node: AtenNode) -> list[Value | None]:
    """The indices of each axis, None where all elements are taken. A mask counts for its axes."""
    given = node.get("indices")
    rank = len(node.shape("self"))
    found: list[Value | None] = []
    for each in given:
        if each is None or dtype_of(each) not in (BOOL, np.dtype(np.uint8)):
            found.append(each)
            continue
        array = node.graph.known(each)
        if array is None:
            found += positions(node, each)
        else:
            found += [node.known(i.astype(np.int64)) for i in np.nonzero(array)]
    if len(found) > rank:
        raise node.bad(f"{len(found)} indices of a tensor of {rank} axes")
    return [*found, *[None] * (rank - len(found))]


def positions(node: AtenNode, mask: Value) -> list[Value]:
    """The indices of the true elements of a mask, a vector for each axis."""
    found = node.apply("NonZero", mask)
    rank = len(shape_of(mask))
    if rank == 1:
        return [node.apply("Squeeze", found, node.integers_known([0]))]
    parts = node.apply_all("Split", found, results=rank, axis=0, num_outputs=rank)
    return [node.apply("Squeeze", each, node.integers_known([0])) for each in parts]


def _arranged(node: AtenNode, indices: Sequence[Value | None]) -> tuple[list[int], int, bool]:
    """The order of axes that puts the indexed ones first, their number, and whether they are in a
    row. If they are, the axes of the indices stay at their place in the result.
    """
    axes = [i for i, each in enumerate(indices) if each is not None]
    rest = [i for i in range(len(indices)) if i not in axes]
    in_row = axes == list(range(axes[0], axes[-1] + 1))
    return [*axes, *rest], len(axes), in_row


def _joined(node: AtenNode, indices: Sequence[Value | None]) -> tuple[SSAValue, tuple[int, ...]]:
    """The indices of several axes as one tensor [..., axes], and the shape before its last axis."""
    given = [each for each in indices if each is not None]
    shape = np.broadcast_shapes(*(shape_of(each) for each in given))
    whole = [
        node.reshape(node.expanded(node.converted(each, I64), shape), (*shape, 1)) for each in given
    ]
    joined = whole[0] if len(whole) == 1 else node.add(nn.ConcatOp(whole, len(shape)))
    return joined, tuple(shape)


def _index(node: AtenNode) -> Results:
    """The elements at indices of some axes, for all indices of the others."""
    indices = _indices(node)
    if all(each is None for each in indices):
        return node.value("self")
    order, count, in_row = _arranged(node, indices)
    first = order[0]
    if count == 1:
        only = indices[first]
        return node.apply("Gather", node["self"], only, axis=first)
    moved = node.transposed(node.value("self"), order)
    joined, shape = _joined(node, indices)
    found = node.apply("GatherND", moved, joined)
    if not in_row or not first:
        return found
    # The axes of the indices lie in front: move those of the operand before them back.
    rank, inner = len(nn.shape_of(found)), len(shape)
    back = [*range(inner, inner + first), *range(inner), *range(inner + first, rank)]
    return node.transposed(found, back)


def _index_put(node: AtenNode) -> Results:
    """A tensor whose elements at indices are replaced, or added to."""
    value, indices = node["self"], _masked(node)
    if isinstance(indices, SSAValue):
        new = node.converted(node.value("values"), node.dtype("self"))
        if prod(nn.shape_of(new)) != 1:
            raise node.unsupported(
                "writing several values by a mask", "need one value, or torch.where"
            )
        one = node.reshape(new, ())
        fill = node.add(nn.AddOp(value, one)) if node.flag("accumulate", False) else one
        return node.add(nn.SelectOp(indices, fill, value))
    order, count, in_row = _arranged(node, indices)
    moved = node.transposed(value, order)
    joined, shape = _joined(node, indices)
    rest = nn.shape_of(moved)[count:]
    updates = node.converted(node.value("values"), node.dtype("self"))
    first = order[0]
    if in_row and first and len(nn.shape_of(updates)) > len(rest[first:]):
        # The values follow the order of the result: their axes before the indices come first.
        wide = node.expanded(updates, (*rest[:first], *shape, *rest[first:]))
        n = len(shape)
        updates = node.transposed(
            wide, [*range(first, first + n), *range(first), *range(first + n, len(rest) + n)]
        )
    updates = node.expanded(updates, (*shape, *rest))
    how = "add" if node.flag("accumulate", False) else "none"
    found = node.apply("ScatterND", moved, joined, updates, reduction=how)
    return node.transposed(found, [order.index(i) for i in range(len(order))])


def _masked(node: AtenNode) -> SSAValue | list[Value | None]:
    """A mask of all elements as it is, or the indices."""
    given = node.get("indices")
    if len(given) == 1 and given[0] is not None and dtype_of(given[0]) == BOOL:
        shape, mask = node.shape("self"), given[0]
        if node.graph.known(mask) is None:
            inner = [1] * (len(shape) - len(shape_of(mask)))
            return node.expanded(node.reshaped_to(mask, (*shape_of(mask), *inner)), shape)
    found = _indices(node)
    if all(each is None for each in found):
        raise node.unsupported("writing to all elements by no index", "need an index")
    return found


REDUCED = {
    "sum": "add",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
    "add": "add",
    "multiply": "mul",
}
"""The reductions of ONNX's scatters, by torch's names."""


def _scatter(reduction: str = "none") -> Importer:
    """Elements written along an axis, each at its index."""

    def importer(node: AtenNode) -> Results:
        value, index = node["self"], node["index"]
        axis = node.along(node.integer("dim"), len(nn.shape_of(value)))
        given: Any = node.get("src", None) if node.has("src") else node.get("value")
        how = reduction
        if node.has("reduce"):
            name = node.text("reduce")
            if name not in REDUCED or not node.flag("include_self", True):
                raise node.unsupported(
                    f"reduction {name!r}", f"{', '.join(REDUCED)} are, with self"
                )
            how = REDUCED[name]
        shape = nn.shape_of(index)
        if isinstance(given, bool | int | float):
            updates = node.expanded(node.as_dtype(given, dtype_of(value)), shape)
        else:
            whole = node.converted(given, dtype_of(value))
            if len(nn.shape_of(whole)) != len(shape):
                raise node.bad(f"updates of {list(nn.shape_of(whole))} at indices of {list(shape)}")
            updates = (
                node.add(nn.SliceOp(whole, [0] * len(shape), [1] * len(shape), shape))
                if nn.shape_of(whole) != shape
                else whole
            )
        return node.apply("ScatterElements", value, index, updates, axis=axis, reduction=how)

    return importer


def _along_rows(reduction: str, updates: str) -> Importer:
    """Rows written along an axis, each at its index."""

    def importer(node: AtenNode) -> Results:
        value, shape = node["self"], node.shape("self")
        axis = node.along(node.integer("dim"), len(shape))
        index = node.converted(node.value("index"), I64)
        new = node.converted(node.value(updates), node.dtype("self"))
        if node.has("alpha") and node.number("alpha") != 1:
            new = node.add(nn.MulOp(new, node.as_dtype(node.get("alpha"), dtype_of(new))))
        count = prod(nn.shape_of(index))
        along = [count if i == axis else 1 for i in range(len(shape))]
        whole = [count if i == axis else n for i, n in enumerate(shape)]
        places = node.expanded(node.reshape(index, along), whole)
        return node.apply(
            "ScatterElements",
            value,
            places,
            node.expanded(new, whole),
            axis=axis,
            reduction=reduction,
        )

    return importer


def _nonzero(node: AtenNode) -> Results:
    """The indices of the elements that are not 0, one row for each."""
    return node.apply("Transpose", node.apply("NonZero", node.value("self")), perm=[1, 0])


def _masked_select(node: AtenNode) -> Results:
    shape = np.broadcast_shapes(node.shape("self"), node.shape("mask"))
    value = node.expanded(node.value("self"), shape)
    mask = node.expanded(node.value("mask"), shape)
    return node.apply("Compress", value, node.reshape(mask, (prod(shape),)))


def _one_hot(node: AtenNode) -> Results:
    count = node.integer("num_classes", -1)
    if count < 1:
        raise node.unsupported("a number of classes that depends on values", "give num_classes")
    values = node.known(np.array([0, 1], np.int64))
    return node.apply("OneHot", node["self"], node.known(np.array(count, np.int64)), values)


def _embedding_bag(node: AtenNode) -> Results:
    """The sums, means or maxima of rows of a table, for each bag of indices of a matrix.

    A vector of indices is cut into bags by offsets, which must be known.
    """
    table, index = node["weight"], node["indices"]
    mode = {0: "ReduceSum", 1: "ReduceMean", 2: "ReduceMax"}.get(node.integer("mode", 0))
    offsets = node.graph.known(node.value("offsets"))
    if mode is None:
        raise node.bad("argument mode; need 0, 1 or 2")
    if offsets is None:
        raise node.not_constant("offsets", [node.value("offsets")])
    if node.has("per_sample_weights"):
        raise node.unsupported("weights of samples", "need bags without")
    rows = node.apply("Gather", table, index, axis=0)
    edges = [int(n) for n in offsets.reshape(-1)]
    count, width = nn.shape_of(rows)
    if not node.flag("include_last_offset", False):
        edges.append(count)
    if edges[0] != 0 or edges[-1] > count or any(a > b for a, b in pairwise(edges)):
        raise node.bad(f"offsets {edges[:10]} of {count} indices; need them in order, from 0 on")
    sizes = np.diff(edges)
    if len({*sizes.tolist()}) == 1 and sizes[0]:
        whole = node.reshape(node.sliced(rows, 0, 0, edges[-1]), (len(sizes), sizes[0], width))
        return [node.apply(mode, whole, node.integers_known([1]), keepdims=0), *[None] * 3]
    return [_bags_of_sizes(node, node.sliced(rows, 0, 0, edges[-1]), sizes, mode), *[None] * 3]


def _bags_of_sizes(node: AtenNode, rows: SSAValue, sizes: Integers, mode: str) -> SSAValue:
    """The sums, means or maxima of rows that follow one another in bags. An empty bag gives 0."""
    bag_of_row = node.emitted(np.repeat(np.arange(len(sizes)), sizes))
    combiner = "max" if mode == "ReduceMax" else "sum"
    found = node.add(nn.ScatterOp(rows, bag_of_row, combiner, 0, len(sizes)))
    if mode == "ReduceMean":
        found = node.add(nn.DivOp(found, node.emitted(np.maximum(sizes, 1)[:, None], found)))
    if mode == "ReduceMax" and not sizes.all():
        is_empty = node.emitted((sizes == 0)[:, None])
        found = node.add(nn.SelectOp(is_empty, node.constant(0, found), found))
    return found


INDEXED: dict[str, Importer] = {
    "embedding": _embedding,
    "index_select": _index_select,
    "gather": _gather,
    "take_along_dim": _take_along,
    "index": _index,
    "_unsafe_index": _index,
    "index_put": _index_put,
    "_unsafe_index_put": _index_put,
    "scatter": _scatter(),
    "scatter_add": _scatter("add"),
    "scatter_reduce": _scatter(),
    "index_add": _along_rows("add", "source"),
    "index_copy": _along_rows("none", "source"),
    "nonzero": _nonzero,
    "argwhere": _nonzero,
    "masked_select": _masked_select,
    "one_hot": _one_hot,
    "_embedding_bag": _embedding_bag,
    "_embedding_bag_forward_only": _embedding_bag,
    "embedding_bag": _embedding_bag,
}
"""The importers of indexed reads and writes."""
