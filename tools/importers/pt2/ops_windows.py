"""ATen operators that slide a window over an image: pooling, unfolding and folding."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Value
from .aten_node import AtenNode, Importer, Results, as_list, only


def _image(node: AtenNode, rank: int) -> tuple[SSAValue, bool]:
    """The operand with axes for samples and channels, and whether the samples were added."""
    value = node["self"] if node.has("self") else node["input"]
    shape = nn.shape_of(value)
    if len(shape) == rank + 2:
        return value, False
    if len(shape) != rank + 1:
        raise node.bad(f"image of shape {list(shape)}; need {rank} spatial axes and channels")
    return node.reshape(value, (1, *shape)), True


def _as_given(node: AtenNode, value: SSAValue, *, added: bool) -> SSAValue:
    return node.reshape(value, nn.shape_of(value)[1:]) if added else value


def _max_pool(rank: int) -> Importer:
    def importer(node: AtenNode) -> Results:
        value, added = _image(node, rank)
        kernel = node.spatial("kernel_size", rank)
        found = node.apply_all(
            "MaxPool",
            value,
            results=2 if node.wants(1) else 1,
            kernel_shape=kernel,
            strides=node.spatial("stride", rank, kernel),
            pads=node.spatial("padding", rank, 0) * 2,
            dilations=node.spatial("dilation", rank, 1),
            ceil_mode=int(node.flag("ceil_mode", False)),
        )
        values = [_as_given(node, node.ssa(each), added=added) for each in found]
        if len(values) > 1:
            values[1] = _in_plane(node, values[1], nn.shape_of(value))
        return [*values, None] if len(values) == 1 else values

    return importer


def _in_plane(node: AtenNode, index: SSAValue, image: tuple[int, ...]) -> SSAValue:
    """Positions of elements in the plane of their channel. ONNX counts them in the whole image."""
    plane = prod(image[2:])
    return node.add(nn.ModOp(index, node.constant(plane, index)))


def _average_pool(rank: int) -> Importer:
    def importer(node: AtenNode) -> Results:
        value, added = _image(node, rank)
        kernel = node.spatial("kernel_size", rank)
        found = node.apply(
            "AveragePool",
            value,
            kernel_shape=kernel,
            strides=node.spatial("stride", rank, kernel),
            pads=node.spatial("padding", rank, 0) * 2,
            ceil_mode=int(node.flag("ceil_mode", False)),
            count_include_pad=int(node.flag("count_include_pad", True)),
        )
        if node.has("divisor_override"):
            found = node.add(nn.ScaleOp(found, prod(kernel) / node.number("divisor_override")))
        return _as_given(node, found, added=added)

    return importer


def _adaptive(rank: int, operator: str, reduction: str) -> Importer:
    """Pooling into a given number of windows, of which each covers its share of the image."""

    def importer(node: AtenNode) -> Results:
        value, added = _image(node, rank)
        image = nn.shape_of(value)[2:]
        wanted = _sizes(node, image)
        if all(n == 1 for n in wanted):
            axes = node.integers_known(range(2, rank + 2))
            found = node.apply(reduction, value, axes, keepdims=1)
        elif all(n % m == 0 for n, m in zip(image, wanted, strict=True)):
            window = [n // m for n, m in zip(image, wanted, strict=True)]
            found = node.apply(operator, value, kernel_shape=window, strides=window)
        else:
            found = value
            for axis, size in enumerate(wanted, 2):
                found = _adapted(node, found, axis, size, reduction)
        done = _as_given(node, found, added=added)
        # Nothing computes the indices, which hardly any model reads.
        return [done, None] if operator == "MaxPool" else done

    return importer


def _sizes(node: AtenNode, image: tuple[int, ...]) -> list[int]:
    """The number of windows along each axis; None stands for the image's own size."""
    given: Any = node.get("output_size")
    items = as_list(given)
    items = items * len(image) if len(items) == 1 else items
    sizes = [n if each is None else each for each, n in zip(items, image, strict=False)]
    if len(sizes) != len(image) or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise node.bad(f"output_size {given}; need {len(image)} sizes of 1 or more")
    return sizes


def _adapted(node: AtenNode, value: SSAValue, axis: int, size: int, reduction: str) -> SSAValue:
    """Windows along one axis, which begin at floor(i * n / size) and may overlap.

    A window that is shorter than others repeats its last element, which counts once in a mean.
    """
    n = nn.shape_of(value)[axis]
    number = node.counted(size)
    first, end = number * n // size, -(-(number + 1) * n // size)
    length = end - first
    place = node.counted(int(length.max()))
    index = np.minimum(first[:, None] + place, end[:, None] - 1)
    windows: Value = node.apply("Gather", value, node.known(index), axis=axis)
    if reduction == "ReduceMean":
        share = np.where(place < length[:, None], 1 / length[:, None], 0.0)
        along = share.reshape(*share.shape, *[1] * (len(nn.shape_of(value)) - axis - 1))
        wide = node.wide(node.ssa(windows))
        windows = node.add(nn.MulOp(wide, node.emitted(along, wide)))
    merge = "ReduceMax" if reduction == "ReduceMax" else "ReduceSum"
    found = node.apply(merge, windows, node.integers_known([axis + 1]), keepdims=0)
    return node.cast(found, nn.element_of(value))


def _im2col(node: AtenNode) -> Results:
    """The elements under each position of a window, as columns."""
    value, added = _image(node, 2)
    kernel, dilation = node.spatial("kernel_size", 2), node.spatial("dilation", 2, 1)
    stride, padding = node.spatial("stride", 2, 1), node.spatial("padding", 2, 0)
    samples, channels = nn.shape_of(value)[:2]
    low = [0, 0, *padding]
    padded = node.add(nn.PadOp(value, low, low)) if any(padding) else value
    size = nn.shape_of(padded)[2:]
    places = [
        (n - nn.window_reach(k, d)) // s + 1
        for n, k, d, s in zip(size, kernel, dilation, stride, strict=True)
    ]
    if min(places) < 1:
        raise node.bad(f"windows of {kernel} in an image of {list(size)}")
    parts = [
        node.reshape(
            node.add(
                nn.SliceOp(
                    padded,
                    [0, 0, i * dilation[0], j * dilation[1]],
                    [1, 1, *stride],
                    [samples, channels, *places],
                )
            ),
            (samples, channels, 1, prod(places)),
        )
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]
    joined = parts[0] if len(parts) == 1 else node.add(nn.ConcatOp(parts, 2))
    columns = node.reshape(joined, (samples, channels * prod(kernel), prod(places)))
    return _as_given(node, columns, added=added)


def _col2im(node: AtenNode) -> Results:
    value = node["self"]
    added = len(nn.shape_of(value)) == 2
    value = node.reshape(value, (1, *nn.shape_of(value))) if added else value
    found = node.apply(
        "Col2Im",
        value,
        node.integers_known(node.spatial("output_size", 2)),
        node.integers_known(node.spatial("kernel_size", 2)),
        dilations=node.spatial("dilation", 2, 1),
        pads=node.spatial("padding", 2, 0) * 2,
        strides=node.spatial("stride", 2, 1),
    )
    return _as_given(node, found, added=added)


def _unfold(node: AtenNode) -> Results:
    """Windows along one axis: a further axis at the end holds the elements of each."""
    value, shape = node["self"], node.shape("self")
    axis = node.along(node.integer("dimension"), len(shape))
    size, step = node.integer("size"), node.integer("step")
    if step < 1 or not 0 < size <= shape[axis]:
        raise node.bad(f"windows of {size} every {step} along an axis of {shape[axis]}")
    count = (shape[axis] - size) // step + 1
    node.check_table(count, size)
    index = np.arange(count)[:, None] * step + np.arange(size)
    found = node.apply("Gather", value, node.known(index.astype(np.int64)), axis=axis)
    order = [i for i in range(len(shape) + 1) if i != axis + 1]
    return node.transposed(found, [*order, axis + 1])


def _only(of: Callable[[int], Importer], rank: int) -> Importer:
    """An importer of which only the first result is the operator's."""
    return lambda node: only(of(rank)(node))


WINDOWS: dict[str, Importer] = {
    **{f"max_pool{n}d": _only(_max_pool, n) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _max_pool(n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _average_pool(n) for n in (1, 2, 3)},
    **{
        f"{front}adaptive_avg_pool{n}d": _adaptive(n, "AveragePool", "ReduceMean")
        for n in (1, 2, 3)
        for front in ("", "_")
    },
    **{f"adaptive_max_pool{n}d": _adaptive(n, "MaxPool", "ReduceMax") for n in (1, 2, 3)},
    "im2col": _im2col,
    "col2im": _col2im,
    "unfold": _unfold,
}
"""The importers of windows."""
