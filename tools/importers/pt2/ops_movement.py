"""ATen operators that move elements or reshape tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value, shape_of
from .aten_node import AtenNode, Importer, Results

END = 2**63 - 1
"""The end of a slice that has none."""


def _completed(node: AtenNode, shape: Sequence[int], count: int) -> list[int]:
    """A shape in which -1 is replaced by the size that is left."""
    sizes = list(shape)
    if sizes.count(-1) > 1 or any(n < -1 for n in sizes):
        raise node.bad(f"shape {sizes}; need sizes, and -1 at most once")
    if -1 in sizes:
        rest = prod(n for n in sizes if n != -1)
        if rest == 0 or count % rest:
            raise node.bad(f"shape {sizes}: {count} elements do not divide by {rest}")
        sizes[sizes.index(-1)] = count // rest
    if prod(sizes) != count:
        raise node.bad(f"shape {sizes} for {count} elements")
    return sizes


def _to_shape(node: AtenNode, value: Value, shape: Sequence[int]) -> Value:
    """A value in another shape, which is adapted if another number of samples is asked for."""
    own = node.reshaped(shape_of(value))
    return node.reshaped_to(value, shape if own is None else own)


def _view(name: str) -> Importer:
    def importer(node: AtenNode) -> Results:
        value = node.value("self")
        if node.has("dtype"):
            raise node.unsupported("seeing a tensor as another element type", "a cast is")
        count = prod(shape_of(value))
        own = node.reshaped(shape_of(value))
        shape = own if own is not None else _completed(node, node.integers(name), count)
        return node.reshaped_to(value, shape)

    return importer


def _flatten(node: AtenNode) -> Results:
    shape = node.shape("self")
    if not shape:
        return node.reshaped_to(node.value("self"), (1,))
    first = node.along(node.integer("start_dim", 0), len(shape))
    last = node.along(node.integer("end_dim", -1), len(shape))
    if first > last:
        raise node.bad(f"axes {first} to {last}; the first may not follow the last")
    middle = prod(shape[first : last + 1])
    return _to_shape(node, node.value("self"), (*shape[:first], middle, *shape[last + 1 :]))


def _unflatten(node: AtenNode) -> Results:
    shape = node.shape("self")
    axis = node.along(node.integer("dim"), len(shape))
    sizes = _completed(node, node.integers("sizes"), shape[axis])
    return _to_shape(node, node.value("self"), (*shape[:axis], *sizes, *shape[axis + 1 :]))


def _squeeze(node: AtenNode) -> Results:
    shape = node.shape("self")
    given = node.axes("dim", len(shape)) if node.has("dim") else range(len(shape))
    kept = [n for i, n in enumerate(shape) if n != 1 or i not in given]
    return node.reshaped_to(node.value("self"), kept)


def _unsqueeze(node: AtenNode) -> Results:
    shape = list(node.shape("self"))
    shape.insert(node.axis(node.integer("dim"), len(shape) + 1), 1)
    return node.reshaped_to(node.value("self"), shape)


def _permute(node: AtenNode) -> Results:
    rank = len(node.shape("self"))
    order = [node.axis(a, rank) for a in node.integers("dims")]
    if sorted(order) != list(range(rank)):
        raise node.bad(f"axes {order} of a tensor of {rank} axes; need each once")
    return node.transposed(node.value("self"), order)


def _transpose(first: str, second: str) -> Importer:
    def importer(node: AtenNode) -> Results:
        rank = len(node.shape("self"))
        if not rank:
            return node.value("self")
        a, b = (node.along(node.integer(name), rank) for name in (first, second))
        order = list(range(rank))
        order[a], order[b] = b, a
        return node.transposed(node.value("self"), order)

    return importer


def _t(node: AtenNode) -> Results:
    rank = len(node.shape("self"))
    if rank > 2:
        raise node.bad(f"a tensor of {rank} axes; need at most two")
    return node.transposed(node.value("self"), list(range(rank))[::-1])


def _reversed_axes(node: AtenNode) -> Results:
    return node.transposed(node.value("self"), list(range(len(node.shape("self"))))[::-1])


def _last_two(node: AtenNode) -> Results:
    rank = len(node.shape("self"))
    if rank < 2:
        raise node.bad(f"a tensor of {rank} axes; need two or more")
    return node.transposed(node.value("self"), [*range(rank - 2), rank - 1, rank - 2])


def _move_axes(node: AtenNode) -> Results:
    rank = len(node.shape("self"))
    source = [node.axis(a, rank) for a in node.integers("source")]
    goal = [node.axis(a, rank) for a in node.integers("destination")]
    if len(source) != len(goal) or len({*source}) != len(source) or len({*goal}) != len(goal):
        raise node.bad(f"axes {source} to {goal}; need as many of both, each once")
    rest = iter(i for i in range(rank) if i not in source)
    order = [source[goal.index(i)] if i in goal else next(rest) for i in range(rank)]
    return node.transposed(node.value("self"), order)


def _expand_to(node: AtenNode, value: Value, wanted: Sequence[int]) -> SSAValue:
    """A value repeated to a shape, in which -1 leaves a size as it is."""
    shape = shape_of(value)
    new = len(wanted) - len(shape)
    if new < 0:
        raise node.bad(f"shape {list(wanted)} for a tensor of shape {list(shape)}")
    source = [1] * new + list(shape)
    sizes = [n if m == -1 else m for n, m in zip(source, wanted, strict=True)]
    return node.expanded(value, sizes)


def _expand(node: AtenNode) -> Results:
    return _expand_to(node, node.value("self"), node.integers("size"))


def _like_other(function: Callable[[AtenNode, Value, Sequence[int]], Value]) -> Importer:
    return lambda node: function(node, node.value("self"), node.shape("other"))


def _repeat(name: str) -> Importer:
    """A tensor several times along each axis."""

    def importer(node: AtenNode) -> Results:
        shape, repeats = node.shape("self"), node.integers(name)
        new = max(0, len(repeats) - len(shape))
        shape = (1,) * new + shape
        repeats = [1] * (len(shape) - len(repeats)) + repeats
        value = node.reshape(node["self"], shape)
        return node.apply("Tile", value, node.integers_known(repeats))

    return importer


def _repeat_interleave(node: AtenNode) -> Results:
    """Each element several times in a row."""
    value, shape, count = node["self"], node.shape("self"), node.integer("repeats")
    if not node.has("dim"):
        value, shape = node.reshape(value, (prod(shape),)), (prod(shape),)
    axis = node.along(node.integer("dim", 0), len(shape))
    apart = node.reshape(value, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    grown = node.expanded(apart, (*shape[: axis + 1], count, *shape[axis + 1 :]))
    return node.reshape(grown, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def _joined(node: AtenNode, values: Sequence[Value], axis: int) -> SSAValue:
    kept = [each for each in values if shape_of(each) != (0,)] or values[:1]
    alike = node.alike(*kept)
    filled = [each for each in alike if nn.shape_of(each)[axis]] or alike[:1]
    return filled[0] if len(filled) == 1 else node.add(nn.ConcatOp(filled, axis))


def _cat(node: AtenNode) -> Results:
    values = node.several("tensors")
    if not values:
        raise node.bad("no tensors; need one or more")
    rank = max(len(shape_of(each)) for each in values)
    return _joined(node, values, node.along(node.integer("dim", 0), rank))


def _side_by_side(least: int, axis: int) -> Importer:
    """Tensors joined along an axis, once they have as many axes as this needs; else along 0."""

    def importer(node: AtenNode) -> Results:
        values = node.several("tensors")
        if least:
            values = [
                node.reshaped_to(v, (*[1] * (least - len(shape_of(v))), *shape_of(v)))
                for v in values
            ]
        rank = max((len(shape_of(each)) for each in values), default=0)
        return _joined(node, values, axis if rank > axis else 0)

    return importer


def _rotated(node: AtenNode) -> Results:
    """A tensor turned by quarters in the plane of two axes."""
    value, shape, quarters = node["self"], node.shape("self"), node.integer("k", 1) % 4
    a, b = (node.along(each, len(shape)) for each in node.integers("dims", [0, 1]))

    def turned(x: SSAValue, axes: set[int]) -> SSAValue:
        sizes = nn.shape_of(x)
        starts = [n - 1 if i in axes else 0 for i, n in enumerate(sizes)]
        return node.add(
            nn.SliceOp(x, starts, [-1 if i in axes else 1 for i in range(len(sizes))], sizes)
        )

    if quarters % 2 == 0 or a == b or 0 in shape:
        return turned(value, {a, b}) if quarters and 0 not in shape else value
    order = list(range(len(shape)))
    order[a], order[b] = b, a
    first = b if quarters == 1 else a
    return node.transposed(turned(value, {first}), order)


def _stack(node: AtenNode) -> Results:
    values = node.several("tensors")
    if not values:
        raise node.bad("no tensors; need one or more")
    shape = shape_of(values[0])
    axis = node.axis(node.integer("dim", 0), len(shape) + 1)
    apart = [
        node.reshaped_to(each, (*shape_of(each)[:axis], 1, *shape_of(each)[axis:]))
        for each in values
    ]
    return _joined(node, apart, axis)


def _parts(node: AtenNode, value: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    if any(n < 0 for n in sizes) or sum(sizes) != shape_of(value)[axis]:
        raise node.bad(f"parts of {list(sizes)} along an axis of {shape_of(value)[axis]}")
    starts = accumulate(sizes, initial=0)
    return [node.sliced(value, axis, at, n) for at, n in zip(starts, sizes, strict=False)]


def _axis_of(node: AtenNode) -> int:
    return node.along(node.integer("dim", 0), len(node.shape("self")))


def _split(node: AtenNode) -> Results:
    """Parts of one size, of which the last may be smaller, or of given sizes."""
    name = "split_sizes" if node.has("split_sizes") else "split_size"
    given, axis = node.integers(name), _axis_of(node)
    is_list = isinstance(node.get(name), list)
    n = node.shape("self")[axis]
    if is_list:
        return _parts(node, node.value("self"), axis, given)
    size = given[0]
    if size < 1:
        raise node.bad(f"parts of {size}; need 1 or more")
    node.check_table(-(-n // size))
    sizes = [min(size, n - at) for at in range(0, n, size)] or [0]
    return _parts(node, node.value("self"), axis, sizes)


def _chunk(node: AtenNode) -> Results:
    axis, count = _axis_of(node), node.integer("chunks")
    n = node.shape("self")[axis]
    if count < 1:
        raise node.bad(f"{count} chunks; need 1 or more")
    size = max(1, -(-n // count))
    return _parts(
        node, node.value("self"), axis, [min(size, n - at) for at in range(0, n, size)] or [0]
    )


def _tensor_split(node: AtenNode) -> Results:
    axis = _axis_of(node)
    n = node.shape("self")[axis]
    if node.has("sections"):
        k = node.integer("sections")
        if not 1 <= k <= max(n, 1):
            raise node.bad(f"{k} sections of an axis of {n}")
        sizes = [n // k + (i < n % k) for i in range(k)]
    else:
        edges = [0, *(min(max(i + n if i < 0 else i, 0), n) for i in node.integers("indices")), n]
        sizes = [b - a for a, b in pairwise(edges)]
    return _parts(node, node.value("self"), axis, sizes)


def _unbind(node: AtenNode) -> Results:
    axis, shape = _axis_of(node), node.shape("self")
    kept = [n for i, n in enumerate(shape) if i != axis]
    node.check_table(shape[axis])
    parts = _parts(node, node.value("self"), axis, [1] * shape[axis])
    return [node.reshaped_to(each, kept) for each in parts]


def taken(start: int, end: int, size: int) -> tuple[int, int]:
    """The first element of a slice along an axis, and the one after its last."""
    low, high = (min(max(n + size if n < 0 else n, 0), size) for n in (start, end))
    return low, max(low, high)


def _slice(node: AtenNode) -> Results:
    axis, step = _axis_of(node), node.integer("step", 1)
    if step < 1:
        raise node.bad(f"step {step}; need 1 or more")
    size = node.shape("self")[axis]
    first, last = taken(node.integer("start", 0), node.integer("end", END), size)
    return node.sliced(node.value("self"), axis, first, -(-(last - first) // step), step)


def _narrow(node: AtenNode) -> Results:
    axis, start, length = _axis_of(node), node.integer("start"), node.integer("length")
    size = node.shape("self")[axis]
    start = start + size if start < 0 else start
    if not 0 <= start <= start + length <= size:
        raise node.bad(f"{length} elements from {start} on, along an axis of {size}")
    return node.sliced(node.value("self"), axis, start, length)


def _select(node: AtenNode) -> Results:
    shape, axis = node.shape("self"), _axis_of(node)
    index = node.get("index")
    kept = [n for i, n in enumerate(shape) if i != axis]
    if not isinstance(index, int) and node.graph.known(index) is None:
        return node.reshaped_to(node.apply("Gather", node.value("self"), index, axis=axis), kept)
    place = node.integer("index")
    if not -shape[axis] <= place < shape[axis]:
        raise node.bad(f"index {place} of an axis of {shape[axis]}")
    part = node.sliced(node.value("self"), axis, place % shape[axis], 1)
    return node.reshaped_to(part, kept)


def _flip(node: AtenNode) -> Results:
    value, shape = node["self"], node.shape("self")
    axes = {node.along(a, len(shape)) for a in node.integers("dims")}
    if not shape or not axes or 0 in shape:
        return value
    starts = [n - 1 if i in axes else 0 for i, n in enumerate(shape)]
    steps = [-1 if i in axes else 1 for i in range(len(shape))]
    return node.add(nn.SliceOp(value, starts, steps, shape))


def _roll(node: AtenNode) -> Results:
    value, shifts = node["self"], node.integers("shifts")
    shape = nn.shape_of(value)
    axes = node.integers("dims", [])
    if not axes:
        flat: SSAValue = node.reshape(value, (prod(shape),))
        return node.reshape(_rolled(node, flat, 0, shifts[0]), shape)
    for axis, shift in zip(axes, shifts, strict=True):
        value = _rolled(node, value, node.along(axis, len(shape)), shift)
    return value


def _rolled(node: AtenNode, value: SSAValue, axis: int, shift: int) -> SSAValue:
    size = nn.shape_of(value)[axis]
    at = shift % size if size else 0
    if not at:
        return value
    front = node.sliced(value, axis, size - at, at)
    return node.add(nn.ConcatOp([front, node.sliced(value, axis, 0, size - at)], axis))


def _diff(node: AtenNode) -> Results:
    """Differences of neighbours along an axis, n times, with given parts before and after it."""
    value, times = node.value("self"), node.integer("n", 1)
    axis = node.along(node.integer("dim", -1), len(shape_of(value)))
    parts = [node.operand("prepend"), value, node.operand("append")]
    value = _joined(node, [each for each in parts if each is not None], axis)
    operator = "Xor" if node.dtype("self") == np.bool_ else "Sub"
    for _ in range(min(times, nn.shape_of(value)[axis])):
        size = nn.shape_of(value)[axis] - 1
        value = node.apply(
            operator, node.sliced(value, axis, 1, size), node.sliced(value, axis, 0, size)
        )
    return value


def _padding(node: AtenNode, rank: int, name: str = "padding") -> tuple[list[int], list[int]]:
    """The padding before and after each axis. torch lists pairs from the last axis on."""
    given = node.integers(name)
    if len(given) % 2 or len(given) > 2 * rank:
        raise node.bad(f"padding {given} of a tensor of {rank} axes")
    low, high = [0] * rank, [0] * rank
    for i in range(len(given) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = given[2 * i : 2 * i + 2]
    return low, high


def _pad_as(mode: str, fill: str = "") -> Importer:
    def importer(node: AtenNode) -> Results:
        low, high = _padding(node, len(node.shape("self")), "pad" if fill else "padding")
        value = node.number(fill, 0.0) if fill else 0.0
        return node.add(nn.PadOp(node["self"], low, high, mode=mode, value=value))

    return importer


MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""The modes of padding, by torch's name."""


def _pad(node: AtenNode) -> Results:
    mode = node.text("mode", "constant")
    if mode not in MODES:
        raise node.bad(f"mode {mode!r}; need one of {', '.join(MODES)}")
    low, high = _padding(node, len(node.shape("self")), "pad")
    fill = node.number("value", 0.0)
    return node.add(nn.PadOp(node["self"], low, high, mode=MODES[mode], value=fill))


def _pixel_shuffle(node: AtenNode) -> Results:
    """Channels that become pixels: each block of r * r channels is a square of the result."""
    r, shape = node.integer("upscale_factor"), node.shape("self")
    front, (c, h, w) = shape[:-3], shape[-3:]
    if r < 1 or c % (r * r):
        raise node.bad(f"upscale_factor {r} of {c} channels")
    flat = node.reshape(node["self"], (prod(front), c, h, w))
    found = node.apply("DepthToSpace", flat, blocksize=r, mode="CRD")
    return node.reshape(found, (*front, c // (r * r), h * r, w * r))


def _pixel_unshuffle(node: AtenNode) -> Results:
    r, shape = node.integer("downscale_factor"), node.shape("self")
    front, (c, h, w) = shape[:-3], shape[-3:]
    if r < 1 or h % r or w % r:
        raise node.bad(f"downscale_factor {r} of an image of {h} by {w}")
    apart = node.reshape(node["self"], (prod(front), c, h // r, r, w // r, r))
    moved = node.transposed(apart, (0, 1, 3, 5, 2, 4))
    return node.reshape(moved, (*front, c * r * r, h // r, w // r))


def _channel_shuffle(node: AtenNode) -> Results:
    groups, shape = node.integer("groups"), node.shape("self")
    if len(shape) < 2 or groups < 1 or shape[1] % groups:
        raise node.bad(f"{groups} groups of a tensor of shape {list(shape)}")
    n, c, *rest = shape
    apart = node.reshape(node["self"], (n, groups, c // groups, *rest))
    order = [0, 2, 1, *range(3, len(rest) + 3)]
    return node.reshape(node.transposed(apart, order), shape)


def _triangle(*, upper: bool) -> Importer:
    def importer(node: AtenNode) -> Results:
        offset = node.known(np.array(node.integer("diagonal", 0), np.int64))
        return node.apply("Trilu", node["self"], offset, upper=int(upper))

    return importer


def _diagonal(node: AtenNode) -> Results:
    """The elements whose two indices differ by an offset, along a new last axis."""
    shape, offset = node.shape("self"), node.integer("offset", 0)
    a = node.axis(node.integer("dim1", 0), len(shape))
    b = node.axis(node.integer("dim2", 1), len(shape))
    if a == b:
        raise node.bad(f"axes {a} and {b}; need two")
    rest = [i for i in range(len(shape)) if i not in (a, b)]
    moved = node.transposed(node.value("self"), [*rest, a, b])
    rows, columns = shape[a], shape[b]
    first = offset if offset >= 0 else -offset * columns
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    flat = node.reshape(moved, (*(shape[i] for i in rest), rows * columns))
    if not count:
        raise node.bad(f"a diagonal at {offset} of {rows} by {columns}, which has no elements")
    return node.sliced(flat, len(rest), first, count, columns + 1)


def _put_back(node: AtenNode, whole: SSAValue, part: SSAValue, axis: int, at: int) -> SSAValue:
    """A tensor in which some elements in a row along an axis are replaced."""
    size, count = nn.shape_of(whole)[axis], nn.shape_of(part)[axis]
    pieces = [
        node.sliced(whole, axis, 0, at),
        part,
        node.sliced(whole, axis, at + count, size - at - count),
    ]
    filled = [each for each in pieces if nn.shape_of(each)[axis]]
    return filled[0] if len(filled) == 1 else node.add(nn.ConcatOp(filled, axis))


def _slice_scatter(node: AtenNode) -> Results:
    whole, shape, step = node["self"], node.shape("self"), node.integer("step", 1)
    axis = _axis_of(node)
    first, last = taken(node.integer("start", 0), node.integer("end", END), shape[axis])
    count = -(-(last - first) // max(step, 1))
    part = node.converted(node.value("src"), node.dtype("self"))
    part = node.expanded(part, [count if i == axis else n for i, n in enumerate(shape)])
    if step == 1 or not count:
        return _put_back(node, whole, part, axis, first) if count else whole
    index = node.known((first + step * np.arange(count)).astype(np.int64))
    along = [count if i == axis else 1 for i in range(len(shape))]
    places = node.expanded(node.reshaped_to(index, along), nn.shape_of(part))
    return node.apply("ScatterElements", whole, places, part, axis=axis)


def _select_scatter(node: AtenNode) -> Results:
    whole, shape, axis = node["self"], node.shape("self"), _axis_of(node)
    index = node.integer("index")
    if not -shape[axis] <= index < shape[axis]:
        raise node.bad(f"index {index} of an axis of {shape[axis]}")
    part = node.converted(node.value("src"), node.dtype("self"))
    kept = node.reshape(part, [1 if i == axis else n for i, n in enumerate(shape)])
    return _put_back(node, whole, kept, axis, index % shape[axis])


def _copy(node: AtenNode) -> Results:
    """The elements of another tensor, in the shape and the type of this one."""
    found = node.converted(node.value("src"), node.dtype("self"))
    return _expand_to(node, found, node.shape("self"))


def _broadcast(node: AtenNode) -> Results:
    values = node.several("tensors")
    shape = np.broadcast_shapes(*map(shape_of, values))
    return [node.expanded(each, shape) for each in values]


def _meshgrid(node: AtenNode) -> Results:
    """Each vector along an axis of its own, repeated along the axes of the others."""
    values, swapped = node.several("tensors"), node.text("indexing", "ij") == "xy"
    sizes = [prod(shape_of(each)) for each in values]
    axes = list(range(len(values)))
    if swapped and len(values) > 1:
        axes[:2] = 1, 0
    shape = [0] * len(values)
    for axis, n in zip(axes, sizes, strict=True):
        shape[axis] = n
    return [
        node.expanded(
            node.reshaped_to(each, [n if i == axis else 1 for i in range(len(shape))]), shape
        )
        for each, axis, n in zip(values, axes, sizes, strict=True)
    ]


def _as_strided(node: AtenNode) -> Results:
    """A view by strides, of a tensor whose elements lie in row-major order."""
    shape, strides = node.integers("size"), node.integers("stride")
    offset, given = node.integer("storage_offset", 0), node.shape("self")
    if len(shape) != len(strides) or any(n < 0 for n in (*shape, *strides, offset)):
        raise node.bad(f"sizes {shape}, strides {strides}, offset {offset}")
    node.check_table(*shape)
    places = np.full((), offset)
    for n, step in zip(shape, strides, strict=True):
        places = places[..., None] + step * np.arange(n)
    if places.size and places.max() >= prod(given):
        raise node.bad(f"strides {strides} of sizes {shape} leave a tensor of {list(given)}")
    flat = node.reshaped_to(node.value("self"), (prod(given),))
    return node.apply("Gather", flat, node.known(places.astype(np.int64)), axis=0)


MOVEMENTS: dict[str, Importer] = {
    "view": _view("size"),
    "_unsafe_view": _view("size"),
    "reshape": _view("shape"),
    "view_as": _like_other(_to_shape),
    "reshape_as": _like_other(_to_shape),
    "flatten": _flatten,
    "unflatten": _unflatten,
    "ravel": lambda node: node.reshaped_to(node.value("self"), (prod(node.shape("self")),)),
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "permute": _permute,
    "transpose": _transpose("dim0", "dim1"),
    "swapaxes": _transpose("axis0", "axis1"),
    "swapdims": _transpose("dim0", "dim1"),
    "t": _t,
    "numpy_T": _reversed_axes,
    "mT": _last_two,
    "adjoint": _last_two,
    "movedim": _move_axes,
    "moveaxis": _move_axes,
    "expand": _expand,
    "broadcast_to": _expand,
    "expand_as": _like_other(_expand_to),
    "broadcast_tensors": _broadcast,
    "meshgrid": _meshgrid,
    "repeat": _repeat("repeats"),
    "tile": _repeat("dims"),
    "repeat_interleave": _repeat_interleave,
    "cat": _cat,
    "concat": _cat,
    "concatenate": _cat,
    "stack": _stack,
    "hstack": _side_by_side(0, 1),
    "vstack": _side_by_side(2, 0),
    "rot90": _rotated,
    "split": _split,
    "split_with_sizes": _split,
    "unsafe_split": _split,
    "chunk": _chunk,
    "unsafe_chunk": _chunk,
    "tensor_split": _tensor_split,
    "unbind": _unbind,
    "slice": _slice,
    "narrow": _narrow,
    "select": _select,
    "flip": _flip,
    "roll": _roll,
    "diff": _diff,
    "pad": _pad,
    "constant_pad_nd": _pad_as("constant", "value"),
    **{f"reflection_pad{n}d": _pad_as("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _pad_as("edge") for n in (1, 2, 3)},
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "channel_shuffle": _channel_shuffle,
    "native_channel_shuffle": _channel_shuffle,
    "tril": _triangle(upper=False),
    "triu": _triangle(upper=True),
    "diagonal": _diagonal,
    "slice_scatter": _slice_scatter,
    "select_scatter": _select_scatter,
    "copy": _copy,
    "as_strided": _as_strided,
}
"""The importers of movements."""
