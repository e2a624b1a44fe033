"""Layers that move elements, or merge whole axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from ....dialects import nn
from ..building import Value, shape_of
from .kinds import SHAPE
from .layer_node import Importer, LayerNode


def _flatten(node: LayerNode) -> Sequence[Value]:
    node.takes(1)
    fields, shape = node.layer.settings("flatten_param"), node.shape(0)
    first = node.along(fields, 1)
    last = node.along(fields, -1, name="end_axis")
    if last < first:
        raise fields.bad("end_axis", f"{last} before axis {first}")
    flat = prod(shape[first : last + 1])
    return [node.reshaped_to(node.value(0), (*shape[:first], flat, *shape[last + 1 :]))]


def _reshape(node: LayerNode) -> Sequence[Value]:
    """In the new shape, 0 stands for the bottom's size at its place, and -1 for what is left."""
    node.takes(1)
    fields, shape = node.layer.settings("reshape_param"), node.shape(0)
    given = fields.inner("shape", SHAPE).integers("dim", -1)
    first = node.axis(fields.integer("axis"), len(shape) + 1)
    count = fields.integer("num_axes", -1, -1)
    end = len(shape) if count == -1 else first + count
    if end > len(shape) or given.count(-1) > 1:
        raise fields.bad("num_axes", f"axes {first}..{end} of {len(shape)}, to {given}")
    if any(n == 0 and first + i >= len(shape) for i, n in enumerate(given)):
        raise fields.bad("shape", f"{given} copies an axis that {list(shape)} does not have")
    middle = [shape[first + i] if n == 0 else n for i, n in enumerate(given)]
    around = prod(shape[:first]) * prod(shape[end:]) * prod(n for n in middle if n != -1)
    if -1 in middle:
        if not around or prod(shape) % around:
            raise fields.bad("shape", f"{given} of {prod(shape)} elements: -1 has no size")
        middle[middle.index(-1)] = prod(shape) // around
    return [node.reshaped_to(node.value(0), (*shape[:first], *middle, *shape[end:]))]


def _split(node: LayerNode) -> Sequence[Value]:
    node.takes(1)
    return [node.value(0)] * len(node.layer.tops)


def _silence(node: LayerNode) -> Sequence[Value]:
    return []


def _slice(node: LayerNode) -> Sequence[Value]:
    node.takes(1)
    fields, shape, count = node.layer.settings("slice_param"), node.shape(0), len(node.layer.tops)
    axis = node.along(fields, 1, name="slice_dim" if fields.has("slice_dim") else "axis")
    points = fields.integers("slice_point")
    if not points and count and shape[axis] % count == 0:
        points = [shape[axis] // count * i for i in range(1, count)]
    edges = [0, *points, shape[axis]]
    if len(edges) != count + 1 or any(a >= b for a, b in pairwise(edges)):
        raise fields.bad(
            "slice_point", f"{points} of {shape[axis]} elements along axis {axis}, for {count} tops"
        )
    return [node.sliced(node.value(0), axis, a, b - a) for a, b in pairwise(edges)]


def _concat(node: LayerNode) -> Sequence[Value]:
    node.takes(1, len(node.bottoms) + 1)
    fields = node.layer.settings("concat_param")
    axis = node.along(fields, 1, name="concat_dim" if fields.has("concat_dim") else "axis")
    values = [node[i] for i in range(len(node.bottoms))]
    return [values[0] if len(values) == 1 else node.add(nn.ConcatOp(values, axis))]


def _crop(node: LayerNode) -> Sequence[Value]:
    """The part of a bottom that has the sizes of another."""
    node.takes(2)
    fields, shape, wanted = node.layer.settings("crop_param"), node.shape(0), node.shape(1)
    first = node.along(fields, 2)
    given = fields.integers("offset")
    offsets = given * (len(shape) - first) if len(given) == 1 else given or [0] * len(shape[first:])
    if len(offsets) != len(shape) - first or len(wanted) != len(shape):
        raise fields.bad("offset", f"{given} of axes {first}..{len(shape)}")
    value = node.value(0)
    for axis, start in enumerate(offsets, first):
        if start + wanted[axis] > shape[axis]:
            raise fields.bad(
                "offset", f"{start} and {wanted[axis]} elements of {shape[axis]} along axis {axis}"
            )
        value = node.sliced(value, axis, start, wanted[axis])
    return [value]


def _tile(node: LayerNode) -> Sequence[Value]:
    node.takes(1)
    fields, shape = node.layer.settings("tile_param"), node.shape(0)
    axis, count = node.along(fields, 1), fields.integer("tiles", 0, 1)
    if count < 1:
        raise fields.bad("tiles", "missing")
    repeats = [count if i == axis else 1 for i in range(len(shape))]
    return [node.apply("Tile", node.value(0), node.integers_known(repeats))]


def _reduction(node: LayerNode) -> Sequence[Value]:
    node.takes(1)
    fields, value = node.layer.settings("reduction_param"), node[0]
    shape = nn.shape_of(value)
    kinds = ("", "SUM", "ASUM", "SUMSQ", "MEAN")
    kind = fields.choice("operation", kinds, "SUM")
    first = node.along(fields, 0) if shape else 0
    axes = list(range(first, len(shape)))
    if kind == "ASUM":
        value = node.add(nn.AbsOp(value))
    elif kind == "SUMSQ":
        value = node.add(nn.SquareOp(value))
    if axes:
        value = node.add(nn.ReduceOp(value, "sum", axes))
    factor = fields.number("coeff", 1.0)
    if kind == "MEAN":
        factor /= max(prod(shape[first:]), 1)
    return [node.scaled(value, factor)]


def _arg_max(node: LayerNode) -> Sequence[Value]:
    """The places of the largest elements, as floats; the elements too if they are asked for."""
    node.takes(1)
    fields, value = node.layer.settings("argmax_param"), node[0]
    shape, count = nn.shape_of(value), fields.integer("top_k", 1, 1)
    has_axis, element = fields.has("axis"), nn.element_of(value)
    if not shape:
        raise node.bad("the bottom is one number; need axes")
    if has_axis:
        axis = node.along(fields, 0)
    else:
        value, axis = node.reshape(value, (shape[0], prod(shape[1:]))), 1
    if count > shape_of(value)[axis]:
        raise fields.bad("top_k", f"{count} of {shape_of(value)[axis]} elements")
    largest, places = node.apply_all(
        "TopK", value, node.integers_known([count]), results=2, axis=axis
    )
    both = [node.cast(node.ssa(places), element), node.ssa(largest)]
    if has_axis:
        return [both[1] if fields.flag("out_max_val") else both[0]]
    wide = [node.reshape(each, (shape[0], 1, count)) for each in both]
    return [node.add(nn.ConcatOp(wide, 1)) if fields.flag("out_max_val") else wide[0]]


SHAPES: dict[str, Importer] = {
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Split": _split,
    "Silence": _silence,
    "Slice": _slice,
    "Concat": _concat,
    "Crop": _crop,
    "Tile": _tile,
    "Reduction": _reduction,
    "ArgMax": _arg_max,
}
"""The importers of layers that move or merge elements."""
