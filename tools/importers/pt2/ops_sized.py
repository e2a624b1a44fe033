"""ATen operators on tensors whose size only a run knows, and with numbers that are such sizes.

Most importers build the same operations for a tensor with padding as for any other: what operations
do with padding follows from their iteration spaces (`padding.py`), and what operators of ONNX do
with it is known (`onnx/ops_sized.py`). Importers that read shapes have an entry of their own here.
All others are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import element_type
from .. import bounded
from ..building import Known, Value, dtype_of, shape_of
from ..length_values import emitted_length
from ..lengths import Length, as_length, is_less, product, simplest
from ..padding import (
    from_front,
    length_along,
    lengths_along,
    mark,
    positions,
    reshaped,
    sizes_of,
)
from .aten_node import I64, AtenNode, Importer, Results, is_value
from .ops_creation import CREATIONS
from .ops_elementwise import ELEMENTWISE
from .ops_indexed import BOOL
from .ops_movement import END
from .promotion import Number

Consumer = Callable[[AtenNode, Importer], Results]
"""Imports a node with lengths, by means of the operator's own importer."""

Lengths = list["int | Length"]


def read_sized(node: AtenNode, name: str, importer: Importer) -> Results:
    """The results of an importer for a node that may read padding and lengths.

    Raises NotConstantError, which names what decides the size, if the operator needs a fixed one.

    Args:
        name: of the operator, without its namespace, overload and underscore.
    """
    found = node.lengths_read()
    if not found:
        return importer(node)
    consumer = SIZED.get(name)
    if consumer is None:
        raise node.size_refused("a size", found[0])
    return consumer(node, importer)


def _own_lengths(node: AtenNode, name: str) -> Lengths:
    return lengths_in(node, node.value(name))


def lengths_in(node: AtenNode, value: Value) -> Lengths:
    """The number of elements that exist along each axis of a value."""
    return [*value.shape] if isinstance(value, Known) else lengths_along(node, value)


def _axis(node: AtenNode, name: str = "dim", operand: str = "self") -> int:
    return node.along(node.integer(name, 0), len(node.shape(operand)))


# Operators whose importers need to know nothing of lengths


def _through(node: AtenNode, importer: Importer) -> Results:
    """The importer's operations do with padding what their iteration spaces say."""
    return importer(node)


def _elementwise(node: AtenNode, importer: Importer) -> Results:
    """Operands whose sizes broadcast. A number that is a length becomes a tensor without axes."""
    given = {name: node.get(name, None) for name in node.call.arguments}
    wide = {name: node.ssa(v) for name, v in given.items() if is_value(v) and shape_of(v)}
    aligned = bounded.aligned(node, [*wide.values()]) if wide else []
    replaced = dict(zip(wide, aligned, strict=True)) | {
        name: node.cast(emitted_length(node, length), i64)
        for name, length in given.items()
        if isinstance(length, Length)
    }
    return importer(node.replacing(replaced))


def _besides(axes: Callable[[AtenNode], Iterable[int]], operand: str = "self") -> Consumer:
    """Refuse padding along some axes of an operand, whose sizes the importer reads."""

    def consumer(node: AtenNode, importer: Importer) -> Results:
        lengths = _own_lengths(node, operand)
        for axis in axes(node):
            length = lengths[axis]
            if isinstance(length, Length):
                raise node.size_refused(f"the size of axis {axis} of argument {operand}", length)
        return importer(node)

    return consumer


def _axes_in_dim(node: AtenNode) -> Iterable[int]:
    return node.axes("dim", len(node.shape("self")))


def _axes_in_dims(node: AtenNode) -> Iterable[int]:
    return node.axes("dims", len(node.shape("self")))


def _axis_in_dim(node: AtenNode) -> Iterable[int]:
    return [_axis(node)]


def _normalised(node: AtenNode) -> Iterable[int]:
    rank = len(node.shape("input"))
    return range(rank - len(node.integers("normalized_shape")), rank)


def _image(node: AtenNode) -> Iterable[int]:
    return range(1, len(node.shape("input")))


# Attention


def _attention(node: AtenNode, importer: Importer) -> Results:
    """Keys, values and masks are equally long; if that is not known, the run compares them."""
    key, value = node["key"], node["value"]
    along = [len(nn.shape_of(each)) - 2 for each in (key, value)]
    parts = [(key, along[0]), (value, along[1])]
    mask = node.operand("attn_mask")
    if mask is not None:
        parts.append((node.ssa(mask), len(shape_of(mask)) - 1))
    common = bounded.common_length(node, [length_along(node, v, axis) for v, axis in parts])
    matched = [bounded.matched(node, v, axis, common) for v, axis in parts]
    names = ("key", "value", "attn_mask")
    return importer(node.replacing(dict(zip(names, matched, strict=False))))


# Shapes


def _completed(node: AtenNode, lengths: Sequence[int | Length], whole: Length) -> Lengths:
    """Lengths in which -1 is replaced by what is left of a number of elements."""
    found = list(lengths)
    for each in found:
        if isinstance(each, Length) and is_less(each, 0) is not False:
            raise node.size_refused("a size that may be negative", each)
    if found.count(-1) > 1 or any(isinstance(n, int) and n < -1 for n in found):
        raise node.bad("a shape; need sizes, and -1 at most once")
    if -1 in found:
        rest = product(n for n in found if n != -1)
        left = whole.divided(rest)
        if left is None:
            raise node.size_refused("the size for -1", whole, rest)
        found[found.index(-1)] = simplest(left)
    return found


def _view(name: str) -> Consumer:
    def consumer(node: AtenNode, importer: Importer) -> Results:
        del importer
        if node.has("dtype"):
            raise node.unsupported("seeing a tensor as another element type", "a cast is")
        whole = product(_own_lengths(node, "self"))
        return reshaped(node, node["self"], _completed(node, node.lengths(name), whole))

    return consumer


def _view_as(node: AtenNode, importer: Importer) -> Results:
    del importer
    return reshaped(node, node["self"], _own_lengths(node, "other"))


def _flatten(node: AtenNode, importer: Importer) -> Results:
    own = _own_lengths(node, "self")
    if not own:
        return importer(node)
    first = node.along(node.integer("start_dim", 0), len(own))
    last = node.along(node.integer("end_dim", -1), len(own))
    middle = simplest(product(own[first : last + 1]))
    return reshaped(node, node["self"], [*own[:first], middle, *own[last + 1 :]])


def _ravel(node: AtenNode, importer: Importer) -> Results:
    del importer
    return reshaped(node, node["self"], [simplest(product(_own_lengths(node, "self")))])


def _unflatten(node: AtenNode, importer: Importer) -> Results:
    del importer
    own, axis = _own_lengths(node, "self"), _axis(node)
    sizes = _completed(node, node.lengths("sizes"), as_length(own[axis]))
    return reshaped(node, node["self"], [*own[:axis], *sizes, *own[axis + 1 :]])


def _squeeze(node: AtenNode, importer: Importer) -> Results:
    """Axes of one element are left out. PyTorch takes a size that only a run knows not to be 1."""
    del importer
    own = _own_lengths(node, "self")
    among = node.axes("dim", len(own)) if node.has("dim") else range(len(own))
    kept = [n for i, n in enumerate(own) if n != 1 or i not in among]
    return reshaped(node, node["self"], kept)


def _unsqueeze(node: AtenNode, importer: Importer) -> Results:
    del importer
    lengths = _own_lengths(node, "self")
    lengths.insert(node.axis(node.integer("dim"), len(lengths) + 1), 1)
    return reshaped(node, node["self"], lengths)


def expanded(node: AtenNode, value: Value, wanted: Sequence[int | Length]) -> SSAValue:
    """A value repeated to lengths, in which -1 leaves a size as it is."""
    own = lengths_in(node, value)
    source = [1] * (len(wanted) - len(own)) + own
    lengths = [n if m == -1 else m for n, m in zip(source, wanted, strict=True)]
    return bounded.expanded(node, node.ssa(value), lengths)


def _expand(node: AtenNode, importer: Importer) -> Results:
    del importer
    return expanded(node, node.value("self"), node.lengths("size"))


def _expand_as(node: AtenNode, importer: Importer) -> Results:
    del importer
    return expanded(node, node.value("self"), _own_lengths(node, "other"))


def _copy(node: AtenNode, importer: Importer) -> Results:
    del importer
    found = node.converted(node.value("src"), node.dtype("self"))
    return expanded(node, found, _own_lengths(node, "self"))


# Joins and parts


def _joined(node: AtenNode, values: Sequence[Value], axis: int) -> Results:
    kept = [each for each in values if shape_of(each) != (0,)] or values[:1]
    return bounded.joined(node, node.alike(*kept), axis)


def _cat(node: AtenNode, importer: Importer) -> Results:
    del importer
    values = node.several("tensors")
    rank = max(len(shape_of(each)) for each in values)
    return _joined(node, values, node.along(node.integer("dim", 0), rank))


def _stack(node: AtenNode, importer: Importer) -> Results:
    del importer
    values = node.several("tensors")
    axis = node.axis(node.integer("dim", 0), len(shape_of(values[0])) + 1)
    apart: list[Value] = []
    for each in values:
        lengths = lengths_in(node, each)
        lengths.insert(axis, 1)
        apart.append(reshaped(node, node.ssa(each), lengths))
    return _joined(node, apart, axis)


def _slice(node: AtenNode, importer: Importer) -> Results:
    del importer
    step = node.integer("step", 1)
    if step < 1:
        raise node.bad(f"step {step}; need 1 or more")
    start, end = node.length("start", 0), node.length("end", END)
    return bounded.cut(node, node["self"], _axis(node), start, end, step)


def _narrow(node: AtenNode, importer: Importer) -> Results:
    del importer
    start = node.length("start")
    end = simplest(as_length(start) + node.length("length"))
    return bounded.cut(node, node["self"], _axis(node), start, end)


def _select(node: AtenNode, importer: Importer) -> Results:
    """One element along an axis, which must exist. A negative index counts from the end of what
    exists.
    """
    axis, index = _axis(node), node.get("index")
    length = _own_lengths(node, "self")[axis]
    if not isinstance(index, int | Length) or (isinstance(length, int) and isinstance(index, int)):
        return importer(node)
    place = simplest(as_length(length) + index if is_less(index, 0) else index)
    return node.add(nn.GatherOp(node["self"], emitted_length(node, place), axis))


def _split(name: str) -> Consumer:
    """Parts of given sizes along an axis, one after another."""

    def consumer(node: AtenNode, importer: Importer) -> Results:
        if not isinstance(node.get(name), list):
            return _besides(_axis_in_dim)(node, importer)
        found: list[Value] = []
        start: int | Length = 0
        for size in node.lengths(name):
            stop = simplest(as_length(start) + size)
            found.append(bounded.cut(node, node["self"], _axis(node), start, stop))
            start = stop
        return found

    return consumer


def _triangle(*, upper: bool) -> Consumer:
    """Elements on one side of a diagonal; 0 elsewhere."""

    def consumer(node: AtenNode, importer: Importer) -> Results:
        offset = node.length("diagonal", 0)
        if isinstance(offset, int):
            return importer(node)
        value = node["self"]
        rank = len(nn.shape_of(value))
        row, column = (positions(node, value, axis) for axis in (rank - 2, rank - 1))
        edge = node.add(nn.AddOp(row, emitted_length(node, offset)))
        outside = nn.LessOp(column, edge) if upper else nn.GreaterOp(column, edge)
        return node.add(nn.SelectOp(node.add(outside), node.constant(0, value), value))

    return consumer


def _slice_scatter(node: AtenNode, importer: Importer) -> Results:
    """Rows of a tensor that are replaced, from a place that only a run knows."""
    start, axis = node.length("start", 0), _axis(node)
    if isinstance(start, int) and isinstance(_own_lengths(node, "self")[axis], int):
        return importer(node)
    if node.integer("step", 1) != 1:
        raise node.size_refused("a step in writing", as_length(start))
    if is_less(start, 0) is not False:
        raise node.size_refused("a place that may be negative", as_length(start))
    own = _own_lengths(node, "self")
    end = node.length("end", END)
    own[axis] = simplest((own[axis] if end == END else as_length(end)) - as_length(start))
    part = expanded(node, node.converted(node.value("src"), node.dtype("self")), own)
    place = node.add(nn.IotaOp(nn.tensor((nn.shape_of(part)[axis],), i64), [1]))
    place = node.add(nn.AddOp(place, node.cast(emitted_length(node, start), i64)))
    return node.add(nn.UpdateOp(part, place, node["self"], "last", axis))


# Indices


def _index(node: AtenNode, importer: Importer) -> Results:
    """Elements at indices of several axes. A negative index counts from the end of what exists."""
    value = node["self"]
    sizes = sizes_of(node, value)
    given: list[Value | None] = node.get("indices")
    tensors = {axis: each for axis, each in enumerate(given) if each is not None}
    padded = sizes.keys() & tensors.keys()
    if len(tensors) < 2 or not padded or any(dtype_of(v) == BOOL for v in tensors.values()):
        return importer(node)
    found = list(given)
    for axis in padded:
        found[axis] = from_front(node, node.converted(tensors[axis], I64), sizes[axis])
    shape = nn.shape_of(value)
    copied = node.bare_reshape(node.bare_reshape(value, (1, *shape)), shape)
    copied = mark(node, copied, {a: n for a, n in sizes.items() if a not in padded})
    return importer(node.replacing({"self": copied, "indices": found}))


# New tensors


def _full(value: float | None) -> Consumer:
    """A tensor that repeats a number, of the sizes in an argument, or of those of another tensor.

    Args:
        value: the number; None for the one in the argument fill_value.
    """

    def consumer(node: AtenNode, importer: Importer) -> Results:
        del importer
        given: Any = node.get("fill_value") if value is None else value
        lengths = node.lengths("size") if node.has("size") else _own_lengths(node, "self")
        shape = [bounded.capacity(each) for each in lengths]
        dtype = node.result_dtype()
        if isinstance(given, bool | int | float):
            with np.errstate(all="ignore"):
                filled = node.ssa(node.filled(np.array(given).astype(dtype), shape))
        else:
            filled = node.expanded(_scalar(node, given, dtype), shape)
        # Not the constant itself, which other nodes may share.
        return bounded.marked(node, filled, lengths)

    return consumer


def _scalar(node: AtenNode, given: Value | Length, dtype: np.dtype[Any]) -> SSAValue:
    value = emitted_length(node, given) if isinstance(given, Length) else given
    return node.converted(value, dtype)


def _arange(node: AtenNode, importer: Importer) -> Results:
    """Numbers between lengths."""
    start, end, step = (node.get(n, d) for n, d in (("start", 0), ("end", 0), ("step", 1)))
    if not isinstance(step, int) or not all(isinstance(n, int | Length) for n in (start, end)):
        return importer(node)
    if step == 0:
        raise node.bad("a step of 0; need any other")
    return bounded.number_range(node, start, end, step, element_type(node.wanted_dtype(I64)))


def _scalar_tensor(node: AtenNode, importer: Importer) -> Results:
    given: Number | Length | Value = node.get("s")
    if isinstance(given, Length):
        return _scalar(node, given, node.wanted_dtype(I64))
    return importer(node)


PASSED = (
    *("to", "_to_copy", "type_as", "prelu", "_prelu_kernel", "linear", "matmul", "mm", "bmm"),
    *("mv", "addmm", "baddbmm", "einsum", "convolution", "_convolution", "conv1d", "conv2d"),
    *("conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sum", "prod", "mean"),
    *("amax", "amin", "max", "min", "argmax", "argmin", "any", "all", "linalg_vector_norm"),
    *("norm", "logsumexp", "cumsum", "cumprod", "topk", "sort", "argsort", "batch_norm"),
    *("_native_batch_norm_legit_no_training", "softmax", "_softmax", "_safe_softmax"),
    *("log_softmax", "_log_softmax", "permute", "transpose", "swapaxes", "swapdims", "t"),
    *("numpy_T", "mT", "adjoint", "movedim", "moveaxis", "repeat", "tile", "repeat_interleave"),
    *("pad", "constant_pad_nd", "embedding", "index_select", "gather"),
    *("index_put", "_unsafe_index_put", "scatter", "scatter_add", "scatter_reduce", "index_add"),
    *("index_copy", "nonzero", "argwhere", "masked_select", "one_hot", "zero", "dropout"),
    *("native_dropout", "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d"),
    *("avg_pool3d", "adaptive_avg_pool1d", "_adaptive_avg_pool2d", "adaptive_avg_pool2d"),
    *("adaptive_avg_pool3d", "max_pool2d_with_indices"),
)
"""Operators whose importers need to know nothing of lengths."""

FULL = {
    **dict.fromkeys(("zeros", "new_zeros", "zeros_like", "empty", "new_empty", "empty_like"), 0),
    **dict.fromkeys(("ones", "new_ones", "ones_like"), 1),
    **dict.fromkeys(("full", "new_full", "full_like"), None),
}
"""Operators that repeat a number, which is None where an argument holds it."""

assert FULL.keys() <= CREATIONS.keys(), "each has an importer"

SIZED: dict[str, Consumer] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(PASSED, _through),
    **{name: _full(value) for name, value in FULL.items()},
    "glu": _besides(lambda node: [node.along(node.integer("dim", -1), len(node.shape("self")))]),
    **dict.fromkeys(("var", "std", "var_mean", "std_mean"), _besides(_axes_in_dim)),
    **dict.fromkeys(
        ("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm"),
        _besides(_normalised, "input"),
    ),
    **dict.fromkeys(
        ("group_norm", "native_group_norm", "instance_norm"), _besides(_image, "input")
    ),
    **dict.fromkeys(
        (
            "scaled_dot_product_attention",
            "_scaled_dot_product_flash_attention_for_cpu",
            "_scaled_dot_product_attention_math",
        ),
        _attention,
    ),
    **dict.fromkeys(("view", "_unsafe_view"), _view("size")),
    "reshape": _view("shape"),
    **dict.fromkeys(("view_as", "reshape_as"), _view_as),
    "flatten": _flatten,
    "ravel": _ravel,
    "unflatten": _unflatten,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    **dict.fromkeys(("expand", "broadcast_to"), _expand),
    "expand_as": _expand_as,
    "copy": _copy,
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    "stack": _stack,
    "slice": _slice,
    "narrow": _narrow,
    "select": _select,
    **dict.fromkeys(("split", "unsafe_split"), _split("split_size")),
    "split_with_sizes": _split("split_sizes"),
    **dict.fromkeys(("chunk", "unbind", "select_scatter"), _besides(_axis_in_dim)),
    "flip": _besides(_axes_in_dims),
    "tril": _triangle(upper=False),
    "triu": _triangle(upper=True),
    "slice_scatter": _slice_scatter,
    **dict.fromkeys(("index", "_unsafe_index"), _index),
    "arange": _arange,
    "scalar_tensor": _scalar_tensor,
}
"""The operators that can read padding and lengths."""
