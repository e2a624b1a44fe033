"""ONNX operators that make images larger or smaller: Resize and Upsample.

Axes are resized one after another. Along an axis, each result element is a sum of operand elements
with constant weights. Nearest neighbours are a movement: repeats, a slice, or a resample. Other
weights are a matrix, or a few taps per element where the axis is long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, prod

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ..building import dtype_of, is_float
from .node import Importer, Node, Results

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]

TERMS_PER_TAP = 48
"""The number of terms of a matrix product that cost as much as one tap: a copy, a multiply and an
add.

Assumed: the units for products do 16 multiply-adds of float32 in a cycle, and a tap costs about
three cycles per element.
"""


@dataclass(frozen=True)
class _Axis:
    """An axis that is resized.

    Attributes:
        index: of the axis.
        size, made: its elements before and after.
        scale: the ratio of the new length to the old one, for computing coordinates.
        first, last: the region of interest, as fractions of the axis.
    """

    index: int
    size: int
    made: int
    scale: float
    first: float = 0.0
    last: float = 1.0

    @property
    def length(self) -> float:
        """The new length, which may be fractional."""
        return self.scale * self.size


@dataclass(frozen=True)
class _Weights:
    """The operand elements, with factors, that each result element sums: two arrays [made, taps].

    Attributes:
        places: indices, which may lie outside the axis: the nearest element stands for them.
        factors: the factors of these elements.
    """

    places: Indices
    factors: Numbers

    def matrix(self, size: int) -> Numbers:
        """The weights as a matrix [made, size]."""
        made = np.zeros((len(self.places), size))
        rows = np.arange(len(self.places))[:, None]
        np.add.at(made, (rows, np.clip(self.places, 0, size - 1)), self.factors)
        return made


# Coordinates


def _half_pixel(axis: _Axis, i: Numbers) -> Numbers:
    return (i + 0.5) / axis.scale - 0.5


def _pytorch_half_pixel(axis: _Axis, i: Numbers) -> Numbers:
    return np.zeros_like(i) if axis.made <= 1 else _half_pixel(axis, i)


def _half_pixel_symmetric(axis: _Axis, i: Numbers) -> Numbers:
    """The centres of both images coincide, although the new size was rounded down."""
    return axis.size / 2 * (1 - axis.made / axis.length) + _half_pixel(axis, i)


def _align_corners(axis: _Axis, i: Numbers) -> Numbers:
    if axis.length == 1:
        return np.zeros_like(i)
    return i * (axis.size - 1) / (axis.length - 1)


def _asymmetric(axis: _Axis, i: Numbers) -> Numbers:
    return i / axis.scale


def _crop_and_resize(axis: _Axis, i: Numbers) -> Numbers:
    reach = (axis.last - axis.first) * (axis.size - 1)
    moved = np.full_like(i, reach / 2) if axis.length == 1 else i * reach / (axis.length - 1)
    return moved + axis.first * (axis.size - 1)


CROP = "tf_crop_and_resize"
COORDINATES: dict[str, Callable[[_Axis, Numbers], Numbers]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    CROP: _crop_and_resize,
}
"""The coordinate in the operand of each result element, by coordinate_transformation_mode."""


# Weights


NEAREST: dict[str, Callable[[Numbers], Numbers]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""The nearest index, by nearest_mode."""

OPEN = "open"
"""The nearest_mode of versions that do not define it. onnxruntime rounds down when enlarging and up
when shrinking.
"""


def _hat(distance: Numbers, _: float) -> Numbers:
    return np.maximum(1 - np.abs(distance), 0)


def _cubic(distance: Numbers, a: float) -> Numbers:
    """Keys' kernel, which extends over two elements on each side."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


CURVES: dict[str, tuple[Callable[[Numbers, float], Numbers], int]] = {
    "linear": (_hat, 1),
    "cubic": (_cubic, 2),
}
"""By mode, the weight of an element at a distance, and the distance from which on it is 0."""


def _curve_weights(node: Node, axis: _Axis, at: Numbers) -> _Weights:
    """The weights of a curve around each coordinate. With antialiasing, shrinking widens the
    curve."""
    curve, reach = CURVES[node.text("mode", "nearest")]
    antialias = node.flag("antialias")
    shrink = min(axis.scale, 1.0) if antialias else 1.0
    begin = floor(-reach / shrink) + 1
    node.check_table(axis.made, 2 - 2 * begin)
    places = np.ceil(at).astype(np.int64)[:, None] - 1 + np.arange(begin, 2 - begin)
    factors = curve((places - at[:, None]) * shrink, node.number("cubic_coeff_a", -0.75))
    if antialias:
        factors /= factors.sum(1, keepdims=True)
    if node.flag("exclude_outside"):
        factors = np.where((places < 0) | (places >= axis.size), 0, factors)
        total = factors.sum(1, keepdims=True)
        factors = factors / np.where(total == 0, 1, total)
    return _Weights(places, factors)


# Building


def _resized_nearest(
    node: Node, value: SSAValue, axes: list[_Axis], places: list[Indices]
) -> SSAValue:
    """The elements at given places along some axes, with as few movements as possible."""
    repeats = [_repeats(axis, each) for axis, each in zip(axes, places, strict=True)]
    if all(repeats):
        return _repeated(node, value, {a.index: r for a, r in zip(axes, repeats, strict=True)})
    shape = nn.shape_of(value)
    lines = [_line(axis, each) for axis, each in zip(axes, places, strict=True)]
    found = {a.index: line for a, line in zip(axes, lines, strict=True) if line is not None}
    made = {a.index: a.made for a in axes if a.index in found}
    if found:
        each = [found.get(i, (0, 1, 1)) for i in range(len(shape))]
        sizes = [made.get(i, n) for i, n in enumerate(shape)]
        starts, steps, divisors = ([line[k] for line in each] for k in range(3))
        value = node.add(nn.ResampleOp(value, starts, steps, divisors, sizes))
    for axis, at in zip(axes, places, strict=True):
        if axis.index not in found:
            index = node.known(np.clip(at, 0, axis.size - 1))
            value = node.add(nn.GatherOp(value, node.graph.emitted(index), axis.index))
    return value


def _repeats(axis: _Axis, places: Indices) -> int:
    """The number of times each element is repeated, if equal for all and in order; else 0."""
    times = axis.made // axis.size
    if times * axis.size != axis.made or not times:
        return 0
    inside = np.clip(places, 0, axis.size - 1)
    return times if np.array_equal(inside, np.arange(axis.made) // times) else 0


def _repeated(node: Node, value: SSAValue, times: dict[int, int]) -> SSAValue:
    """Repeat elements along axes: insert an axis after each, and expand it."""
    old, wide, new = list[int](), list[int](), list[int]()
    for i, n in enumerate(nn.shape_of(value)):
        count = times.get(i, 1)
        old += [n, 1] if count > 1 else [n]
        wide += [n, count] if count > 1 else [n]
        new.append(n * count)
    if old == wide:
        return value
    return node.reshape(node.add(nn.ExpandOp(node.reshape(value, old), wide)), new)


def _line(axis: _Axis, places: Indices) -> tuple[int, int, int] | None:
    """Start, step and divisor of a resample with these places; None if there is no such
    resample."""
    slopes = {
        Fraction(axis.size, axis.made),
        Fraction(axis.size - 1, max(axis.made - 1, 1)),
        Fraction(1 / axis.scale).limit_denominator(1024),
        Fraction((axis.last - axis.first) * (axis.size - 1)).limit_denominator(1024)
        / max(axis.made - 1, 1),
    }
    i, inside = np.arange(axis.made), np.clip(places, 0, axis.size - 1)
    for slope in sorted(slopes, key=lambda each: each.denominator):
        for over in (slope.denominator, 2 * slope.denominator):
            step = slope.numerator * over // slope.denominator
            least = inside * over - step * i
            most = least + over - 1
            # Places before the first element stand for it, and places after the last one for that.
            least, most = least[inside > 0], most[inside < axis.size - 1]
            start = int(least.max(initial=most.min(initial=over - 1)))
            if start <= int(most.min(initial=start)):
                return start, step, over
    return None


def _resized_by_weights(node: Node, value: SSAValue, axis: _Axis, weights: _Weights) -> SSAValue:
    """Sums along one axis: a product with a matrix, or taps that are added."""
    most = weights.factors.shape[1]
    if axis.made != axis.size and axis.size > TERMS_PER_TAP * most:
        return _taps(node, value, axis, weights)
    node.check_table(axis.made, axis.size)
    matrix = weights.matrix(axis.size)
    if matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(axis.size)):
        return value
    taps = max(int(np.count_nonzero(matrix, axis=1).max(initial=0)), 1)
    if axis.size <= TERMS_PER_TAP * taps:
        return _product(node, value, axis, matrix)
    return _taps(node, value, axis, weights)


def _product(node: Node, value: SSAValue, axis: _Axis, matrix: Numbers) -> SSAValue:
    shape = nn.shape_of(value)
    outer, inner = prod(shape[: axis.index]), prod(shape[axis.index + 1 :])
    factor = node.emitted(matrix, value)
    if inner == 1:
        flat = node.reshape(value, (outer, axis.size))
        found = node.add(nn.MatMulOp(flat, factor, transpose_rhs=True))
    else:
        found = node.add(nn.MatMulOp(factor, node.reshape(value, (outer, axis.size, inner))))
    made = (*shape[: axis.index], axis.made, *shape[axis.index + 1 :])
    return node.reshape(found, made)


def _taps(node: Node, value: SSAValue, axis: _Axis, weights: _Weights) -> SSAValue:
    along = [-1 if i == axis.index else 1 for i in range(len(nn.shape_of(value)))]
    total: SSAValue | None = None
    for places, factors in zip(weights.places.T, weights.factors.T, strict=True):
        if not factors.any():
            continue
        read = _resized_nearest(node, value, [axis], [places])
        term = node.add(nn.MulOp(read, node.emitted(factors.reshape(along), value)))
        total = term if total is None else node.add(nn.AddOp(total, term))
    assert total is not None
    return total


# Operators


def _resize(node: Node) -> Results:
    if node.opset < 11:
        return _resized_from_first(node, _numbers(node, 1, "scales"))
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    nearest = node.text("nearest_mode", "round_prefer_floor")
    return _resized(node, _axes_of_resize(node), coordinates, nearest)


def _upsample(node: Node) -> Results:
    if node.opset >= 9:
        return _resized_from_first(node, _numbers(node, 1, "scales"))
    attribute = node.attributes.get("scales")
    return _resized_from_first(node, [] if attribute is None else [*map(float, attribute.floats)])


def _resized_from_first(node: Node, scales: list[float]) -> Results:
    """Resize of the opsets that count coordinates from the first element."""
    axes = _by_scales(node, scales, list(range(len(node.shape(0)))))
    return _resized(node, axes, "asymmetric", OPEN)


def _resized(node: Node, axes: list[_Axis], coordinates: str, nearest: str) -> Results:
    mode = node.text("mode", "nearest")
    for what, given, known in (
        ("mode", mode, ["nearest", "linear", "cubic"]),
        ("coordinate_transformation_mode", coordinates, COORDINATES),
        ("nearest_mode", nearest, [*NEAREST, *([OPEN] if node.opset < 11 else [])]),
    ):
        if given not in known:
            raise node.bad(f"{what} {given!r}; need one of {', '.join(known)}")
    for axis in axes:
        if axis.size == 0 and axis.made:
            raise node.bad(f"axis {axis.index} without elements becomes {axis.made} elements")
    value = node[0]
    shape = list(nn.shape_of(value))
    for axis in axes:
        shape[axis.index] = axis.made
    if 0 in shape:
        return node.filled(np.zeros((), dtype_of(value)), shape)
    axes = [a for a in axes if a.made != a.size or a.scale != 1 or (a.first, a.last) != (0, 1)]
    at = [COORDINATES[coordinates](a, node.counted(a.made, np.float64)) for a in axes]
    if mode == "nearest":
        if node.flag("antialias"):
            raise node.bad("antialias of nearest elements; need mode linear or cubic")
        places = [_nearest(nearest, axis, each) for axis, each in zip(axes, at, strict=True)]
        changed = [
            (axis, each)
            for axis, each in zip(axes, places, strict=True)
            if axis.made != axis.size or _repeats(axis, each) != 1
        ]
        if changed:
            value = _resized_nearest(node, value, [a for a, _ in changed], [p for _, p in changed])
    else:
        value = _interpolated(node, value, axes, at)
    if coordinates == CROP:
        value = _outside_replaced(node, value, axes, at)
    return value


def _nearest(mode: str, axis: _Axis, at: Numbers) -> Indices:
    """The index that is nearest to each coordinate."""
    mode = ("floor" if axis.scale >= 1 else "ceil") if mode == OPEN else mode
    return NEAREST[mode](at).astype(np.int64)


def _interpolated(node: Node, value: SSAValue, axes: list[_Axis], at: list[Numbers]) -> SSAValue:
    """The weighted sums along all axes. The axes that shrink most come first, to save work."""
    element = nn.element_of(value)
    whole = not is_float(value)
    wide = node.cast(value, f32) if whole else node.wide(value)
    for axis, each in sorted(zip(axes, at, strict=True), key=lambda pair: pair[0].scale):
        wide = _resized_by_weights(node, wide, axis, _curve_weights(node, axis, each))
    if whole:
        limits = np.iinfo(numpy_dtype(element))
        inside = nn.ClipOp(node.add(nn.RoundOp(wide)), float(limits.min), float(limits.max))
        wide = node.add(inside)
    return node.cast(wide, element)


def _outside_replaced(
    node: Node, value: SSAValue, axes: list[_Axis], at: list[Numbers]
) -> SSAValue:
    """The result with the extrapolation value where a coordinate is outside the operand."""
    rank = len(nn.shape_of(value))
    mask = np.zeros([1] * rank, np.bool_)
    for axis, each in zip(axes, at, strict=True):
        outside = (each < 0) | (each > axis.size - 1)
        mask = mask | outside.reshape([-1 if i == axis.index else 1 for i in range(rank)])
    if not mask.any():
        return value
    outside = node.constant(node.number("extrapolation_value", 0.0), value)
    return node.add(nn.SelectOp(node.emitted(mask), outside, value))


def _axes_of_resize(node: Node) -> list[_Axis]:
    """The resized axes, from the operand scales or sizes."""
    shape = node.shape(0)
    rank = len(shape)
    given = node.integers("axes", range(rank))
    axes = [node.axis(a, rank) for a in given]
    if len(set(axes)) != len(axes):
        raise node.bad(f"axes {given} repeat")
    region = None
    if node.has(1) and node.text("coordinate_transformation_mode", "half_pixel") == CROP:
        region = _numbers(node, 1, "roi")
        if len(region) != 2 * len(axes):
            raise node.bad(f"roi of {len(region)} numbers; need {2 * len(axes)}, two per axis")
    scales = _numbers(node, 2, "scales") if node.has(2) else []
    if scales:
        return _by_scales(node, scales, axes, region)
    sizes = node.array_integers(3, "sizes") if node.has(3) else []
    if not sizes:
        raise node.bad("neither scales nor sizes; need one of them")
    return _by_sizes(node, sizes, axes, region)


def _numbers(node: Node, index: int, what: str) -> list[float]:
    return [float(n) for n in node.array(index, what).reshape(-1)]


def _by_scales(
    node: Node, scales: list[float], axes: list[int], region: list[float] | None = None
) -> list[_Axis]:
    if len(scales) != len(axes) or any(not 0 < s < np.inf for s in scales):
        raise node.bad(f"scales {scales}; need {len(axes)} positive numbers, one per axis")
    shape = node.shape(0)
    made = [floor(shape[a] * s) for a, s in zip(axes, scales, strict=True)]
    return _axes(shape, axes, made, scales, region)


def _axes(
    shape: tuple[int, ...],
    axes: list[int],
    made: list[int],
    scales: list[float],
    region: list[float] | None,
) -> list[_Axis]:
    first = region[: len(axes)] if region else [0.0] * len(axes)
    last = region[len(axes) :] if region else [1.0] * len(axes)
    lists = zip(axes, made, scales, first, last, strict=True)
    return [_Axis(a, shape[a], size, s, lo, hi) for a, size, s, lo, hi in lists]


def _by_sizes(
    node: Node, sizes: list[int], axes: list[int], region: list[float] | None
) -> list[_Axis]:
    shape = node.shape(0)
    if len(sizes) != len(axes) or any(n < 0 for n in sizes):
        raise node.bad(f"sizes {sizes}; need {len(axes)}, one per axis")
    scales = [n / max(shape[a], 1) for a, n in zip(axes, sizes, strict=True)]
    policies = {"stretch": None, "not_larger": min, "not_smaller": max}
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy not in policies:
        raise node.bad(f"keep_aspect_ratio_policy {policy!r}; need one of {', '.join(policies)}")
    choose = policies[policy]
    if choose is not None and scales:
        scales = [choose(scales)] * len(axes)
        sizes = [floor(shape[a] * s + 0.5) for a, s in zip(axes, scales, strict=True)]
    return _axes(shape, axes, sizes, scales, region)


RESIZES: dict[str, Importer] = {"Resize": _resize, "Upsample": _upsample}
