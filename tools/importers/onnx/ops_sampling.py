"""ONNX operators that read images at computed places: GridSample, RoiAlign and DeformConv.

An image [n, c, ...] becomes a table with a row of channels for each of its elements. Each place
reads a few rows, its taps: the nearest one, or those around it, whose weights follow from the
distances. Taps are a dimension of the indices, so there is one lookup, and one product that merges
the rows of each place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import dtype_of
from .node import Importer, Node, Results
from .window import explicit_pads


@dataclass(frozen=True)
class _Taps:
    """The rows that each place reads along one axis, [..., taps].

    Attributes:
        index: whole numbers, as floats.
        factor: the weights; None if there is one tap of weight 1.
    """

    index: SSAValue
    factor: SSAValue | None


def _rows(node: Node, image: SSAValue) -> SSAValue:
    """A table [n * elements of an image, c]."""
    shape = nn.shape_of(image)
    rank = len(shape)
    last = node.add(nn.TransposeOp(image, [0, *range(2, rank), 1]))
    return node.reshape(last, (shape[0] * prod(shape[2:]), shape[1]))


# Weights by distance


def _linear(node: Node, distance: SSAValue) -> SSAValue:
    near = node.add(nn.ShiftOp(node.add(nn.ScaleOp(distance, -1.0)), 1.0))
    return node.add(nn.ClipOp(near, 0.0, np.inf))


def _polynomial(node: Node, x: SSAValue, *factors: float) -> SSAValue:
    """A polynomial, by Horner's rule.

    Args:
        factors: from the highest power on.
    """
    value = node.add(nn.ScaleOp(x, factors[0]))
    for factor in factors[1:-1]:
        value = node.add(nn.ShiftOp(value, factor)) if factor else value
        value = node.add(nn.MulOp(value, x))
    return node.add(nn.ShiftOp(value, factors[-1])) if factors[-1] else value


def _cubic(node: Node, distance: SSAValue) -> SSAValue:
    """Keys' kernel with a = -0.75, which extends over two elements on each side."""
    a = -0.75
    near = _polynomial(node, distance, a + 2, -(a + 3), 0.0, 1.0)
    far = _polynomial(node, distance, a, -5 * a, 8 * a, -4 * a)
    is_near = node.add(nn.LessEqualOp(distance, node.constant(1, distance)))
    return node.add(nn.SelectOp(is_near, near, far))


CURVES: dict[str, tuple[Callable[[Node, SSAValue], SSAValue], range]] = {
    "linear": (_linear, range(2)),
    "cubic": (_cubic, range(-1, 3)),
}
"""By mode, the weight at a distance, and the taps, counted from the element before the place."""


def _taps(node: Node, at: SSAValue, mode: str) -> _Taps:
    """The taps of places along an axis.

    Args:
        at: coordinates of any shape.
    """
    column = node.reshape(at, (*nn.shape_of(at), 1))
    if mode == "nearest":
        return _Taps(node.add(nn.RoundOp(column)), None)
    curve, offsets = CURVES[mode]
    first = node.add(nn.FloorOp(column))
    index = node.add(nn.AddOp(first, node.emitted(np.array(offsets), first)))
    distance = node.add(nn.AbsOp(node.add(nn.SubOp(column, index))))
    return _Taps(index, curve(node, distance))


# Outside of the image


def _within(node: Node, value: SSAValue, low: float, high: float) -> SSAValue:
    above = node.add(nn.GreaterEqualOp(value, node.constant(low, value)))
    below = node.add(nn.LessEqualOp(value, node.constant(high, value)))
    return node.add(nn.LogicalAndOp(above, below))


def _reflected(node: Node, value: SSAValue, low: float, high: float) -> SSAValue:
    """Coordinates outside of an interval, reflected at its ends until they are inside."""
    reach = high - low
    if reach <= 0:
        return node.add(nn.ClipOp(value, low, low))
    distance = node.add(nn.AbsOp(node.add(nn.ShiftOp(value, -low))))
    turned = node.add(nn.FmodOp(distance, node.constant(2 * reach, value)))
    back = node.add(nn.ShiftOp(node.add(nn.ScaleOp(turned, -1.0)), 2 * reach))
    found = node.add(nn.ShiftOp(node.add(nn.MinOp(turned, back)), low))
    return node.add(nn.SelectOp(_within(node, value, low, high), value, found))


def _without_outside(node: Node, taps: _Taps, size: int) -> _Taps:
    """Taps with weight 0 outside the axis."""
    inside = _within(node, taps.index, 0, size - 1)
    if taps.factor is None:
        factor = node.cast(inside, nn.element_of(taps.index))
    else:
        factor = node.add(nn.SelectOp(inside, taps.factor, node.constant(0, taps.factor)))
    return _Taps(_clamped(node, taps.index, size), factor)


def _clamped(node: Node, value: SSAValue, size: int) -> SSAValue:
    return node.add(nn.ClipOp(value, 0.0, float(size - 1)))


# Reading


def _outer(node: Node, values: Sequence[SSAValue], join: Callable[..., nn.PureTensorOp]):
    """Values [..., taps] of each axis, combined to [..., all combinations of taps]."""
    total = values[0]
    for value in values[1:]:
        shape, own = nn.shape_of(total), nn.shape_of(value)
        total = node.reshape(total, (*shape, 1))
        total = node.add(join(total, node.reshape(value, (*own[:-1], 1, own[-1]))))
        whole = nn.shape_of(total)
        total = node.reshape(total, (*whole[:-2], whole[-2] * whole[-1]))
    return total


def _indices(
    node: Node, taps: Sequence[_Taps], sizes: Sequence[int], begin: SSAValue | None
) -> SSAValue:
    """The rows of the table that taps read, [..., taps].

    Args:
        begin: the first row of each image.
    """
    weights = [*accumulate(reversed(sizes[1:]), mul, initial=1)][::-1]
    whole = [node.cast(each.index, i32) for each in taps]
    scaled = [
        value if w == 1 else node.add(nn.MulOp(value, node.constant(w, value)))
        for value, w in zip(whole, weights, strict=True)
    ]
    index = _outer(node, scaled, nn.AddOp)
    return index if begin is None else node.add(nn.AddOp(index, begin))


def _merged(
    node: Node, table: SSAValue, index: SSAValue, factors: Sequence[SSAValue | None]
) -> SSAValue:
    """The rows of each place, merged to [places, c].

    Args:
        index: [..., taps].
    """
    *places, taps = nn.shape_of(index)
    count, channels = prod(places), nn.shape_of(table)[1]
    rows = node.add(nn.GatherOp(table, node.reshape(index, (count, taps)), 0))
    given = [factor for factor in factors if factor is not None]
    if not given:
        return node.reshape(rows, (count, channels))
    factor = node.reshape(_outer(node, given, nn.MulOp), (count, 1, taps))
    rows = node.cast(rows, nn.element_of(factor))
    return node.reshape(node.add(nn.MatMulOp(factor, rows)), (count, channels))


def _begins(node: Node, shape: tuple[int, ...], rank: int) -> SSAValue | None:
    """The first row of each image in a table, [n, 1, ...] of the given rank; None if there is one
    image.
    """
    if shape[0] == 1:
        return None
    first = node.counted(shape[0], np.int32) * prod(shape[2:])
    return node.emitted(first.reshape(-1, *[1] * (rank - 1)))


def _check_image(node: Node, rank: int) -> tuple[int, ...]:
    """The shape of operand 0, an image with this many spatial axes, or any number if rank is 0."""
    shape = node.shape(0)
    if len(shape) < 3 or (rank and len(shape) != rank + 2):
        raise node.bad(f"image of shape {list(shape)}; need batch, channels, and {rank or 'more'}")
    if prod(shape) >= 2**31:
        raise node.unsupported(f"an image of {prod(shape)} elements", "less than 2^31 are")
    return shape


def _grid_sample(node: Node) -> Results:
    shape, grid = _check_image(node, 0), node.shape(1)
    sizes = shape[2:]
    if len(grid) != len(shape) or grid[0] != shape[0] or grid[-1] != len(sizes):
        raise node.bad(
            f"grid of shape {list(grid)} for an image of {list(shape)}; need [{shape[0]}, "
            f"positions..., {len(sizes)}]"
        )
    names = {"bilinear": "linear", "bicubic": "cubic", **{n: n for n in ("nearest", *CURVES)}}
    mode, padding = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    paddings = ("zeros", "border", "reflection")
    for what, value, known in (("mode", mode, names), ("padding_mode", padding, paddings)):
        if value not in known:
            raise node.bad(f"{what} {value!r}; need one of {', '.join(known)}")
    result = (*shape[:2], *grid[1:-1])
    if 0 in result:
        return node.filled(np.zeros((), dtype_of(node.value(0))), result)
    if 0 in sizes:
        raise node.bad(f"an image of shape {list(shape)} has no element to read")
    corners, places = node.flag("align_corners"), prod(grid[1:-1])
    points = node.reshape(node.wide(node[1]), (shape[0], places, len(sizes)))
    taps: list[_Taps] = []
    for i, size in enumerate(sizes):
        # The coordinates of a point begin with the coordinate along the last axis.
        own = [0, 0, len(sizes) - 1 - i]
        at = node.add(nn.SliceOp(points, own, [1, 1, 1], [shape[0], places, 1]))
        at = node.reshape(at, (shape[0], places))
        taps.append(_grid_taps(node, at, size, names[mode], padding, corners))
    index = _indices(node, taps, sizes, _begins(node, shape, 3))
    found = _merged(node, _rows(node, node[0]), index, [each.factor for each in taps])
    found = node.cast(found, nn.element_of(node[0]))
    found = node.reshape(found, (shape[0], places, shape[1]))
    return node.reshape(node.add(nn.TransposeOp(found, [0, 2, 1])), result)


def _grid_taps(
    node: Node, at: SSAValue, size: int, mode: str, padding: str, corners: bool
) -> _Taps:
    """The taps of coordinates between -1 and 1, which are the ends of an axis.

    Args:
        corners: whether the ends are the centres of the first and the last element, not their outer
            borders.
    """
    shifted = node.add(nn.ShiftOp(at, 1.0))
    if corners:
        low, high = 0.0, size - 1.0
        at = node.add(nn.ScaleOp(shifted, (size - 1) / 2))
    else:
        low, high = -0.5, size - 0.5
        at = node.add(nn.ShiftOp(node.add(nn.ScaleOp(shifted, size / 2)), -0.5))
    if mode == "nearest":
        at = node.add(nn.RoundOp(at))
    if padding == "border":
        inside = _within(node, at, low, high)
        at = node.add(nn.SelectOp(inside, at, _clamped(node, at, size)))
    elif padding == "reflection":
        at = _reflected(node, at, low, high)
    taps = _taps(node, at, mode)
    if padding == "zeros":
        return _without_outside(node, taps, size)
    index = taps.index
    if padding == "reflection":
        index = node.add(nn.FloorOp(_reflected(node, index, low, high)))
    return _Taps(_clamped(node, index, size), taps.factor)


def _affine_grid(node: Node) -> Results:
    """The places for GridSample under an affine map: a product with the places of a whole image."""
    theta, size = node.shape(0), node.array_integers(1, "size")
    rank = len(size) - 2
    if rank not in (2, 3) or theta != (size[0], rank, rank + 1):
        raise node.bad(
            f"theta of shape {list(theta)} and size {size}; need [n, 2, 3] and four sizes, or "
            "[n, 3, 4] and five"
        )
    node.check_table(*size[2:], rank + 1)
    lines = [_grid_line(n, node.flag("align_corners")) for n in size[2:]]
    axes = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*axes[::-1], np.ones_like(axes[0])], -1).reshape(-1, rank + 1)
    value = node.wide(node[0])
    places = node.emitted(points, value)
    found = node.add(nn.MatMulOp(places, value, transpose_rhs=True))
    return node.reshape(node.cast(found, nn.element_of(node[0])), (size[0], *size[2:], rank))


def _grid_line(size: int, corners: bool) -> np.ndarray:
    """The coordinates of the elements of an axis, from -1 to 1."""
    if corners:
        return np.linspace(-1, 1, size) if size > 1 else np.full(size, -1.0)
    return (2 * np.arange(size) + 1) / max(size, 1) - 1


def _roi_align(node: Node) -> Results:
    """The mean or maximum of a few interpolated samples in each part of a region."""
    shape, regions = _check_image(node, 2), node.shape(1)
    if len(regions) != 2 or regions[1] != 4 or node.shape(2) != regions[:1]:
        raise node.bad(
            f"rois of shape {list(regions)}, batch_indices of {list(node.shape(2))}; need [n, 4] "
            "and [n]"
        )
    ratio = node.integer("sampling_ratio", 0)
    if ratio <= 0:
        raise node.unsupported(
            f"sampling_ratio {ratio}, with which sizes depend on values", "need 1 or more"
        )
    mode = node.text("mode", "avg")
    coordinates = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    coordinates = node.text("coordinate_transformation_mode", coordinates)
    for what, value, known in (
        ("mode", mode, ("avg", "max")),
        ("coordinate_transformation_mode", coordinates, ("half_pixel", "output_half_pixel")),
    ):
        if value not in known:
            raise node.bad(f"{what} {value!r}; need one of {', '.join(known)}")
    half = coordinates == "half_pixel"
    parts = (node.integer("output_height", 1), node.integer("output_width", 1))
    result = (regions[0], shape[1], *parts)
    if 0 in (*result, *shape):
        return node.filled(np.zeros((), dtype_of(node.value(0))), result)
    scaled = node.add(nn.ScaleOp(node.wide(node[1]), node.number("spatial_scale", 1.0)))
    scaled = node.add(nn.ShiftOp(scaled, -0.5)) if half else scaled

    def column(i: int) -> SSAValue:
        return node.add(nn.SliceOp(scaled, [0, i], [1, 1], [regions[0], 1]))

    taps: list[_Taps] = []
    for axis, (size, count) in enumerate(zip(shape[2:], parts, strict=True)):
        first = column(1 - axis)
        length = node.add(nn.SubOp(column(3 - axis), first))
        length = length if half else node.add(nn.ClipOp(length, 1.0, np.inf))
        steps = (node.counted(count * ratio) + 0.5) / (count * ratio)
        at = node.add(nn.MulOp(length, node.emitted(steps[None], length)))
        at = node.add(nn.AddOp(at, first))
        inside = _within(node, at, -1.0, float(size))
        each = _taps(node, _clamped(node, at, size), "linear")
        inside = node.reshape(inside, (*nn.shape_of(at), 1))
        assert each.factor is not None
        factor = node.add(nn.SelectOp(inside, each.factor, node.constant(0, each.factor)))
        factor = node.add(nn.ScaleOp(factor, 1 / ratio)) if mode == "avg" else factor
        # The samples of a part are further taps.
        own = [regions[0], count, 1, ratio * 2] if axis == 0 else [regions[0], 1, count, ratio * 2]
        index = node.reshape(_clamped(node, each.index, size), own)
        taps.append(_Taps(index, node.reshape(factor, own)))
    images = node.cast(node[2], i32)
    begin = node.add(nn.MulOp(images, node.constant(prod(shape[2:]), images)))
    begin = node.reshape(begin, (regions[0], 1, 1, 1))
    index, table = _indices(node, taps, shape[2:], begin), _rows(node, node[0])
    factors = [each.factor for each in taps]
    found = (_merged if mode == "avg" else _largest)(node, table, index, factors)
    found = node.cast(found, nn.element_of(node[0]))
    found = node.reshape(found, (regions[0], *parts, shape[1]))
    return node.add(nn.TransposeOp(found, [0, 3, 1, 2]))


def _largest(
    node: Node, table: SSAValue, index: SSAValue, factors: Sequence[SSAValue | None]
) -> SSAValue:
    """The largest row of each place times its weight, [places, c]."""
    *places, taps = nn.shape_of(index)
    count = prod(places)
    rows = node.add(nn.GatherOp(table, node.reshape(index, (count, taps)), 0))
    factor = _outer(node, [f for f in factors if f is not None], nn.MulOp)
    factor = node.reshape(factor, (count, taps, 1))
    weighted = node.add(nn.MulOp(node.cast(rows, nn.element_of(factor)), factor))
    return node.add(nn.ReduceOp(weighted, "max", [1]))


def _deform_conv(node: Node) -> Results:
    """A convolution whose elements under the kernel are displaced by offsets and interpolated."""
    shape, kernel_shape = _check_image(node, 0), node.shape(1)
    n, c, *sizes = shape
    kernel, rank = list(kernel_shape[2:]), len(sizes)
    if len(kernel) != rank or node.integers("kernel_shape", kernel) != kernel:
        raise node.bad(
            f"image of shape {list(shape)}, weights of {list(kernel_shape)}; need equal ranks, and "
            "kernel_shape as of the weights"
        )
    groups, offset_groups = node.integer("group", 1), node.integer("offset_group", 1)
    stride = node.integers("strides", [1] * rank)
    dilation = node.integers("dilations", [1] * rank)
    low, high = explicit_pads(node, rank)
    if len(stride) != rank or len(dilation) != rank or min([*stride, *dilation]) < 1:
        raise node.bad(f"strides {stride}, dilations {dilation}; need {rank} of 1 or more")
    out = [
        nn.pooled_size(size, lo, hi, nn.window_reach(k, d), s, ceil=False)
        for size, lo, hi, k, d, s in zip(sizes, low, high, kernel, dilation, stride, strict=True)
    ]
    outputs, window, places = kernel_shape[0], prod(kernel), prod(out)
    if groups < 1 or outputs % groups or kernel_shape[1] * groups != c:
        raise node.bad(f"{c} channels, weights of {list(kernel_shape)} in {groups} groups")
    need = (n, offset_groups * window * rank, *out)
    if offset_groups < 1 or c % offset_groups or node.shape(2) != need:
        raise node.bad(
            f"offsets of shape {list(node.shape(2))} in {offset_groups} groups; need {list(need)}"
        )
    value = node.wide(node[0])
    table = _rows(node, node.reshape(value, (n * offset_groups, c // offset_groups, *sizes)))
    offsets = node.reshape(
        node.cast(node[2], nn.element_of(value)), (n * offset_groups, window, rank, places)
    )
    at_kernel = np.indices(kernel).reshape(rank, window, 1)
    at_place = np.indices(out).reshape(rank, 1, places)
    taps: list[_Taps] = []
    for i, size in enumerate(sizes):
        whole = [n * offset_groups, window, 1, places]
        own = node.add(nn.SliceOp(offsets, [0, 0, i, 0], [1, 1, 1, 1], whole))
        own = node.reshape(own, (n * offset_groups, window, places))
        plain = at_place[i] * stride[i] - low[i] + at_kernel[i] * dilation[i]
        at = node.add(nn.AddOp(own, node.emitted(plain, own)))
        taps.append(_without_outside(node, _taps(node, at, "linear"), size))
    begin = _begins(node, (n * offset_groups, c, *sizes), 4)
    index = _indices(node, taps, sizes, begin)
    read = _merged(node, table, index, [each.factor for each in taps])
    read = node.reshape(read, (n, offset_groups, window, places, c // offset_groups))
    if node.has(4):
        mask = node.cast(node[4], nn.element_of(read))
        mask = node.reshape(mask, (n, offset_groups, window, places, 1))
        read = node.add(nn.MulOp(read, mask))
    # [n, channels, window, places], cut into the groups of the convolution.
    read = node.add(nn.TransposeOp(read, [0, 1, 4, 2, 3]))
    read = node.reshape(read, (n, groups, c // groups * window, places))
    weight = node.reshape(
        node.cast(node[1], nn.element_of(read)), (groups, outputs // groups, c // groups * window)
    )
    found = node.reshape(node.add(nn.MatMulOp(weight, read)), (n, outputs, *out))
    if node.has(3):
        bias = node.reshape(node.cast(node[3], nn.element_of(found)), (outputs, *[1] * rank))
        found = node.add(nn.AddOp(found, bias))
    return node.cast(found, nn.element_of(node[0]))


SAMPLINGS: dict[str, Importer] = {
    "GridSample": _grid_sample,
    "AffineGrid": _affine_grid,
    "RoiAlign": _roi_align,
    "DeformConv": _deform_conv,
}
