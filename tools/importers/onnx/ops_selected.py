"""ONNX operators whose results have sizes that depend on values."""

from __future__ import annotations

from itertools import accumulate
from math import prod

import numpy as np
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import SSAValue

from ....dialects import nn
from ..bounded import ordered_first
from ..building import Known, is_float
from ..length_values import number_in
from ..loops import numbered_loop
from ..padding import existing, positions, sized, sizes_of, solid
from .node import Importer, Node, Results
from .ops_sequence import leading


def _vector(node: Node, value: SSAValue) -> SSAValue:
    """All elements of a value along one axis."""
    return node.reshape(value, (prod(nn.shape_of(value)),))


def _non_zero(node: Node) -> Results:
    """The coordinates of all elements that are not 0, in row-major order."""
    known = node.graph.known(node.value(0))
    if known is not None:
        return node.known(np.array(np.nonzero(np.atleast_1d(known)), np.int64))
    shape = node.shape(0) or (1,)
    value = _vector(node, solid(node, node[0], 0.0))
    if nn.element_of(value) == i1:
        wanted = value
    else:
        zero = node.add(nn.EqualOp(value, node.constant(0, value)))
        wanted = node.add(nn.LogicalNotOp(zero))
    flat, count = ordered_first(node, wanted)
    rank, total = len(shape), prod(shape)
    if rank == 1:
        found = node.reshape(flat, (1, total))
    else:
        strides = [*accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1)][::-1]
        column = np.array([strides, shape], np.int32).reshape(2, rank, 1)
        stride, size = (node.emitted(each) for each in np.maximum(column, 1))
        quotient = node.add(nn.DivOp(node.reshape(flat, (1, total)), stride))
        found = node.add(nn.ModOp(quotient, size))
    return sized(node, node.cast(found, i64), {1: count})


def _compress(node: Node) -> Results:
    """The slices along an axis, or the elements, where a condition is true."""
    shape = node.shape(0)
    has_axis = node.has_attribute("axis")
    axis = node.axis(node.integer("axis"), len(shape)) if has_axis else 0
    value = node[0] if has_axis else _vector(node, node[0])
    length = nn.shape_of(value)[axis]
    if len(node.shape(1)) != 1:
        raise node.bad(f"condition of shape {list(node.shape(1))}; need one axis")
    condition = node.graph.known(node.value(1))
    if condition is not None and axis not in sizes_of(node, value):
        (found,) = np.nonzero(condition[:length])
        return node.add(nn.GatherOp(value, node.emitted(found.astype(np.int32)), axis))
    wanted = solid(node, node[1], 0.0)
    (given,) = nn.shape_of(wanted)
    if given > length:
        wanted = leading(node, wanted, 0, length)
    order, count = ordered_first(node, wanted)
    found = node.add(nn.GatherOp(value, order, axis))
    return sized(node, found, {**sizes_of(node, found), axis: count})


# Unique


def _different(node: Node, rows: SSAValue) -> SSAValue:
    """Whether each row of a matrix differs from the row before it. Two NaN are equal, as in
    NumPy."""
    count, width = nn.shape_of(rows)
    before = node.add(nn.SliceOp(rows, [0, 0], [1, 1], [count - 1, width]))
    after = node.add(nn.SliceOp(rows, [1, 0], [1, 1], [count - 1, width]))
    same = node.add(nn.EqualOp(before, after))
    if is_float(rows):
        both = nn.LogicalAndOp(node.add(nn.IsNaNOp(before)), node.add(nn.IsNaNOp(after)))
        same = node.add(nn.LogicalOrOp(same, node.add(both)))
    alike = node.add(nn.ReduceOp(node.cast(same, i32), "min", [1]))
    return node.add(nn.EqualOp(alike, node.constant(0, alike)))


def _lexicographic(node: Node, columns: SSAValue) -> SSAValue:
    """The lexicographic order of the columns of a matrix.

    Each iteration of a loop sorts by one element, from the last to the first: a sort keeps the
    order of equal elements.
    """
    width, count = nn.shape_of(columns)
    start = positions(node, columns, 1)
    start = node.reshape(start, (count,))
    if width == 1:
        return node.add(nn.SortIndicesOp(node.reshape(columns, (count,)), 0))
    last = node.constant(width - 1, start)

    def iteration(order: list[SSAValue], number: SSAValue) -> list[SSAValue]:
        row = node.add(nn.SubOp(last, number))
        keys = node.add(nn.GatherOp(columns, row, 0))
        keys = node.add(nn.GatherOp(keys, order[0], 0))
        return [node.add(nn.GatherOp(order[0], node.add(nn.SortIndicesOp(keys, 0)), 0))]

    return numbered_loop(node, width, [start], iteration)[0]


def _unique(node: Node) -> Results:
    """The distinct elements, or slices, with their first positions and their counts."""
    shape = node.shape(0)
    if node.sizes(0):
        raise node.size_depends(0)
    axis = node.axis(node.integer("axis"), len(shape)) if node.has_attribute("axis") else None
    in_order = node.flag("sorted", True)
    known = node.graph.known(node.value(0))
    # Floats that operations compute remain results of the device, with its rounding.
    is_given = isinstance(node.value(0), Known) or not is_float(node[0])
    if known is not None and is_given:
        return _known_unique(node, known, axis, in_order)
    value = node[0]
    count = prod(shape) if axis is None else shape[axis]
    width = prod(shape) // max(count, 1)
    if not count or not width:
        raise node.unsupported(f"an operand of shape {list(shape)}", "need one or more elements")
    others = [] if axis is None else [i for i in range(len(shape)) if i != axis]
    if others:
        assert axis is not None
        value = node.add(nn.TransposeOp(value, [*others, axis]))
    columns = node.reshape(value, (width, count))
    order = _lexicographic(node, columns)
    rows = node.add(nn.TransposeOp(columns, [1, 0]))
    placed = node.add(nn.GatherOp(rows, order, 0))
    one = node.constant(1, order)
    begins = node.emitted(np.ones(1, np.int32))
    if count > 1:
        later = node.cast(_different(node, placed), i32)
        begins = node.add(nn.ConcatOp([begins, later], 0))
    group = node.add(nn.SubOp(node.add(nn.ScanOp(begins, "sum", 0)), one))
    total = node.add(nn.ReduceOp(begins, "sum", [0]))
    length = number_in(node.graph, total, 1, count)
    # The sort keeps equal rows in order, so the first row of a group occurs first.
    first = node.add(nn.ScatterOp(node.add(nn.MulOp(order, begins)), group, "sum", 0, count))
    node.check_table(count)
    ones = node.emitted(np.ones(count, np.int32))
    counts = node.add(nn.ScatterOp(ones, group, "sum", 0, count))
    inverse = node.add(nn.ScatterOp(group, order, "sum", 0, count))
    if not in_order:
        index = positions(node, group, 0)
        exists = node.add(nn.LessOp(index, total))
        keys = node.add(nn.SelectOp(exists, first, node.constant(count, first)))
        by_first = node.add(nn.SortIndicesOp(keys, 0))
        first, counts = (node.add(nn.GatherOp(each, by_first, 0)) for each in (first, counts))
        rank = node.add(nn.ScatterOp(index, by_first, "sum", 0, count))
        inverse = node.add(nn.GatherOp(rank, inverse, 0))
    at = 0 if axis is None else axis
    whole = _vector(node, node[0]) if axis is None else node[0]
    found = node.add(nn.GatherOp(whole, first, at))
    return [
        sized(node, found, {at: length}),
        sized(node, node.cast(first, i64), {0: length}),
        node.cast(inverse, i64),
        sized(node, node.cast(counts, i64), {0: length}),
    ]


def _known_unique(node: Node, known: np.ndarray, axis: int | None, in_order: bool) -> Results:
    found, first, inverse, counts = np.unique(
        known, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    if not in_order:
        by_first = np.argsort(first)
        found = np.take(found, by_first, 0 if axis is None else axis)
        first, counts = first[by_first], counts[by_first]
        inverse = np.argsort(by_first)[inverse]
    others = (each.reshape(-1).astype(np.int64) for each in (first, inverse, counts))
    return [node.known(each) for each in (found, *others)]


# Range


def _range(node: Node) -> Results:
    """Numbers from a start to a limit, which are known at import."""
    start = node.array(0, "start")
    step = node.array(2, "delta").reshape(())
    if step == 0:
        raise node.bad("a delta of 0; need any other")
    end = node.array(1, "limit").reshape(())
    count = max(int(np.ceil((end - start.reshape(())) / step)), 0)
    values = start.reshape(()) + node.counted(count).astype(start.dtype) * step
    return node.known(values.astype(start.dtype))


# NonMaxSuppression


def _corners(node: Node, boxes: SSAValue, centred: bool) -> tuple[SSAValue, ...]:
    """The low and high corner of each box, [batch, 1, boxes] each: x, y, x, y or the axes in
    reverse.
    """
    batch, count, _ = nn.shape_of(boxes)
    parts = [
        node.reshape(
            node.add(nn.SliceOp(boxes, [0, 0, i], [1, 1, 1], [batch, count, 1])), (batch, 1, count)
        )
        for i in range(4)
    ]
    if centred:
        half = [node.add(nn.ScaleOp(each, 0.5)) for each in parts[2:]]
        low = [node.add(nn.SubOp(c, h)) for c, h in zip(parts[:2], half, strict=True)]
        high = [node.add(nn.AddOp(c, h)) for c, h in zip(parts[:2], half, strict=True)]
        return *low, *high
    low = [node.add(nn.MinOp(a, b)) for a, b in zip(parts[:2], parts[2:], strict=True)]
    high = [node.add(nn.MaxOp(a, b)) for a, b in zip(parts[:2], parts[2:], strict=True)]
    return *low, *high


def _non_max_suppression(node: Node) -> Results:
    """The boxes with the best scores that overlap no better box, for each batch and class.

    A loop takes the best of the remaining boxes, and removes the boxes that overlap it. It has as
    many iterations as there are boxes, or as the node selects at most, if that is known.
    """
    exists = existing(node, node[1], node.sizes(1)) if node.sizes(1) else None
    boxes, scores = solid(node, node[0], 0.0), solid(node, node[1], -np.inf)
    batch, classes, count = nn.shape_of(scores)
    if nn.shape_of(boxes) != (batch, count, 4):
        raise node.bad(f"boxes of {list(nn.shape_of(boxes))}; need [{batch}, {count}, 4]")
    if not node.has(2):
        return node.known(np.zeros((0, 3), np.int64))
    most = node.graph.known(node.value(2))
    iterations = count if most is None else max(min(int(most.reshape(-1)[0]), count), 0)
    if not iterations or not batch * classes:
        return node.known(np.zeros((0, 3), np.int64))
    limit = node.reshape(node.cast(node[2], i32), ())
    overlap = node.reshape(node[3], ()) if node.has(3) else node.constant(0.0, scores)
    dead = node.constant(-np.inf, scores)
    if node.has(4):
        left = node.add(nn.GreaterOp(scores, node.reshape(node[4], ())))
    else:
        every = nn.ConstantOp(node.graph.context.blobs.add(np.array(True)))
        left = node.add(nn.ExpandOp(node.add(every), (batch, classes, count)))
    if exists is not None:
        left = node.add(nn.LogicalAndOp(left, exists))
    corners = _corners(node, boxes, node.flag("center_point_box"))
    sides = [node.add(nn.SubOp(corners[i + 2], corners[i])) for i in (0, 1)]
    area = node.add(nn.MulOp(*sides))
    node.check_table(batch, classes, iterations)
    place, slot = positions(node, scores, 2), np.arange(iterations, dtype=np.int32)
    slots = node.emitted(slot.reshape(1, 1, iterations))
    nobody = node.constant(count, place)
    zero = node.constant(0.0, scores)
    none = np.full((batch, classes, iterations), count, np.int32)

    def iteration(values: list[SSAValue], number: SSAValue) -> list[SSAValue]:
        left, chosen = values
        alive = node.add(nn.SelectOp(left, scores, dead))
        best = node.add(nn.ReduceOp(alive, "max", [2], keep_dims=True))
        found = node.add(nn.LogicalAndOp(node.add(nn.EqualOp(scores, best)), left))
        index = node.add(nn.SelectOp(found, place, nobody))
        index = node.add(nn.ReduceOp(index, "min", [2], keep_dims=True))
        here = node.add(nn.EqualOp(place, index))

        def at_best(each: SSAValue) -> SSAValue:
            only = node.add(nn.SelectOp(here, each, zero))
            return node.add(nn.ReduceOp(only, "sum", [2], keep_dims=True))

        own = [at_best(each) for each in corners]
        lengths: list[SSAValue] = []
        for i in (0, 1):
            low = node.add(nn.MaxOp(corners[i], own[i]))
            high = node.add(nn.MinOp(corners[i + 2], own[i + 2]))
            lengths.append(node.add(nn.MaxOp(node.add(nn.SubOp(high, low)), zero)))
        common = node.add(nn.MulOp(*lengths))
        union = node.add(nn.SubOp(node.add(nn.AddOp(area, at_best(area))), common))
        share = node.add(nn.DivOp(common, union))
        gone = node.add(nn.GreaterOp(share, overlap))
        gone = node.add(nn.LogicalOrOp(gone, here))
        after = node.add(nn.LogicalAndOp(left, node.add(nn.LogicalNotOp(gone))))
        now = node.add(nn.EqualOp(slots, number))
        now = node.add(nn.LogicalAndOp(now, node.add(nn.LessOp(slots, limit))))
        return [after, node.add(nn.SelectOp(now, index, chosen))]

    start = node.add(nn.ConstantOp(node.graph.context.blobs.add(none)))
    chosen = _vector(node, numbered_loop(node, iterations, [left, start], iteration)[1])
    order, number = ordered_first(node, node.add(nn.LessOp(chosen, nobody)))
    where = np.indices((batch, classes, iterations), np.int64)[:2].reshape(2, -1)
    table = node.emitted(where)
    columns = [
        node.add(nn.GatherOp(table, order, 1)),
        node.reshape(node.cast(node.add(nn.GatherOp(chosen, order, 0)), i64), (1, where.shape[1])),
    ]
    found = node.add(nn.TransposeOp(node.add(nn.ConcatOp(columns, 0)), [1, 0]))
    return sized(node, found, {0: number})


SELECTED: dict[str, Importer] = {
    "NonZero": _non_zero,
    "Compress": _compress,
    "Unique": _unique,
    "Range": _range,
    "NonMaxSuppression": _non_max_suppression,
}
