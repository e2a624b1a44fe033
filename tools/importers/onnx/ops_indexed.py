"""ONNX operators that reach elements by index: gathers, scatters and one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from math import prod
from operator import lt

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ....ir.support.number_kinds import is_whole
from ....ir.upstream import VerifyException
from ..building import dtype_of
from ..length_values import emitted_length
from ..padding import length_along
from .node import Importer, Node, Results
from .packed_rows import rows_of_matrix
from .window import explicit_pads

MERGED_BY = {"sum": nn.AddOp, "prod": nn.MulOp, "max": nn.MaxOp, "min": nn.MinOp}
"""By combiner, the operation that merges the data with the merged updates."""


def looked_up_at(node: Node, operand: int, size: int, axis: int | None = None) -> SSAValue:
    """The indices into an axis of this size. Negative indices count from its end.

    The end of an axis with padding is known in a run only, so these indices stay as they are.

    Raises InputError for indices that are known at import and out of range. Other indices are
    checked when they are used, and so are those in a branch or loop, which may never run.

    Args:
        axis: of operand 0; None for an axis of what the node makes itself.
    """
    if not is_whole(dtype_of(node.value(operand))):
        raise node.bad(f"indices of {dtype_of(node.value(operand)).name}; need integers")
    array = node.graph.known(node.value(operand))
    if array is not None and axis not in node.sizes(0):
        outside = array[(array < -size) | (array >= size)]
        if outside.size and node.graph.region is not None:
            return node[operand]
        if outside.size:
            raise node.bad(f"index {outside.flat[0]} of an axis of {size} elements")
        normal = np.where(array < 0, array + size, array)
        return node.emitted(normal.astype(np.int64))
    return node[operand]


def _from_front(node: Node, indices: SSAValue, size: int) -> SSAValue:
    """Indices that may be negative, counted from the front of an axis."""
    zero = node.constant(0, indices)
    turned = node.add(nn.AddOp(indices, node.constant(size, indices)))
    return node.add(nn.SelectOp(node.add(nn.LessOp(indices, zero)), turned, indices))


def _gather(node: Node) -> Results:
    """A slice if the indices are known and evenly spaced, else a lookup."""
    shape = list(node.shape(0))
    axis = node.axis(node.integer("axis", 0), len(shape))
    indices = node.graph.known(node.value(1))
    is_listed = indices is not None and is_whole(indices.dtype) and indices.ndim < 2
    if indices is not None and is_listed and axis not in node.sizes(0):
        found = _sliced(node, indices, axis)
        if found is not None:
            return found
    places = looked_up_at(node, 1, shape[axis], axis)
    rows = rows_of_matrix(node, node[0], places) if axis == 0 else None
    return node.add(nn.GatherOp(node[0], places, axis)) if rows is None else rows


def _sliced(node: Node, indices: np.ndarray, axis: int) -> SSAValue | None:
    """The elements at evenly spaced indices as one slice; None for other indices."""
    shape = list(node.shape(0))
    picked = [int(i) + (shape[axis] if i < 0 else 0) for i in indices.reshape(-1)]
    steps = {b - a for a, b in pairwise(picked)} or {1}
    if len(steps) > 1 or 0 in steps or any(not 0 <= i < shape[axis] for i in picked):
        return None
    starts, strides, sizes = [0] * len(shape), [1] * len(shape), list(shape)
    starts[axis], strides[axis] = (picked[0] if picked else 0), steps.pop()
    sizes[axis] = len(picked)
    whole = node[0]
    if sizes != shape or strides[axis] != 1:
        whole = node.add(nn.SliceOp(whole, starts, strides, sizes))
    if indices.ndim:
        return whole
    return node.reshape(whole, [n for i, n in enumerate(shape) if i != axis])


def _gather_elements(node: Node) -> Results:
    shape = node.shape(0)
    axis = node.axis(node.integer("axis", 0), len(shape))
    return node.add(nn.GatherAlongOp(node[0], looked_up_at(node, 1, shape[axis], axis), axis))


def _flat(
    node: Node, operand: int, shape: tuple[int, ...], *, from_front: bool = False
) -> SSAValue:
    """Row-major positions in a shape, from the coordinates along the last axis of an operand.

    If a coordinate is out of range, so is the position, so that the lookup raises a fault.

    Args:
        from_front: whether positions have to be counted from the front.
    """
    given = node.shape(operand)
    weights = [*accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1)][::-1]
    array = node.graph.known(node.value(operand))
    sizes = np.array(shape, np.int64)
    # The end of an axis with padding is known in a run only.
    is_open = 0 in node.sizes(0)
    if array is not None and not is_open:
        outside = (array < -sizes) | (array >= sizes)
        if outside.any():
            raise node.bad(f"index {array[outside].flat[0]} outside of {list(shape)}")
        normal = np.where(array < 0, array + sizes, array)
        flat = (normal * np.array(weights, np.int64)).sum(-1)
        return node.emitted(flat.astype(np.int64))
    if len(shape) == 1 and not from_front:
        # A lookup accepts negative indices, and refuses indices out of range, itself.
        return node.reshape(node[operand], given[:-1])
    indices = node.cast(node[operand], i64)

    def constant(values: np.ndarray) -> SSAValue:
        return node.emitted(values)

    above = node.add(nn.MaxOp(indices, constant(-sizes)))
    inside = node.add(nn.EqualOp(node.add(nn.MinOp(above, constant(sizes - 1))), indices))
    normal = node.add(nn.ModOp(indices, constant(sizes)))
    weighted = node.add(nn.MulOp(normal, constant(np.array(weights, np.int64))))
    # Positions are not negative, so that the sum is out of range too.
    checked = node.add(nn.SelectOp(inside, weighted, node.constant(prod(shape), indices)))
    return node.add(nn.ReduceOp(checked, "sum", [len(given) - 1]))


def _gather_nd(node: Node) -> Results:
    """A lookup in a table whose indexed axes are merged into one."""
    data, given, batch = node.shape(0), node.shape(1), node.integer("batch_dims", 0)
    if not given or not 0 <= batch < min(len(data), len(given)):
        raise node.bad(f"batch_dims {batch} of ranks {len(data)} and {len(given)}")
    depth = given[-1]
    if batch + depth > len(data) or data[:batch] != given[:batch]:
        raise node.bad(f"indices of {list(given)} into data of {list(data)}")
    indexed, rest = data[batch : batch + depth], data[batch + depth :]
    count = prod(data[:batch])
    flat = _flat(node, 1, indexed, from_front=count > 1)
    # The batch becomes a further index: row b * size + i of all tables joined.
    if count > 1:
        first = (node.counted(count) * prod(indexed)).reshape(
            *data[:batch], *[1] * (len(given) - 1 - batch)
        )
        flat = node.add(nn.AddOp(flat, node.cast(node.emitted(first), nn.element_of(flat))))
    table = node.reshape(node[0], (count * prod(indexed), *rest))
    return node.reshape(node.add(nn.GatherOp(table, flat, 0)), (*given[:-1], *rest))


def _scattered(
    node: Node, data: SSAValue, indices: SSAValue, updates: SSAValue, along: int, combiner: str
) -> SSAValue:
    """Data with some rows replaced by updates, or merged with them.

    Args:
        along: the axis of ScatterElements; -1 if indices name rows of the first axis.
        combiner: "" to replace.
    """
    axis, shape = max(along, 0), nn.shape_of(data)
    if along < 0:
        # Rows are updated one after another, in the order of the indices.
        count = prod(nn.shape_of(indices))
        updates = node.reshape(updates, (count, *shape[1:]))
        indices = node.reshape(indices, (count, *[1] * (len(shape) - 1)))
    given = nn.shape_of(updates)
    if 0 in given:
        return data

    def updated(part: SSAValue) -> SSAValue:
        """A part of the data with updates. Along each axis, updates cover its first elements."""
        whole = nn.shape_of(part)
        for i, (n, m) in enumerate(zip(whole, given, strict=True)):
            if i == axis or n == m:
                continue

            def cut(start: int, size: int, i: int = i) -> SSAValue:
                starts = [start if j == i else 0 for j in range(len(whole))]
                extent = [size if j == i else n for j, n in enumerate(whole)]
                return node.add(nn.SliceOp(part, starts, [1] * len(whole), extent))

            return node.add(nn.ConcatOp([updated(cut(0, m)), cut(m, n - m)], i))
        return node.add(nn.UpdateOp(updates, indices, part, combiner or "last", axis))

    return updated(data)


def _combiner(node: Node) -> str:
    """The combiner of a scatter's reduction; "" if updates replace elements."""
    own = {"sum": "add", "prod": "mul"}
    names = {"none": "", **{own.get(combiner, combiner): combiner for combiner in MERGED_BY}}
    reduction = node.text("reduction", "none")
    if reduction not in names:
        raise node.bad(f"reduction {reduction!r}; need one of {', '.join(names)}")
    return names[reduction]


def _scatter_elements(node: Node) -> Results:
    shape, given = node.shape(0), node.shape(1)
    axis = node.axis(node.integer("axis", 0), len(shape))
    if node.shape(2) != given or len(given) != len(shape):
        raise node.bad(f"indices of {list(given)} and updates of {list(node.shape(2))}")
    indices, updates = looked_up_at(node, 1, shape[axis], axis), node[2]
    if any(m > n for i, (n, m) in enumerate(zip(shape, given, strict=True)) if i != axis):
        raise node.bad(f"indices of {list(given)} for data of {list(shape)}")
    return _scattered(node, node[0], indices, updates, axis, _combiner(node))


def _scatter_nd(node: Node) -> Results:
    shape, given = node.shape(0), node.shape(1)
    depth = given[-1] if given else 0
    if not given or depth > len(shape):
        raise node.bad(f"indices of {list(given)} into data of {list(shape)}")
    indexed, rest = shape[:depth], shape[depth:]
    if node.shape(2) != (*given[:-1], *rest):
        raise node.bad(f"updates of {list(node.shape(2))}; need {[*given[:-1], *rest]}")
    flat = node.reshape(_flat(node, 1, indexed), (prod(given[:-1]),))
    data = node.reshape(node[0], (prod(indexed), *rest))
    updates = node.reshape(node[2], (prod(given[:-1]), *rest))
    return node.reshape(_scattered(node, data, flat, updates, -1, _combiner(node)), shape)


def _tensor_scatter(node: Node) -> Results:
    """A cache in which each sample replaces elements along an axis, starting at its own index."""
    shape, update = node.shape(0), node.shape(1)
    rank = len(shape)
    axis = node.axis(node.integer("axis", -2), rank)
    alike = [i for i in range(rank) if i != axis]
    if len(update) != rank or axis == 0 or any(shape[i] != update[i] for i in alike):
        raise node.bad(f"update of {list(update)} for a cache of {list(shape)} along axis {axis}")
    size, length, batch = shape[axis], update[axis], shape[0]
    if length > size:
        raise node.bad(f"update of {length} elements for {size} along axis {axis}")
    mode = node.text("mode", "linear")
    if mode not in ("linear", "circular"):
        raise node.bad(f"mode {mode!r}; need linear or circular")
    if 0 in update:
        return node.value(0)
    run = node.counted(length)
    place = node.emitted(run[None])
    if node.has(2):
        first = node.reshape(node.cast(node[2], i64), (batch, 1))
        place = node.add(nn.AddOp(first, place))
        if mode == "linear":
            # Elements beyond the end of the cache have an index out of range, which is a fault.
            above = node.add(nn.GreaterEqualOp(first, node.constant(0, first)))
            below = node.add(nn.LessOp(first, _first_beyond(node, axis, size, first)))
            fits = node.add(nn.LogicalAndOp(above, below))
            place = node.add(nn.SelectOp(fits, place, node.constant(size, place)))
    if mode == "circular":
        place = node.add(nn.ModOp(place, node.constant(size, place)))
    # Without an index operand, all samples replace the same elements.
    samples = nn.shape_of(place)[0]
    along = [samples if i == 0 else length if i == axis else 1 for i in range(rank)]
    return node.add(nn.UpdateOp(node[1], node.reshape(place, along), node[0], "last", axis))


def _first_beyond(node: Node, axis: int, size: int, like: SSAValue) -> SSAValue:
    """The first place at which an update, operand 1, does not fit a cache any more."""
    length = length_along(node, node[1], axis)
    if isinstance(length, int):
        return node.constant(size - length + 1, like)
    own = node.cast(emitted_length(node, length), nn.element_of(like))
    return node.add(nn.SubOp(node.constant(size + 1, like), own))


def _max_unpool(node: Node) -> Results:
    """Zeros, except the values at their indices, in the smallest image that has these windows."""
    shape, given = node.shape(0), node.shape(1)
    window = node.integers("kernel_shape")
    rank = len(window)
    if len(shape) != rank + 2 or given != shape or not rank:
        raise node.bad(f"values of {list(shape)}, indices of {list(given)}, window {window}")
    stride = node.integers("strides", [1] * rank)
    low, high = explicit_pads(node, rank)
    lists = zip(shape[2:], window, stride, low, high, strict=True)
    image = (*shape[:2], *((n - 1) * s - lo - hi + k for n, k, s, lo, hi in lists))
    whole = tuple(node.array_integers(2, "output_shape")) if node.has(2) else image
    count, size = prod(shape), prod(image)
    least = 1 if count else 0
    if min(image) < least or len(whole) != len(image) or any(map(lt, whole, image)):
        raise node.bad(f"output_shape {list(whole)}; need {list(image)} or more")
    if not count:
        return node.add(nn.ExpandOp(node.constant(0, node[0]), whole))
    nothing = node.add(nn.ExpandOp(node.constant(0, node[0]), (size,)))
    indices = node.reshape(looked_up_at(node, 1, size), (count,))
    updates = node.reshape(node[0], (count,))
    found = node.reshape(_scattered(node, nothing, indices, updates, 0, ""), image)
    more = [n - m for n, m in zip(whole, image, strict=True)]
    return node.add(nn.PadOp(found, [0] * len(more), more)) if any(more) else found


def _one_hot(node: Node) -> Results:
    depth = int(node.array_scalar(1, "depth"))
    if depth < 1:
        raise node.bad(f"depth {depth}; need 1 or more")
    given = node.shape(0)
    axis = node.axis(node.integer("axis", -1), len(given) + 1)
    is_integer = is_whole(dtype_of(node.value(0)))
    indices = node[0] if is_integer else node.cast(node[0], i64)
    shape = [*given[:axis], 1, *given[axis:]]
    normal = node.reshape(_from_front(node, indices, depth), shape)
    along = [depth if i == axis else 1 for i in range(len(shape))]
    rows = node.counted(depth).astype(numpy_dtype(nn.element_of(normal))).reshape(along)
    hit = node.add(nn.EqualOp(normal, node.emitted(rows)))
    values = node[2]
    off, on = (node.reshape(node.add(nn.SliceOp(values, [i], [1], [1])), ()) for i in (0, 1))
    return node.add(nn.SelectOp(hit, on, off))


def _eye_like(node: Node) -> Results:
    shape, offset = node.shape(0), node.integer("k", 0)
    if len(shape) != 2:
        raise node.bad(f"shape {list(shape)}; need two axes")
    dtype = dtype_of(node.value(0))
    if node.has_attribute("dtype"):
        dtype = numpy_dtype(node.element(node.integer("dtype")))
    node.check_table(*shape)
    return node.known(np.eye(*shape, k=offset).astype(dtype))


def _above(node: Node, shape: Sequence[int], offset: int) -> SSAValue | None:
    """Numbers that are positive on the diagonal and on the side of it that Trilu keeps.

    None if the element type cannot hold the numbers.

    Args:
        offset: the distance of the diagonal towards the other side.
    """
    step = 1 if node.flag("upper", True) else -1
    steps = [*(0 for _ in shape[:-2]), -step, step]
    wide = (*(1 for _ in shape[:-2]), *shape[-2:])
    try:
        return node.add(nn.IotaOp(nn.tensor(wide, nn.element_of(node[0])), steps, offset + 1))
    except VerifyException:
        return None


def _trilu(node: Node) -> Results:
    shape = node.shape(0)
    if len(shape) < 2:
        raise node.bad(f"shape {list(shape)}; need two axes or more")
    offset = node.array_integers(1, "k")[0] if node.has(1) else 0
    above = _above(node, shape, -offset if node.flag("upper", True) else offset)
    if above is not None:
        return node.add(nn.GateOp(above, node[0]))
    keep = partial(np.triu if node.flag("upper", True) else np.tril, k=offset)
    node.check_table(*shape[-2:])
    mask = node.emitted(keep(np.ones(shape[-2:], np.bool_)))
    return node.add(nn.SelectOp(mask, node[0], node.constant(0, node[0])))


INDEXED: dict[str, Importer] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
    "MaxUnpool": _max_unpool,
    "OneHot": _one_hot,
    "EyeLike": _eye_like,
    "Trilu": _trilu,
}
