"""Importers for operands whose size depends on values, and for numbers that are such sizes.

Most importers build the same operations for a tensor with padding as for any other: what operations
do with padding follows from their iteration spaces (`padding.py`). Those that put a size into a
constant, or move elements along axes, have an entry of their own here. All others are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from ....dialects import nn
from ....ir.support.number_kinds import is_whole
from .. import bounded
from ..building import Known, Value, dtype_of, is_float
from ..length_values import lengths_of
from ..lengths import Length, as_length, is_less, product, simplest
from ..padding import lengths_along, mark, reshaped, sizes_of
from .node import Importer, Node, Results, listed
from .ops_elementwise import ELEMENTWISE

Consumer = Callable[[Node, Importer], Results]
"""Imports a node with padded operands, by means of the operator's own importer."""

Sizes = list["int | Length"]


def _padded(node: Node) -> list[int]:
    """The operands that have padding."""
    return [i for i in range(node.operand_count) if node.has(i) and node.sizes(i)]


def _own_lengths(node: Node, operand: int) -> Sizes:
    """The number of elements that exist along each axis of an operand."""
    value = node.value(operand)
    return [*value.shape] if isinstance(value, Known) else lengths_along(node, value)


def _numbers(node: Node, operand: int, what: str) -> Sizes:
    """The integers of an operand, as lengths. Raises NotConstantError if one of them is unknown."""
    value = node.value(operand)
    found = None if isinstance(value, Known) else lengths_of(node.graph, value)
    if found is None:
        return [*node.array_integers(operand, what)]
    return [*found.reshape(-1)]


def _parameter(node: Node, name: str, index: int, since: int) -> Sizes | None:
    """As Node.parameter, of lengths."""
    if node.opset < since or not node.has(index):
        found = node.parameter(name, index, since)
        return None if found is None else [*found]
    return _numbers(node, index, name)


# Operators whose importers need to know nothing of padding


def _through(node: Node, importer: Importer) -> Results:
    """The importer's operations do with padding what their iteration spaces say."""
    return importer(node)


def _own(node: Node, importer: Importer) -> Results:
    """The operator's importer handles padding itself."""
    return importer(node)


def _elementwise(node: Node, importer: Importer) -> Results:
    """Operands whose sizes broadcast."""
    places = [i for i in range(node.operand_count) if node.has(i) and node.shape(i)]
    for i, value in zip(places, bounded.aligned(node, [node[i] for i in places]), strict=True):
        node.replaced[i] = value
    return importer(node)


def _dropout(node: Node, importer: Importer) -> Results:
    """The mask has the sizes of the data."""
    data, mask = listed(importer(node))
    assert isinstance(mask, SSAValue | Known)
    return [data, mark(node, node.program.emitted(mask), node.sizes(0))]


def _matmul(node: Node, importer: Importer) -> Results:
    """Sizes of the merged axes are equal, and those of leading axes broadcast."""
    ranks = [len(node.shape(i)) for i in (0, 1)]
    if min(ranks) < 1:
        return importer(node)
    a, b = node[0], node[1]
    inner = ranks[0] - 1, max(ranks[1] - 2, 0)
    common = bounded.common_length(
        node, [lengths_along(node, a)[inner[0]], lengths_along(node, b)[inner[1]]]
    )
    a, b = (bounded.matched(node, v, i, common) for v, i in zip((a, b), inner, strict=True))
    a, b = bounded.leading_aligned(node, a, b, 2)
    node.replaced[0], node.replaced[1] = a, b
    return importer(node)


def _besides(axes: Callable[[Node], Iterable[int]]) -> Consumer:
    """Refuse padding along some axes of operand 0, whose sizes the importer puts into constants.

    The other operands, which are weights, may have none at all.
    """

    def consumer(node: Node, importer: Importer) -> Results:
        for i in _padded(node):
            if i or set(axes(node)) & node.sizes(0).keys():
                raise node.size_depends(i)
        return importer(node)

    return consumer


def _last_axes(node: Node) -> Iterable[int]:
    """The axes that a layer normalisation merges."""
    rank = len(node.shape(0))
    return range(node.axis(node.integer("axis", -1), rank), rank)


def _image_axes(node: Node) -> Iterable[int]:
    """All axes but that of the samples."""
    return range(1, len(node.shape(0)))


def _tokens(*operands: int, others: Iterable[int] = ()) -> Consumer:
    """Let some operands have padding along their last axis but one, that of tokens, and no other.

    Args:
        others: operands that may have any padding.
    """

    def consumer(node: Node, importer: Importer) -> Results:
        for i in _padded(node):
            tokens = {len(node.shape(i)) - 2} if i in operands else set[int]()
            if i not in others and {*node.sizes(i)} != tokens:
                raise node.size_depends(i)
        return importer(node)

    return consumer


def _written(node: Node, importer: Importer) -> Results:
    """Rows that are written into a cache may have padding along the axis of the rows."""
    axis = node.axis(node.integer("axis", -2), len(node.shape(0)))
    for i in _padded(node):
        if i != 1 or {*node.sizes(1)} != {axis}:
            raise node.size_depends(i)
    return importer(node)


# Reductions


def _axes(node: Node, since: int) -> list[int]:
    """The axes of a reduction, counted from the front."""
    rank = len(node.shape(0))
    axes = node.parameter("axes", 1, since)
    if axes is None or (node.opset >= since and not axes):
        return [] if node.flag("noop_with_empty_axes") else list(range(rank))
    return sorted({node.axis(a, rank) for a in axes})


def _mean(node: Node, importer: Importer) -> Results:
    """Along padded axes, the sum of the existing elements divided by their number."""
    axes = _axes(node, 18)
    if not node.sizes(0).keys() & set(axes):
        return importer(node)
    value = node[0]
    wide = node.wide(value) if is_float(value) else node.cast(value, f32)
    total = node.add(nn.ReduceOp(wide, "sum", axes, keep_dims=node.flag("keepdims", True)))
    count = node.cast(bounded.mean_count(node, value, axes), nn.element_of(total))
    return node.cast(node.add(nn.DivOp(total, count)), nn.element_of(value))


def _arg(node: Node, importer: Importer) -> Results:
    """The index of the extreme, which is the first one, so that it is never padding."""
    axis = node.axis(node.integer("axis", 0), len(node.shape(0)))
    if axis in node.sizes(0) and node.flag("select_last_index"):
        raise node.size_depends(0)
    return importer(node)


def _top_k(node: Node, importer: Importer) -> Results:
    """The first elements in order; padding sorts after them. K may not exceed the number that
    exists.
    """
    axis = node.axis(node.integer("axis", -1), len(node.shape(0)))
    results = importer(node)
    for value in listed(results):
        if isinstance(value, SSAValue) and axis in node.sizes(0):
            kept = {a: n for a, n in sizes_of(node, value).items() if a != axis}
            if node.opset >= 10 and node.graph.known(node.value(1)) is None:
                kept[axis] = as_length(_numbers(node, 1, "K")[0])
            mark(node, value, kept)
    return results


# Indices


def _by_coordinates(node: Node, importer: Importer) -> Results:
    """Coordinates along axes with padding are those of a vector of rows only."""
    depth, batch = node.shape(1)[-1], node.integer("batch_dims", 0)
    indexed = set(range(batch, batch + depth)) if depth + batch > 1 else set[int]()
    indexed |= set(range(batch))
    if indexed & node.sizes(0).keys():
        raise node.size_depends(0)
    if len(node.shape(1)) - 1 in node.sizes(1):
        raise node.size_depends(1)
    return importer(node)


def _scatter_rows(node: Node, importer: Importer) -> Results:
    """Updates have the sizes of their indices."""
    lengths, inner = _own_lengths(node, 1)[:-1], node.shape(1)[-1]
    wanted = [*lengths, *_own_lengths(node, 0)[inner:]]
    node.replaced[2] = bounded.expanded(node, node[2], wanted)
    return _by_coordinates(node, importer)


def _along(node: Node, importer: Importer) -> Results:
    """Updates have the sizes of their indices. Along other axes, they are for all that exists."""
    shape, given = node.shape(0), node.shape(1)
    axis = node.axis(node.integer("axis", 0), len(shape))
    if len(given) == len(shape) and any(i != axis and given[i] != shape[i] for i in node.sizes(0)):
        raise node.size_depends(0)
    node.replaced[2] = bounded.expanded(node, node[2], _own_lengths(node, 1))
    return importer(node)


# Shapes


def _shape(node: Node, importer: Importer) -> Results:
    """The shape, of constants and lengths."""
    lengths = _own_lengths(node, 0)
    lengths = lengths[slice(node.integer("start", 0), node.integer("end", len(lengths)))]
    if all(isinstance(each, int) for each in lengths):
        return node.known(np.array(lengths, np.int64))
    return bounded.shape_vector(node, lengths, i64)


def _size(node: Node, importer: Importer) -> Results:
    total = product(_own_lengths(node, 0))
    return node.reshape(bounded.shape_vector(node, [simplest(total)], i64), ())


def _reshape(node: Node, importer: Importer) -> Results:
    """A reshape to a shape of lengths. -1 stands for what is left of the elements."""
    shape, own = _parameter(node, "shape", 1, 5), _own_lengths(node, 0)
    if shape is None:
        raise node.bad("the shape is missing")
    for i, n in enumerate(shape):
        if is_less(n, 0) is None:
            raise node.size_refused("a size that may be negative", as_length(n))
        if n == 0 and not node.flag("allowzero"):
            if i >= len(own):
                raise node.bad(f"shape {shape}: entry {i} is 0 but the operand is shorter")
            shape[i] = own[i]
    if sum(isinstance(n, int) and n < 0 for n in shape) > 1 or any(
        isinstance(n, int) and n < -1 for n in shape
    ):
        raise node.bad(f"shape {shape}; need sizes, and -1 at most once")
    if -1 in shape:
        rest = product(n for n in shape if n != -1)
        left = product(own).divided(rest)
        if left is None:
            raise node.size_refused("the size for -1", product(own), rest)
        shape[shape.index(-1)] = simplest(left)
    return reshaped(node, node[0], shape)


def _flatten(node: Node, importer: Importer) -> Results:
    own = _own_lengths(node, 0)
    axis = node.axis(node.integer("axis", 1), len(own), end=True)
    return reshaped(node, node[0], [simplest(product(own[:axis])), simplest(product(own[axis:]))])


def _squeeze(node: Node, importer: Importer) -> Results:
    """Remove axes of one element. The padded axes must not be among them."""
    own = _own_lengths(node, 0)
    axes = node.parameter("axes", 1, 13)
    gone = (
        [i for i, n in enumerate(own) if n == 1]
        if axes is None
        else [node.axis(a, len(own)) for a in axes]
    )
    may_go = [i for i in node.sizes(0) if is_less(1, own[i]) is not True]
    if set(gone) & node.sizes(0).keys() or (axes is None and may_go):
        raise node.size_depends(0)
    return reshaped(node, node[0], [n for i, n in enumerate(own) if i not in gone])


def _unsqueeze(node: Node, importer: Importer) -> Results:
    given = node.parameter("axes", 1, 13) or []
    lengths = _own_lengths(node, 0)
    rank = len(lengths) + len(given)
    for axis in sorted(node.axis(a, rank) for a in given):
        lengths.insert(axis, 1)
    return reshaped(node, node[0], lengths)


def _expand(node: Node, importer: Importer) -> Results:
    return bounded.expanded(node, node[0], _numbers(node, 1, "shape"))


def _constant_of_shape(node: Node, importer: Importer) -> Results:
    lengths = _numbers(node, 0, "shape")
    value = node.tensor("value") if node.has_attribute("value") else np.zeros(1, np.float32)
    shape = [bounded.capacity(n) for n in lengths]
    filled = node.graph.emitted(node.filled(value.reshape(()), shape))
    # Not the constant itself, which other nodes may share.
    return bounded.marked(node, filled, lengths)


def _range(node: Node, importer: Importer) -> Results:
    """Numbers between lengths."""
    element = nn.element_of(node[0])
    if not is_whole(dtype_of(node.value(0))) or node.graph.known(node.value(2)) is None:
        return importer(node)
    (step,) = node.array_integers(2, "delta")
    if step == 0:
        raise node.bad("a delta of 0; need any other")
    start, stop = (_numbers(node, i, what)[0] for i, what in ((0, "start"), (1, "limit")))
    return bounded.number_range(node, start, stop, step, element)


def _ends(node: Node, operand: int, what: str, sizes: Sizes) -> Sizes:
    """The starts or ends of slices. Those that nothing is known of are cut to the axis."""
    value = node.value(operand)
    if isinstance(value, Known) or lengths_of(node.graph, value) is not None:
        return _numbers(node, operand, what)
    found: Sizes = []
    for i, size in enumerate(sizes):
        each = node.reshape(node.add(nn.SliceOp(value, [i], [1], [1])), ())
        # Numbers from the end are counted from the front, and numbers beyond it are the end.
        count = node.cast(bounded.emitted_length(node, size), nn.element_of(each))
        below = node.add(nn.LessOp(each, node.constant(0, each)))
        turned = node.add(nn.SelectOp(below, node.add(nn.AddOp(each, count)), each))
        found.append(bounded.scalar_length(node, turned, as_length(size).most))
    return found


def _slice(node: Node, importer: Importer) -> Results:
    """Slices between lengths."""
    own, value = _own_lengths(node, 0), node[0]
    rank = len(own)
    if node.opset < 10:
        begin, end = node.integers("starts"), node.integers("ends")
        axes, steps = node.integers("axes", range(len(begin))), [1] * len(begin)
    else:
        (count,) = node.shape(1)
        axes = node.array_integers(3, "axes") if node.has(3) else list(range(count))
        steps = node.array_integers(4, "steps") if node.has(4) else [1] * count
        sizes = [own[node.axis(a, rank)] for a in axes]
        begin, end = _ends(node, 1, "starts", sizes), _ends(node, 2, "ends", sizes)
    for first, last, axis, step in zip(begin, end, axes, steps, strict=True):
        if step == 0:
            raise node.bad("a step is 0; need any other")
        value = bounded.cut(node, value, node.axis(axis, rank), first, last, step)
    return value


def _split(node: Node, importer: Importer) -> Results:
    """Parts of lengths, one after another."""
    own = _own_lengths(node, 0)
    axis = node.axis(node.integer("axis", 0), len(own))
    sizes = _parameter(node, "split", 1, 13)
    if sizes is None:
        if axis in node.sizes(0):
            raise node.size_depends(0)
        return importer(node)
    parts: list[Value] = []
    start: int | Length = 0
    for size in sizes:
        stop = simplest(as_length(start) + size)
        parts.append(bounded.cut(node, node[0], axis, start, stop))
        start = stop
    return parts


def _concat(node: Node, importer: Importer) -> Results:
    parts = node.all()
    return bounded.joined(node, parts, node.axis(node.integer("axis"), len(nn.shape_of(parts[0]))))


def _pad(node: Node, importer: Importer) -> Results:
    """Constant elements before and behind an axis with padding."""
    rank, sizes = len(node.shape(0)), node.sizes(0)
    pads = _parameter(node, "pads", 1, 11) or []
    axes = node.array_integers(3, "axes") if node.has(3) else list(range(rank))
    if len(pads) != 2 * len(axes):
        raise node.bad(f"pads {pads}; need {2 * len(axes)}, two per axis")
    ends = {
        node.axis(a, rank): (low, high)
        for a, low, high in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True)
    }
    fixed = all(isinstance(n, int) for n in pads)
    if fixed and not any(ends.get(axis, (0, 0)) != (0, 0) for axis in sizes):
        return importer(node)
    if node.text("mode", "constant") != "constant":
        raise node.size_depends(0) if sizes else node.unsupported("a length of padding", "need 0")
    value = node[0]
    fill = np.zeros((), dtype_of(node.value(0)))
    if node.opset < 11:
        fill = np.array(node.number("value", 0.0), fill.dtype)
    elif node.has(2):
        fill = np.array(node.array_scalar(2, "constant_value"), fill.dtype)
    for axis, (low, high) in ends.items():
        parts: list[SSAValue] = []
        for each in (low, None, high):
            if each is None:
                parts.append(value)
                continue
            if is_less(each, 0) is not False:
                raise node.unsupported(
                    "a negative pad along an axis with padding", "need 0 or more"
                )
            lengths = lengths_along(node, value)
            lengths[axis] = each
            shape = list(nn.shape_of(value))
            shape[axis] = bounded.capacity(each)
            filled = node.graph.emitted(node.filled(fill, shape))
            parts.append(bounded.marked(node, filled, lengths))
        if (low, high) != (0, 0):
            value = bounded.joined(node, parts, axis)
    return value


REDUCTIONS = (
    *("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
)

PASSED = (
    *("Softmax", "LogSoftmax", "CumSum", "CumProd", "Gemm", "Transpose", "Tile", "Trilu"),
    *("OneHot", "Gather", "GatherElements", "BatchNormalization", "QuantizeLinear"),
    *("DequantizeLinear", "Einsum", "Identity"),
)
"""Further operators whose importers need to know nothing of padding."""

BY_SAMPLE = (
    *("Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"),
    *("InstanceNormalization", "LRN", "DepthToSpace", "SpaceToDepth"),
)
"""Operators that may have padding along the axis of the samples, and along no other."""

SIZED: dict[str, Consumer] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    "Dropout": _dropout,
    **dict.fromkeys((*REDUCTIONS, *PASSED), _through),
    **dict.fromkeys(BY_SAMPLE, _besides(_image_axes)),
    "LayerNormalization": _besides(_last_axes),
    "RMSNormalization": _besides(_last_axes),
    "SimplifiedLayerNormalization": _besides(_last_axes),
    "ReduceMean": _mean,
    "ArgMax": _arg,
    "ArgMin": _arg,
    "TopK": _top_k,
    "GatherND": _by_coordinates,
    "ScatterND": _scatter_rows,
    "Scatter": _along,
    "ScatterElements": _along,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Expand": _expand,
    "ConstantOfShape": _constant_of_shape,
    "Slice": _slice,
    "Split": _split,
    "Concat": _concat,
    "Pad": _pad,
    "Range": _range,
    "Shape": _shape,
    "Size": _size,
    "MatMul": _matmul,
    "Attention": _tokens(0),
    "TensorScatter": _written,
    "NonZero": _own,
    "Compress": _own,
    "Unique": _own,
    "NonMaxSuppression": _own,
    "If": _own,
    "Loop": _own,
}
"""The operators that can read padding."""

SIZED_OF_MICROSOFT: dict[str, Consumer] = {
    **dict.fromkeys(("Gelu", "QuickGelu"), _through),
    **dict.fromkeys(("BiasGelu", "FastGelu"), _besides(_last_axes)),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _tokens(0, 1)),
    "SimplifiedLayerNormalization": _besides(_last_axes),
    "MatMulNBits": _besides(_last_axes),
    "GatherBlockQuantized": _through,
    "RotaryEmbedding": _tokens(0, others=(1,)),
    "GroupQueryAttention": _tokens(0, 1, 2, others=(9,)),
}
"""The operators of onnxruntime that can read padding."""

DOMAINS = {"ai.onnx": SIZED, "com.microsoft": SIZED_OF_MICROSOFT}

BY_LENGTHS: dict[str, tuple[int, ...]] = {
    "Reshape": (1,),
    "Expand": (1,),
    "ConstantOfShape": (0,),
    "Slice": (1, 2),
    "Split": (1,),
    "Pad": (1,),
    "Range": (0, 1),
}
"""The operands that are sizes, of operators whose results they decide."""


def _reads_lengths(node: Node) -> bool:
    """Whether an operand that is a size depends on values."""
    return any(
        node.has(i) and node.graph.known(node.value(i)) is None
        for i in BY_LENGTHS.get(node.operator, ())
    )


def read_sized(node: Node, importer: Importer) -> Results:
    """The results of an importer for a node whose operands may have padding.

    Raises NotConstantError, which names the inputs that decide the size, if the operator cannot
    keep the padding from changing its results.
    """
    own, padded = DOMAINS.get(node.domain, {}).get(node.operator), _padded(node)
    if not padded and not (node.domain == "ai.onnx" and own and _reads_lengths(node)):
        return importer(node)
    if own is None:
        raise node.size_depends(padded[0])
    return own(node, importer)
