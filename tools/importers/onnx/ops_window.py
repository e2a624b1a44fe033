"""ONNX operators that merge elements: pooling, and reductions of whole axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ..building import NodeBuilder, is_float
from .node import Importer, Node, Results
from .window import Window, explicit_pads, window_attributes


def _reach(window: Window, axis: int) -> int:
    return nn.window_reach(window.size[axis], window.dilation[axis])


def _max_pool(node: Node) -> Results:
    window = window_attributes(node, node.integers("kernel_shape"))
    high = _overhanging(node, window) if node.flag("ceil_mode") else list(window.high)
    if node.opset < 8 or not node.wants(1):
        return node.add(
            nn.PoolOp(
                node[0],
                "max",
                window.size,
                stride=window.stride,
                dilation=window.dilation,
                pad_low=window.low,
                pad_high=high,
            )
        )
    order = node.integer("storage_order", 0)
    if order not in (0, 1):
        raise node.bad(f"storage_order {order}; need 0 or 1")
    value, index = node.add_several(
        nn.SummarizeWindowsOp(
            node[0],
            "argmax_number",
            window.size,
            stride=window.stride,
            dilation=window.dilation,
            pad_low=window.low,
            pad_high=high,
        )
    )
    if order == 1:
        index = _column_major(node, index, node.shape(0)[2:])
    return [value, node.cast(index, i64)]


def _column_major(node: Node, index: SSAValue, image: Sequence[int]) -> SSAValue:
    """Row-major positions in planes of an image, counted with the first axis moving fastest."""

    def by(kind: type[nn.MulOp | nn.DivOp | nn.ModOp], value: SSAValue, n: int) -> SSAValue:
        return node.add(kind(value, node.constant(n, value)))

    rest, size = index, prod(image)
    plane = by(nn.MulOp, by(nn.DivOp, index, size), size)
    for axis in reversed(range(len(image))):
        along = by(nn.ModOp, rest, image[axis])
        plane = node.add(nn.AddOp(plane, by(nn.MulOp, along, prod(image[:axis]))))
        rest = by(nn.DivOp, rest, image[axis])
    return plane


def _average_pool(node: Node) -> Results:
    window = window_attributes(node, node.integers("kernel_shape"))
    return node.add(
        nn.AveragePoolOp(
            node[0],
            window.size,
            stride=window.stride,
            dilation=window.dilation,
            pad_low=window.low,
            pad_high=window.high,
            count_include_pad=node.flag("count_include_pad"),
            ceil_mode=node.flag("ceil_mode"),
        )
    )


def _lp_pool(node: Node) -> Results:
    """The norm of the elements under each position of a window."""
    order = node.integer("p", 2)
    if order < 1:
        raise node.bad(f"p {order}; need 1 or more")
    window = window_attributes(node, node.integers("kernel_shape"))
    total = node.add(
        nn.PoolOp(
            _power(node, node.wide(node[0]), order),
            "sum",
            window.size,
            stride=window.stride,
            dilation=window.dilation,
            pad_low=window.low,
            pad_high=_overhanging(node, window) if node.flag("ceil_mode") else window.high,
        )
    )
    return node.cast(_root(node, total, order), nn.element_of(node[0]))


def _power(node: Node, value: SSAValue, order: int) -> SSAValue:
    """The size of each element to a power."""
    if order == 2:
        return node.add(nn.SquareOp(value))
    size = node.add(nn.AbsOp(value))
    return size if order == 1 else node.add(nn.PowerOp(size, float(order)))


def _root(node: Node, total: SSAValue, order: int) -> SSAValue:
    if order == 2:
        return node.add(nn.SqrtOp(total))
    return total if order == 1 else node.add(nn.PowerOp(total, 1.0 / order))


def _overhanging(node: Node, window: Window) -> list[int]:
    """The padding after an image that contains its last, overhanging window."""
    high = list(window.high)
    for i, n in enumerate(node.shape(0)[2:]):
        low, reach, stride = window.low[i], _reach(window, i), window.stride[i]
        positions = nn.pooled_size(n, low, high[i], reach, stride, ceil=True)
        high[i] = max(0, (positions - 1) * stride + reach - n - low)
    return high


def _col2im(node: Node) -> Results:
    """Add blocks of columns to an image: a transposed convolution with weights 0 and 1."""
    shape, image = node.shape(0), node.array_integers(1, "image_shape")
    block, rank = node.array_integers(2, "block_shape"), len(image)
    stride = node.integers("strides", [1] * rank)
    dilation = node.integers("dilations", [1] * rank)
    low, high = explicit_pads(node, rank)
    lists = (block, stride, dilation)
    if not rank or any(len(each) != rank or min(each) < 1 for each in lists):
        raise node.bad(f"blocks {block}, strides {stride}, dilations {dilation} of image {image}")
    count = prod(block)
    places = [
        nn.pooled_size(n, lo, hi, nn.window_reach(k, d), s, ceil=False)
        for n, lo, hi, k, d, s in zip(image, low, high, block, dilation, stride, strict=True)
    ]
    if len(shape) != 3 or shape[1] % count or shape[2] != prod(places) or min(places) < 1:
        raise node.bad(
            f"columns of shape {list(shape)}; need [batch, channels * {count}, {prod(places)}]"
        )
    n, channels = shape[0], shape[1] // count
    columns = node.reshape(node[0], (n * channels, count, *places))
    node.check_table(count, count)
    weight = np.eye(count).reshape(count, 1, *block).astype(numpy_dtype(nn.element_of(columns)))
    found = nn.ConvInputGradOp(
        columns,
        node.emitted(weight),
        image,
        stride=stride,
        dilation=dilation,
        pad_low=low,
    )
    return node.reshape(node.add(found), (n, channels, *image))


def _spatial_axes(node: Node) -> list[int]:
    rank = len(node.shape(0))
    if rank < 3:
        raise node.bad(f"image of shape {list(node.shape(0))}; need batch, channels and more")
    return list(range(2, rank))


def mean(node: NodeBuilder, value: SSAValue, axes: Sequence[int], *, keep_dims: bool) -> SSAValue:
    """The mean of a value along axes. Float sums are in at least f32."""
    count = prod(nn.shape_of(value)[a] for a in axes)
    total = node.add(nn.ReduceOp(node.wide(value), "sum", axes, keep_dims=keep_dims))
    if not is_float(value):
        return node.add(nn.DivOp(total, node.constant(count, total)))
    average = node.add(nn.ScaleOp(total, 1.0 / count if count else float("inf")))
    return node.cast(average, nn.element_of(value))


def _global_average_pool(node: Node) -> Results:
    return mean(node, node[0], _spatial_axes(node), keep_dims=True)


def _global_lp_pool(node: Node) -> Results:
    """The norm of each channel's image."""
    order = node.integer("p", 2)
    if order < 1:
        raise node.bad(f"p {order}; need 1 or more")
    powers = _power(node, node.wide(node[0]), order)
    total = node.add(nn.ReduceOp(powers, "sum", _spatial_axes(node), keep_dims=True))
    return node.cast(_root(node, total, order), nn.element_of(node[0]))


def _global_max_pool(node: Node) -> Results:
    return node.add(nn.ReduceOp(node[0], "max", _spatial_axes(node), keep_dims=True))


def _reduction_axes(node: Node, since: int) -> list[int]:
    """The axes to reduce, counted from the front. If none are given: all axes, or none."""
    rank = len(node.shape(0))
    axes = node.parameter("axes", 1, since)
    if axes is None or (node.opset >= since and not axes):
        return [] if node.flag("noop_with_empty_axes") else list(range(rank))
    return sorted({node.axis(a, rank) for a in axes})


Transform = Callable[[Node, SSAValue], SSAValue]


def _same(node: Node, value: SSAValue) -> SSAValue:
    return value


def _reduction(
    combiner: str, before: Transform = _same, after: Transform = _same, since: int = 18
) -> Importer:
    """A reduction of a function of the elements, and a function of its result."""

    def importer(node: Node) -> Results:
        axes = _reduction_axes(node, since)
        value = before(node, node[0])
        if axes:
            keep = node.flag("keepdims", True)
            value = node.add(nn.ReduceOp(value, combiner, axes, keep_dims=keep))
        return after(node, value)

    return importer


def _wide_reduction(
    combiner: str, before: Transform = _same, after: Transform = _same, since: int = 18
) -> Importer:
    """A reduction whose elements or result may exceed the range of narrow floats."""

    def widened(node: Node, value: SSAValue) -> SSAValue:
        return before(node, node.wide(value))

    def narrowed(node: Node, value: SSAValue) -> SSAValue:
        return node.cast(after(node, value), nn.element_of(node[0]))

    return _reduction(combiner, widened, narrowed, since)


def _reduce_mean(node: Node) -> Results:
    axes = _reduction_axes(node, 18)
    if not axes:
        return node.value(0)
    return mean(node, node[0], axes, keep_dims=node.flag("keepdims", True))


def _log_sum_exp(node: Node) -> Results:
    """Subtract the maximum, so that exp cannot overflow; an infinite maximum is replaced by a
    finite one.
    """
    axes = _reduction_axes(node, 18)
    value = _floats(node, node.wide(node[0]))
    largest = node.add(nn.ReduceOp(value, "max", axes, keep_dims=True))
    most = float(np.finfo(numpy_dtype(nn.element_of(value))).max)
    largest = node.add(nn.ClipOp(largest, -most, most))
    power = node.add(nn.ExpOp(node.add(nn.SubOp(value, largest))))
    total = node.add(nn.LogOp(node.add(nn.ReduceOp(power, "sum", axes, keep_dims=True))))
    result = node.cast(node.add(nn.AddOp(total, largest)), nn.element_of(node[0]))
    if node.flag("keepdims", True):
        return result
    return node.reshape(result, [n for i, n in enumerate(node.shape(0)) if i not in axes])


def _step(make: Callable[[SSAValue], nn.PureTensorOp]) -> Transform:
    return lambda node, value: node.add(make(value))


def _float_square(node: Node, value: SSAValue) -> SSAValue:
    """Integers as floats: the root fits where the squares do not."""
    return node.add(nn.SquareOp(_floats(node, value)))


def _floats(node: Node, value: SSAValue) -> SSAValue:
    return value if is_float(value) else node.cast(value, f32)


WINDOWS: dict[str, Importer] = {
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "LpPool": _lp_pool,
    "Col2Im": _col2im,
    "GlobalAveragePool": _global_average_pool,
    "GlobalMaxPool": _global_max_pool,
    "GlobalLpPool": _global_lp_pool,
    "ReduceSum": _reduction("sum", since=13),
    "ReduceMean": _reduce_mean,
    "ReduceMax": _reduction("max"),
    "ReduceMin": _reduction("min"),
    "ReduceProd": _reduction("prod"),
    "ReduceL1": _reduction("sum", before=_step(nn.AbsOp)),
    "ReduceL2": _wide_reduction("sum", before=_float_square, after=_step(nn.SqrtOp)),
    "ReduceSumSquare": _wide_reduction("sum", before=_step(nn.SquareOp)),
    "ReduceLogSum": _wide_reduction("sum", after=_step(nn.LogOp)),
    "ReduceLogSumExp": _log_sum_exp,
}
