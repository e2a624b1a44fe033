"""Importers for operands whose size depends on values.

Each operator that can read such an operand has an entry, which keeps the padding from changing a
result: elementwise operators compute on it and pass the size on; a reduction along the axis reads
the identity of its combiner there.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Known, Size, Value, is_float, shape_of
from ..sizes import counted, sized, without_padding
from .node import Importer, Node, Results, listed
from .ops_elementwise import ELEMENTWISE

Consumer = Callable[[Node, Importer], Results]
"""Imports a node with padded operands, by means of the operator's own importer."""


def _padded(node: Node) -> dict[int, Size]:
    """The sizes of the operands that have padding, by operand."""
    found = {i: node.size(i) for i in range(node.operand_count)}
    return {i: size for i, size in found.items() if size is not None}


def _first_only(node: Node) -> Size:
    """The size of operand 0. Raises NotConstantError if another operand has padding."""
    for i in _padded(node):
        if i:
            raise node.size_depends(i)
    size = node.size(0)
    assert size is not None
    return size


def _passed_on(node: Node, results: Results, size: Size, axis: int) -> Results:
    """The results of an importer, marked as padded along one of their axes."""
    for value in listed(results):
        if isinstance(value, SSAValue):
            sized(node, value, axis, size.count)
    return results


def _elementwise(node: Node, importer: Importer) -> Results:
    """Operands with padding along one axis give a result with padding along that axis."""
    padded = _padded(node)
    first, size = next(iter(padded.items()))
    from_end = len(node.shape(first)) - size.axis
    for i in range(node.operand_count):
        if not node.has(i):
            continue
        other, shape = padded.get(i), node.shape(i)
        if other is not None:
            same = other.count is size.count and len(shape) - other.axis == from_end
            if not same or shape[other.axis] != node.shape(first)[size.axis]:
                raise node.size_depends(i)
        elif len(shape) >= from_end and shape[-from_end] != 1:
            raise node.size_depends(first)
    results = importer(node)
    shape = _only_shape(results)
    if shape[-from_end] != node.shape(first)[size.axis]:
        raise node.size_depends(first)
    return _passed_on(node, results, size, len(shape) - from_end)


def _only_shape(results: Results) -> tuple[int, ...]:
    return shape_of(_value(results))


def _axes(node: Node, since: int) -> list[int]:
    """The axes of a reduction, counted from the front."""
    rank = len(node.shape(0))
    axes = node.parameter("axes", 1, since)
    if axes is None or (node.opset >= since and not axes):
        return [] if node.flag("noop_with_empty_axes") else list(range(rank))
    return sorted({node.axis(a, rank) for a in axes})


def _kept_axis(axis: int, axes: list[int], *, keep: bool) -> int:
    return axis if keep else axis - sum(a < axis for a in axes)


def _reduction(identity: float, since: int = 18) -> Consumer:
    """A reduction.

    Args:
        identity: the element that does not change the result.
    """

    def consumer(node: Node, importer: Importer) -> Results:
        size, axes = _first_only(node), _axes(node, since)
        if size.axis in axes:
            node.replaced[0] = without_padding(node, node[0], size, identity)
            return importer(node)
        axis = _kept_axis(size.axis, axes, keep=node.flag("keepdims", True))
        return _passed_on(node, importer(node), size, axis)

    return consumer


def _mean(node: Node, importer: Importer) -> Results:
    """Along the padded axis, the sum of the existing elements divided by their number."""
    size, axes = _first_only(node), _axes(node, 18)
    keep = node.flag("keepdims", True)
    if size.axis not in axes:
        axis = _kept_axis(size.axis, axes, keep=keep)
        return _passed_on(node, importer(node), size, axis)
    value = without_padding(node, node[0], size, 0.0)
    wide = node.wide(value) if is_float(value) else node.cast(value, f32)
    total = node.add(nn.ReduceOp(wide, "sum", axes, keep_dims=keep))
    rest = prod(node.shape(0)[a] for a in axes if a != size.axis)
    count = node.cast(size.count, nn.element_of(total))
    count = node.add(nn.MulOp(count, node.constant(rest, total)))
    return node.cast(node.add(nn.DivOp(total, count)), nn.element_of(value))


def _arg(identity: float) -> Consumer:
    """The index of the extreme, which is the first one, so that it is never padding."""

    def consumer(node: Node, importer: Importer) -> Results:
        size = _first_only(node)
        axis = node.axis(node.integer("axis", 0), len(node.shape(0)))
        if axis != size.axis:
            kept = _kept_axis(size.axis, [axis], keep=node.flag("keepdims", True))
            return _passed_on(node, importer(node), size, kept)
        if node.flag("select_last_index"):
            raise node.size_depends(0)
        node.replaced[0] = without_padding(node, node[0], size, identity)
        return importer(node)

    return consumer


def _softmax(node: Node, importer: Importer) -> Results:
    """A softmax in which padding adds nothing to the total."""
    size = _first_only(node)
    rank = len(node.shape(0))
    axis = node.axis(node.integer("axis", -1 if node.opset >= 13 else 1), rank)
    if node.opset < 13 and axis != rank - 1:
        raise node.size_depends(0)
    if axis == size.axis:
        node.replaced[0] = without_padding(node, node[0], size, float("-inf"))
    return _passed_on(node, importer(node), size, size.axis)


def _scan(identity: float) -> Consumer:
    """A running sum or product. If it runs backwards, it begins with the padding."""

    def consumer(node: Node, importer: Importer) -> Results:
        size = _first_only(node)
        if node.flag("reverse"):
            node.replaced[0] = without_padding(node, node[0], size, identity)
        return _passed_on(node, importer(node), size, size.axis)

    return consumer


def _top_k(node: Node, importer: Importer) -> Results:
    """The first elements in order; padding sorts after them. K may not exceed the number that
    exists.
    """
    size = _first_only(node)
    axis = node.axis(node.integer("axis", -1), len(node.shape(0)))
    if node.opset >= 10 and node.graph.known(node.value(1)) is None:
        raise node.size_depends(0)
    if axis != size.axis:
        return _passed_on(node, importer(node), size, size.axis)
    descending = node.opset < 11 or node.flag("largest", True)
    worst = float("-inf") if descending else float("inf")
    node.replaced[0] = without_padding(node, node[0], size, worst)
    return importer(node)


def _gather(node: Node, importer: Importer) -> Results:
    """Padding of the indices gives padding of the result. Its index is 0 for the lookup."""
    padded, axis = _padded(node), node.axis(node.integer("axis", 0), len(node.shape(0)))
    data, indices = padded.get(0), padded.get(1)
    if data is not None and indices is not None:
        raise node.size_depends(1)
    if indices is not None:
        node.replaced[1] = without_padding(node, node[1], indices, 0.0)
        return _passed_on(node, importer(node), indices, axis + indices.axis)
    assert data is not None
    rank = len(node.shape(1))
    if data.axis != axis:
        at = data.axis if data.axis < axis else data.axis + rank - 1
        return _passed_on(node, importer(node), data, at)
    # Negative indices count from the end of the existing elements.
    given = node[1]
    count = node.cast(data.count, nn.element_of(given))
    negative = node.add(nn.LessOp(given, node.constant(0, given)))
    turned = node.add(nn.AddOp(given, count))
    node.replaced[1] = node.add(nn.SelectOp(negative, turned, given))
    return importer(node)


def _gather_nd(node: Node, importer: Importer) -> Results:
    """Padding of the indices gives padding of the result."""
    padded = _padded(node)
    size = padded.get(1)
    if size is None or 0 in padded or size.axis == len(node.shape(1)) - 1:
        raise node.size_depends(next(iter(padded)))
    node.replaced[1] = without_padding(node, node[1], size, 0.0)
    return _passed_on(node, importer(node), size, size.axis)


def _transpose(node: Node, importer: Importer) -> Results:
    size = _first_only(node)
    order = node.integers("perm", range(len(node.shape(0)))[::-1])
    return _passed_on(node, _made(node, importer), size, order.index(size.axis))


def _made(node: Node, importer: Importer) -> SSAValue:
    """The result of an importer, as a new value if it is the operand itself, which has its own
    padding.
    """
    return node.graph.emitted(_value(importer(node)))


def _value(results: Results) -> Value:
    first = listed(results)[0]
    assert isinstance(first, SSAValue | Known)
    return first


def _squeeze(node: Node, importer: Importer) -> Results:
    """Remove axes of one element. The padded axis must not be among them."""
    size, rank = _first_only(node), len(node.shape(0))
    axes = node.parameter("axes", 1, 13)
    if axes is None:
        raise node.size_depends(0)
    gone = [node.axis(a, rank) for a in axes]
    if size.axis in gone:
        raise node.size_depends(0)
    return _passed_on(node, importer(node), size, _kept_axis(size.axis, gone, keep=False))


def _unsqueeze(node: Node, importer: Importer) -> Results:
    size = _first_only(node)
    given = node.parameter("axes", 1, 13) or []
    rank = len(node.shape(0)) + len(given)
    new = {node.axis(a, rank) for a in given}
    kept = [i for i in range(rank) if i not in new]
    return _passed_on(node, importer(node), size, kept[size.axis])


def _reshape(node: Node, importer: Importer) -> Results:
    """A reshape of the leading padded axis: its size in the result is a multiple or a fraction."""
    size, source = _first_only(node), node.shape(0)
    results = importer(node)
    shape = _only_shape(results)
    given = node.parameter("shape", 1, 5) if node.operator == "Reshape" else [-1]
    fixed = prod(source[size.axis + 1 :])
    axis = next((i for i, n in enumerate(shape) if n != 1), len(shape) - 1)
    inner = prod(shape[axis + 1 :]) if shape else 0
    is_open = given is not None and (-1 in given or 0 in given[axis : axis + 1])
    if prod(source[: size.axis]) != 1 or not inner or fixed % inner or not is_open:
        raise node.size_depends(0)
    count = size.count
    if fixed != inner:
        count = node.add(nn.MulOp(count, node.constant(fixed // inner, count)))
    return _passed_on(node, results, Size(axis, count), axis)


def _slice(node: Node, importer: Importer) -> Results:
    """Slices along the padded axis take existing elements, from its front."""
    size, shape = _first_only(node), node.shape(0)
    if node.opset < 10:
        begin, end = node.integers("starts"), node.integers("ends")
        axes, steps = node.integers("axes", range(len(begin))), [1] * len(begin)
    else:
        begin, end = node.array_integers(1, "starts"), node.array_integers(2, "ends")
        axes = node.array_integers(3, "axes") if node.has(3) else list(range(len(begin)))
        steps = node.array_integers(4, "steps") if node.has(4) else [1] * len(begin)
    count = size.count
    for first, last, axis, step in zip(begin, end, axes, steps, strict=True):
        if node.axis(axis, len(shape)) != size.axis:
            continue
        if first < 0 or last < 0 or step != 1:
            raise node.size_depends(0)
        most = node.constant(min(last, shape[size.axis]), count)
        left = node.add(nn.SubOp(node.add(nn.MinOp(count, most)), node.constant(first, count)))
        count = node.add(nn.MaxOp(left, node.constant(0, count)))
    value = node.graph.emitted(_value(importer(node)))
    return _passed_on(node, value, Size(size.axis, count), size.axis)


def _concat(node: Node, importer: Importer) -> Results:
    """A join along another axis, if all operands have the same padding."""
    padded = _padded(node)
    first, size = next(iter(padded.items()))
    axis = node.axis(node.integer("axis"), len(node.shape(first)))
    alike = all(s.axis == size.axis and s.count is size.count for s in padded.values())
    if not alike or len(padded) != node.operand_count or axis == size.axis:
        raise node.size_depends(first)
    return _passed_on(node, importer(node), size, size.axis)


def _shape(node: Node, importer: Importer) -> Results:
    """The shape, of constants and the computed size."""
    size, shape = _first_only(node), node.shape(0)
    parts = [node.emitted(np.array([n], np.int64)) for n in shape]
    parts[size.axis] = counted(node, size.count, i64)
    first, last = node.integer("start", 0), node.integer("end", len(shape))
    parts = parts[slice(first, last)]
    if not parts:
        return importer(node)
    return parts[0] if len(parts) == 1 else node.add(nn.ConcatOp(parts, 0))


def _size(node: Node, importer: Importer) -> Results:
    del importer
    size, shape = _first_only(node), node.shape(0)
    rest = prod(n for i, n in enumerate(shape) if i != size.axis)
    count = node.cast(size.count, i64)
    return node.add(nn.MulOp(count, node.constant(rest, count)))


def _matmul(node: Node, importer: Importer) -> Results:
    """Padded rows of the first operand stay padded rows of the result. Padding along the sum is
    0."""
    padded = _padded(node)
    first, second = padded.get(0), padded.get(1)
    rank, other = len(node.shape(0)), len(node.shape(1))
    if rank < 2 or other < 2:
        raise node.size_depends(next(iter(padded)))
    inner = {0: rank - 1, 1: other - 2}
    merged = [i for i, size in padded.items() if size.axis == inner[i]]
    if len(merged) == len(padded):
        for i in merged:
            node.replaced[i] = without_padding(node, node[i], padded[i], 0.0)
        return importer(node)
    if first is not None and second is None and other == 2:
        return _passed_on(node, importer(node), first, first.axis)
    raise node.size_depends(next(iter(padded)))


def _own(node: Node, importer: Importer) -> Results:
    """The operator's importer handles padding itself."""
    return importer(node)


SIZED: dict[str, Consumer] = {
    **dict.fromkeys(("Identity", *ELEMENTWISE), _elementwise),
    "ReduceSum": _reduction(0.0, since=13),
    "ReduceMax": _reduction(float("-inf")),
    "ReduceMin": _reduction(float("inf")),
    "ReduceProd": _reduction(1.0),
    "ReduceL1": _reduction(0.0),
    "ReduceL2": _reduction(0.0),
    "ReduceSumSquare": _reduction(0.0),
    "ReduceLogSum": _reduction(0.0),
    "ReduceLogSumExp": _reduction(float("-inf")),
    "ReduceMean": _mean,
    "ArgMax": _arg(float("-inf")),
    "ArgMin": _arg(float("inf")),
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "CumSum": _scan(0.0),
    "CumProd": _scan(1.0),
    "TopK": _top_k,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "Transpose": _transpose,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "Flatten": _reshape,
    "Slice": _slice,
    "Concat": _concat,
    "Shape": _shape,
    "Size": _size,
    "MatMul": _matmul,
    "NonZero": _own,
    "Compress": _own,
    "Unique": _own,
}
"""The operators that can read padding."""


def read_sized(node: Node, importer: Importer) -> Results:
    """The results of an importer for a node whose operands may have padding.

    Raises NotConstantError, which names the inputs that decide the size, if the operator cannot
    keep the padding from changing its results.
    """
    padded = _padded(node)
    if not padded:
        return importer(node)
    if node.operator not in SIZED or node.domain != "ai.onnx":
        raise node.size_depends(next(iter(padded)))
    return SIZED[node.operator](node, importer)
