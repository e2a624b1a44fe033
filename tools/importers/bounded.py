"""What models do with tensors whose sizes only a run knows, and with the numbers that are sizes.

Every front end builds with these functions. They take lengths where nn takes integers, and results
have the largest shape that they may have (`padding.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from ...dialects import nn
from .building import NodeBuilder
from .length_values import emitted_length, length_of, number_in
from .lengths import Length, as_length, is_equal, is_less, larger, simplest, smaller
from .padding import (
    LEAST_CAPACITY,
    fitted,
    length_along,
    lengths_along,
    mark,
    max_of_zero,
    positions,
    sized,
    sizes_of,
)


def _append(node: NodeBuilder, op: Any) -> SSAValue:
    return node.append(op).results[0]


def capacity(length: int | Length) -> int:
    """The size of an axis in the type, for the number of elements that exist."""
    return length if isinstance(length, int) else max(length.most, LEAST_CAPACITY)


def ordered_first(node: NodeBuilder, wanted: SSAValue) -> tuple[SSAValue, int | Length]:
    """The indices of the true elements of a vector, in order, as i32, and their number.

    The remaining indices are 0. Each true element goes to the place given by a running sum; the
    others go to one place after all of them.
    """
    (n,) = nn.shape_of(wanted)
    flags = node.cast(wanted, i32)
    total = node.add(nn.ReduceOp(flags, "sum", [0]))
    count = number_in(node.program, total, 0, n)
    place = node.add(nn.ScanOp(flags, "sum", 0, exclusive=True))
    behind = node.constant(n, place)
    place = node.add(nn.SelectOp(wanted, place, behind))
    index = node.add(nn.SelectOp(wanted, positions(node, wanted, 0), node.constant(0, place)))
    spread = node.add(nn.ScatterOp(index, place, "sum", 0, n + 1))
    return node.add(nn.SliceOp(spread, [0], [1], [n])), count


def shape_vector(
    node: NodeBuilder, lengths: Sequence[int | Length], element: Attribute
) -> SSAValue:
    """Lengths as a vector."""
    parts: list[SSAValue] = []
    for each in lengths:
        if isinstance(each, int):
            parts.append(node.emitted(np.array([each], np.int64)))
        else:
            held = emitted_length(node, each)
            parts.append(node.reshape(node.cast(held, element), (1,)))
    parts = [node.cast(part, element) for part in parts]
    return parts[0] if len(parts) == 1 else node.add(nn.ConcatOp(parts, 0))


def scalar_length(node: NodeBuilder, value: SSAValue, most: int | None = None) -> int | Length:
    """The length that a value holds, which has one element.

    Raises NotConstantError if nothing is known of it.

    Args:
        most: where larger numbers, and negative ones, mean the same as this one and 0; None if they
            do not.
    """
    found = length_of(node.program, value)
    if found is not None:
        return found
    if most is None:
        raise node.not_constant("a number without a bound, which a size follows from,", [value])
    held = node.reshape(node.cast(value, i32), ())
    held = _append(node, nn.MaxOp(held, node.constant(0, held)))
    held = _append(node, nn.MinOp(held, node.constant(most, held)))
    return number_in(node.program, held, 0, most)


# Elementwise operators


def aligned(node: NodeBuilder, values: Sequence[SSAValue]) -> list[SSAValue]:
    """The operands of an elementwise operator, with equal lengths and sizes where they broadcast.

    Two lengths that are not known to be equal are so in every valid run, or one of them is 1. A run
    in which they are not has an index out of range.
    """
    found = list(values)
    for back in range(1, max(len(nn.shape_of(value)) for value in found) + 1):
        at = {i: len(nn.shape_of(v)) - back for i, v in enumerate(found)}
        at = {i: axis for i, axis in at.items() if axis >= 0}
        lengths = {i: length_along(node, found[i], axis) for i, axis in at.items()}
        lengths = {i: length for i, length in lengths.items() if length != 1}
        if any(isinstance(length, Length) for length in lengths.values()):
            common = common_length(node, list(lengths.values()))
            for i in lengths:
                found[i] = spread(node, found[i], at[i], common)
            least = min(nn.shape_of(found[i])[at[i]] for i in lengths)
            for i in lengths:
                found[i] = _fitted_alike(node, found[i], at[i], least)
    return found


def common_length(node: NodeBuilder, lengths: Sequence[int | Length]) -> int | Length:
    """The length to which lengths broadcast. None of them is known to be 1."""
    common: int | Length | None = None
    for each in sorted(lengths, key=lambda length: isinstance(length, Length)):
        if common is None or is_equal(common, each):
            common = each
        elif as_length(common).least < LEAST_CAPACITY:
            common = _broadcast(node, as_length(common), as_length(each))
    assert common is not None
    return common


def _broadcast(node: NodeBuilder, one: Length, other: Length) -> int | Length:
    """The other length where one is 1, and one length elsewhere."""
    if other.least >= LEAST_CAPACITY:
        return simplest(other)
    held = emitted_length(node, one)
    is_one = _append(node, nn.EqualOp(held, node.constant(1, held)))
    found = _append(node, nn.SelectOp(is_one, emitted_length(node, other), held))
    return number_in(node.program, found, min(one.least, other.least), max(one.most, other.most))


def spread(node: NodeBuilder, value: SSAValue, axis: int, common: int | Length) -> SSAValue:
    """A value whose axis is as long as another length, or is repeated to it if it has one element.

    If it is neither, the run has a fault: an index that the axis does not have.
    """
    own = length_along(node, value, axis)
    if is_equal(own, common):
        return value
    size, wide = nn.shape_of(value)[axis], capacity(common)
    index = _append(node, nn.IotaOp(nn.tensor((wide,), i32), [1]))
    held, wanted = emitted_length(node, own), emitted_length(node, common)
    last, zero = node.constant(size - 1, index), node.constant(0, index)
    is_one = _append(node, nn.EqualOp(held, node.constant(1, held)))
    fits = _append(node, nn.LogicalOrOp(is_one, _append(node, nn.EqualOp(held, wanted))))
    index = _append(node, nn.MinOp(index, last))
    index = _append(node, nn.SelectOp(is_one, zero, index))
    index = _append(node, nn.SelectOp(fits, index, node.constant(size, index)))
    sizes = {a: n for a, n in sizes_of(node, value).items() if a != axis}
    return sized(node, _append(node, nn.GatherOp(value, index, axis)), {**sizes, axis: common})


def expanded(node: NodeBuilder, value: SSAValue, lengths: Sequence[int | Length]) -> SSAValue:
    """A value repeated along axes of one element, and along new leading axes."""
    own = lengths_along(node, value)
    new = max(len(lengths) - len(own), 0)
    wanted = [1] * (len(own) - len(lengths)) + list(lengths)
    found: list[int | Length] = wanted[:new]
    for axis, length in enumerate(own):
        target = wanted[new + axis]
        if target == 1 or length == 1 or is_equal(length, target):
            found.append(target if length == 1 else length)
            continue
        common = common_length(node, [length, target])
        value = spread(node, value, axis, common)
        found.append(common)
    held = nn.shape_of(value)
    shape = [capacity(n) for n in found]
    for axis, size in enumerate(held):
        if size != 1:
            shape[new + axis] = size
    sizes = {i: n for i, n in enumerate(found) if isinstance(n, Length)}
    if tuple(shape) != held:
        value = _append(node, nn.ExpandOp(value, shape))
    return sized(node, value, sizes)


def marked(node: NodeBuilder, value: SSAValue, lengths: Sequence[int | Length]) -> SSAValue:
    """A value of these lengths with the elements of a value of their largest shape."""
    sizes = {i: n for i, n in enumerate(lengths) if isinstance(n, Length)}
    if not sizes:
        return value
    same = [1, *nn.shape_of(value)]
    copied = node.bare_reshape(node.bare_reshape(value, same), same[1:])
    return sized(node, copied, sizes)


def matched(node: NodeBuilder, value: SSAValue, axis: int, common: int | Length) -> SSAValue:
    """A value whose axis has the length that it is merged over, and the size of this length."""
    if length_along(node, value, axis) == 1:
        return value
    return _fitted_alike(node, spread(node, value, axis, common), axis, capacity(common))


def leading_aligned(
    node: NodeBuilder, left: SSAValue, right: SSAValue, last: int
) -> tuple[SSAValue, SSAValue]:
    """Two operands whose leading axes broadcast.

    Args:
        last: the number of axes at the end that are not leading.
    """
    found = [left, right]
    for back in range(last + 1, max(len(nn.shape_of(each)) for each in found) + 1):
        at = [len(nn.shape_of(each)) - back for each in found]
        if min(at) < 0:
            continue
        lengths = [length_along(node, each, axis) for each, axis in zip(found, at, strict=True)]
        if 1 in lengths or all(isinstance(each, int) for each in lengths):
            continue
        common = common_length(node, lengths)
        found = [matched(node, each, axis, common) for each, axis in zip(found, at, strict=True)]
    return found[0], found[1]


# Joins and slices


def joined(node: NodeBuilder, values: Sequence[SSAValue], axis: int) -> SSAValue:
    """Values one after another along an axis.

    A value that follows padding is written over it, at the place that the length names.
    """
    parts = [value for value in values if length_along(node, value, axis) != 0] or list(values[:1])
    others = [{a: n for a, n in sizes_of(node, v).items() if a != axis} for v in parts]
    for each in others[1:]:
        if each.keys() != others[0].keys() or not all(
            is_equal(n, others[0][a]) for a, n in each.items()
        ):
            odd = next(iter({**others[0], **each}.values()))
            raise node.size_refused("a join along another axis of values of different sizes", odd)
    for a in others[0]:
        least = min(nn.shape_of(part)[a] for part in parts)
        parts = [_fitted_alike(node, part, a, least) for part in parts]
    total, length = parts[0], length_along(node, parts[0], axis)
    for part in _merged(node, parts[1:], axis):
        size, more = nn.shape_of(total)[axis], nn.shape_of(part)[axis]
        if isinstance(length, int):
            total = _append(node, nn.ConcatOp([total, part], axis))
        else:
            place = positions(node, part, axis)
            place = _append(node, nn.AddOp(place, emitted_length(node, length)))
            table = fitted(node, total, axis, size + more)
            total = _append(node, nn.UpdateOp(part, place, table, "last", axis))
        length = simplest(as_length(length) + length_along(node, part, axis))
    if isinstance(length, Length):
        total = fitted(node, total, axis, capacity(length))
    return sized(node, total, {**others[0], axis: length})


def _fitted_alike(node: NodeBuilder, value: SSAValue, axis: int, size: int) -> SSAValue:
    return mark(node, fitted(node, value, axis, size), sizes_of(node, value))


def _merged(node: NodeBuilder, parts: Sequence[SSAValue], axis: int) -> list[SSAValue]:
    """The parts of a join, with neighbours that have no padding along its axis joined."""
    found: list[SSAValue] = []
    for part in parts:
        fixed = axis not in sizes_of(node, part)
        if found and fixed and axis not in sizes_of(node, found[-1]):
            found[-1] = _append(node, nn.ConcatOp([found[-1], part], axis))
        else:
            found.append(part)
    return found


INFINITY = (1 << 31) - 1
"""Larger numbers stand for the end of any axis in slices."""


def cut(
    node: NodeBuilder,
    value: SSAValue,
    axis: int,
    start: int | Length,
    stop: int | Length,
    step: int = 1,
) -> SSAValue:
    """The elements of a slice along an axis. Negative numbers count from the end of what exists."""
    whole = as_length(length_along(node, value, axis))
    low, high = (0, whole) if step > 0 else (-1, whole - 1)
    begin, end = (
        smaller(larger(_counted_from_front(node, n, whole), low), high) for n in (start, stop)
    )
    left = as_length(end) - begin if step > 0 else as_length(begin) - end
    count = simplest(max_of_zero((left + (abs(step) - 1)) // abs(step)))
    others = {a: n for a, n in sizes_of(node, value).items() if a != axis}
    shape = nn.shape_of(value)
    if isinstance(begin, int) and step > 0:
        # Nothing of the slice lies behind the padding, so that all of it is taken.
        most = min(-(-(shape[axis] - begin) // step), capacity(count))
        starts = [begin if i == axis else 0 for i in range(len(shape))]
        steps = [step if i == axis else 1 for i in range(len(shape))]
        extent = [most if i == axis else n for i, n in enumerate(shape)]
        if tuple(extent) != shape:
            value = _append(node, nn.SliceOp(value, starts, steps, extent))
        return sized(node, value, {**others, axis: count})
    index = _append(node, nn.IotaOp(nn.tensor((capacity(count),), i32), [step]))
    index = _append(node, nn.AddOp(index, emitted_length(node, begin)))
    legal = _append(node, nn.MaxOp(index, node.constant(0, index)))
    index = _append(node, nn.MinOp(legal, node.constant(shape[axis] - 1, index)))
    return sized(node, _append(node, nn.GatherOp(value, index, axis)), {**others, axis: count})


def _counted_from_front(node: NodeBuilder, place: int | Length, whole: Length) -> int | Length:
    """A place on an axis, for one that may count from its end."""
    below = is_less(place, 0)
    if below is None:
        held = emitted_length(node, place)
        turned = _append(node, nn.AddOp(held, emitted_length(node, whole)))
        negative = _append(node, nn.LessOp(held, node.constant(0, held)))
        held = _append(node, nn.SelectOp(negative, turned, held))
        bounds = as_length(place)
        return number_in(node.program, held, bounds.least, max(bounds.most, whole.most))
    if isinstance(place, int):
        place = max(min(place, INFINITY), -INFINITY)
    return simplest(whole + place) if below else place


# Numbers


def number_range(
    node: NodeBuilder, start: int | Length, stop: int | Length, step: int, element: Attribute
) -> SSAValue:
    """The numbers from a start on, up to a limit that is left out."""
    left = as_length(stop) - start if step > 0 else as_length(start) - stop
    count = simplest(max_of_zero((left + (abs(step) - 1)) // abs(step)))
    size = capacity(count)
    node.check_table(size)
    begin = start if isinstance(start, int) else 0
    found = _append(node, nn.IotaOp(nn.tensor((size,), element), [step], begin))
    if not isinstance(start, int):
        found = _append(node, nn.AddOp(found, node.cast(emitted_length(node, start), element)))
    return sized(node, found, {0: count})


def mean_count(node: NodeBuilder, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """The number of elements along axes that exist, as an i32 without axes."""
    fixed = prod(nn.shape_of(value)[a] for a in axes if a not in sizes_of(node, value))
    lengths = [sizes_of(node, value)[a] for a in axes if a in sizes_of(node, value)]
    return emitted_length(node, prod(lengths, start=as_length(fixed)))
