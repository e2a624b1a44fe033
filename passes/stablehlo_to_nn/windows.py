"""Windows that move over all axes, and padding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i1, i8, i32
from xdsl.ir import SSAValue

from ...backends.reference.identities import identity_of
from ...dialects import nn, stablehlo
from ...dialects.dtypes import numpy_dtype
from ...dialects.nn.index import dims_of
from ...dialects.structured import Body, Structure
from ...ir.geometry.space import AccessMap, AxisMap, Position, Space
from .conversion import Lower, ToNn, splat_of
from .cumulative import cumulative
from .elementwise import is_float
from .regions import MERGE, combiner_of, is_identity
from .stored_types import computed_wide
from .windows_at_indices import updated

MOST_UNDER = 1024
"""The most elements under a window that any region merges one after another. Assumed: longer
programs take too long to compile."""

Axes = tuple[AxisMap, ...]


# Padding


def _pad(op: stablehlo.PadOp, new: ToNn) -> Sequence[SSAValue]:
    value, fill = new.operands(op)
    low = stablehlo.integers_of(op.edge_padding_low, ())
    between = stablehlo.integers_of(op.interior_padding, ())
    return [padded(new, value, fill, low, between, nn.shape_of(op.result))]


def padded(
    new: ToNn,
    value: SSAValue,
    fill: SSAValue,
    low: Sequence[int],
    between: Sequence[int],
    shape: Sequence[int],
) -> SSAValue:
    """A tensor with elements before the first, between two, and after the last.

    Args:
        fill: the new elements, a tensor without axes.
        low: how many come before the first; fewer than 0 take some away.
        between: how many come between two.
        shape: of the result.
    """
    own, rank = nn.shape_of(value), len(shape)
    if own == tuple(shape) and not any(low) and not any(between):
        return value
    if not any(low) and not any(between) and all(a >= b for a, b in zip(own, shape, strict=True)):
        return new.add(nn.SliceOp(value, [0] * rank, [1] * rank, shape))
    number = splat_of(fill)
    if number is not None and _is_exact(number) and nn.element_of(value) != i1:
        return _filled(new, value, number, low, between, shape)
    if 0 in own:
        return new.expand(fill, shape)
    # nn fills with a number, so a mask says which elements are new.
    inside = new.add(nn.ExpandOp(new.constant(1, "i4"), own))
    mask = _filled(new, inside, 0, low, between, shape)
    kind = nn.element_of(value)
    wide = new.cast(value, i32) if kind == i1 else value
    placed = new.cast(_filled(new, wide, 0, low, between, shape), kind)
    there = new.add(nn.GreaterOp(mask, new.number(0, mask)))
    return new.add(nn.SelectOp(there, placed, fill))


def _is_exact(number: float) -> bool:
    """Whether a number that nn fills with, which is a float, stays the same. NaN does not."""
    return float(number) == number


def _filled(
    new: ToNn,
    value: SSAValue,
    fill: float,
    low: Sequence[int],
    between: Sequence[int],
    shape: Sequence[int],
) -> SSAValue:
    own = nn.shape_of(value)
    if not any(between):
        high = [m - n - a for m, n, a in zip(shape, own, low, strict=True)]
        return new.add(nn.PadOp(value, low, high, value=float(fill)))
    dims = [nn.dim(f"d{i}", n) for i, n in enumerate(shape)]
    at = [
        ((d - a).exactly(b + 1) if b else d - a).outside("fill")
        for d, a, b in zip(dims, low, between, strict=True)
    ]
    read = nn.at(value, *at, pad=float(fill))
    return new.add(nn.compute("identity", [read], dims))


# Windows


def _reduce_window(op: stablehlo.ReduceWindowOp, new: ToNn) -> Sequence[SSAValue]:
    count = len(op.inputs)
    given = new.operands(op)
    values, initial = given[:count], given[count:]
    shape = nn.shape_of(op.made[0])
    if 0 in shape:
        return [new.expand(first, shape) for first in initial]
    every = cumulative(op, new, values, initial)
    if every is not None:
        return every
    found: list[SSAValue | None] = []
    for i, (value, first) in enumerate(zip(values, initial, strict=True)):
        combiner = combiner_of(op.body, i)
        found.append(None if combiner is None else _pooled(op, new, value, first, combiner))
    made = [each for each in found if each is not None]
    return made if len(made) == count else _one_by_one(op, new, values, initial)


def _pooled(
    op: stablehlo.ReduceWindowOp, new: ToNn, value: SSAValue, first: SSAValue, combiner: str
) -> SSAValue | None:
    """A tensor merged under windows by a combiner; None if the first value cannot be filled in."""
    kind = nn.element_of(value)
    wide = new.cast(value, i32) if kind == i1 else value
    if is_identity(new, first, combiner):
        begin, fill = None, identity_of(combiner, nn.element_of(wide))
    else:
        number = splat_of(first)
        if number is None:
            return None
        begin, fill = new.cast(first, nn.element_of(wide)), number
    is_filled = any(map(any, op.pads)) or max(op.dilations, default=1) > 1
    if is_filled and not _is_exact(fill):
        return None
    made = pooled(
        new, wide, combiner, fill, op.window, op.strides, op.dilations, op.reaches, op.pads
    )
    if begin is not None:
        made = new.add(MERGE[combiner](made, begin))
    if kind == i1:
        return new.add(nn.GreaterOp(made, new.number(0, made)))
    return new.cast(made, kind)


def pooled(
    new: ToNn,
    value: SSAValue,
    combiner: str,
    fill: float,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    reaches: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> SSAValue:
    """A tensor merged under windows by a combiner.

    Args:
        fill: the elements of the padding, and those between elements.
    """
    shape = nn.shape_of(value)
    is_usual = (
        len(shape) > 2
        and tuple(window[:2]) == tuple(strides[:2]) == (1, 1)
        and tuple(pads[:2]) == ((0, 0), (0, 0))
        and set(dilations) <= {1}
        and fill == identity_of(combiner, nn.element_of(value))
    )
    if is_usual:
        lists: dict[str, Any] = {
            "stride": strides[2:],
            "dilation": reaches[2:],
            "pad_low": [low for low, _ in pads[2:]],
            "pad_high": [high for _, high in pads[2:]],
        }
        return new.add(nn.PoolOp(value, combiner, window[2:], **lists))
    places, _, read = _under(shape, window, strides, dilations, reaches, pads)
    given = nn.at(value, *read, pad=float(fill))
    return new.add(nn.compute("identity", [given], places, combiner=combiner))


def _under(
    shape: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    reaches: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> tuple[list[Any], list[Any], list[Any]]:
    """The places of a window, the elements under it, and where these are in a tensor."""
    places: list[Any] = []
    under: list[Any] = []
    read: list[Any] = []
    for i, n in enumerate(shape):
        count = stablehlo.window_places(
            n, window[i], strides[i], pads[i], dilation=dilations[i], reach=reaches[i]
        )
        places.append(nn.dim(f"y{i}", count))
        under.append(nn.dim(f"k{i}", window[i], "reduction"))
        at = places[i] * strides[i] + under[i] * reaches[i] - pads[i][0]
        read.append(_every(at, dilations[i]).outside("fill"))
    return places, under, read


def _every(index: Any, step: int) -> Any:
    """An index in a tensor between whose elements others lie."""
    return index.exactly(step) if step > 1 else index


def _one_by_one(
    op: stablehlo.ReduceWindowOp,
    new: ToNn,
    values: Sequence[SSAValue],
    initial: Sequence[SSAValue],
) -> list[SSAValue]:
    """Tensors merged under windows by any region: slices of the padded tensors, one for each
    element under the window, element by element."""
    if prod(op.window) > MOST_UNDER:
        raise new.unsupported(
            f"a window of {prod(op.window)} elements for this region",
            f"at most {MOST_UNDER}, or one operation such as a maximum, are",
        )
    shape = nn.shape_of(op.made[0])
    low = [each for each, _ in op.pads]
    held = [
        max(n - 1, 0) * wide + min(n, 1) + sum(pads)
        for n, wide, pads in zip(nn.shape_of(values[0]), op.dilations, op.pads, strict=True)
    ]
    between = [each - 1 for each in op.dilations]
    whole = [
        padded(new, value, first, low, between, held)
        for value, first in zip(values, initial, strict=True)
    ]
    made = list(initial)
    for offsets in product(*map(range, op.window)):
        starts = [k * reach for k, reach in zip(offsets, op.reaches, strict=True)]
        parts = [new.add(nn.SliceOp(each, starts, op.strides, shape)) for each in whole]
        made = new.applied(op.body, [*made, *parts])
    return [new.expand(each, shape) for each in made]


# Elements that windows select


def _select_and_scatter(op: stablehlo.SelectAndScatterOp, new: ToNn) -> Sequence[SSAValue]:
    """The elements of the source, merged at the places that windows select."""
    value, source, first = new.operands(op)
    direction = _direction(op)
    if direction is None:
        raise new.unsupported("a select that is no comparison", "GE, GT, LE and LT are")
    combiner = combiner_of(op.scatter, 0)
    if combiner is None:
        raise new.unsupported(
            "a scatter by this region",
            "add, multiply, maximum, minimum, and of truth values also and, or, are",
        )
    shape = nn.shape_of(value)
    if 0 in (*shape, *nn.shape_of(source)):
        return [new.expand(first, shape)]
    if combiner == "sum" and is_float(source):
        return [_summed(op, new, value, source, first, direction)]
    return [_updated(op, new, value, source, first, direction, combiner)]


def _updated(
    op: stablehlo.SelectAndScatterOp,
    new: ToNn,
    value: SSAValue,
    source: SSAValue,
    first: SSAValue,
    direction: str,
    combiner: str,
) -> SSAValue:
    """The first value, merged with the elements of the source at the selected elements."""
    shape, count = nn.shape_of(value), prod(nn.shape_of(source))
    size = prod(shape)
    found = new.cast(_position(op, new, value, direction, lambda tensor, _: tensor), i32)
    # A window without elements of the tensor selects none: one more row takes what it merges.
    rows = new.add(nn.MinOp(found, new.number(size, found)))
    parts = (new.reshape(source, (count,)), new.reshape(rows, (count,)))
    made = updated(new, *parts, new.expand(first, (size + 1,)), combiner)
    return new.reshape(new.box(made, [0], [size]), shape)


def _summed(
    op: stablehlo.SelectAndScatterOp,
    new: ToNn,
    value: SSAValue,
    source: SSAValue,
    first: SSAValue,
    direction: str,
) -> SSAValue:
    """Sums of floats of the source at the selected elements, rounded once.

    Each element of the result looks at the windows over it: it adds up the elements of the source
    whose windows have selected it.
    """
    shape = nn.shape_of(value)
    chosen = _chosen(op, new, value, direction)
    kind = nn.element_of(source)
    wide = new.wide(source)
    chosen = new.cast(chosen, nn.element_of(wide))
    dims = [nn.dim(f"d{i}", n) for i, n in enumerate(shape)]
    under = [nn.dim(f"k{i}", n, "reduction") for i, n in enumerate(op.window)]
    read = [
        _every(d - k + low, stride).outside("fill")
        for d, k, (low, _), stride in zip(dims, under, op.pads, op.strides, strict=True)
    ]
    numbers = np.arange(prod(op.window)).reshape(op.window)
    number = nn.at(new.constant(numbers, numpy_dtype(nn.element_of(wide))), *under)
    made = nn.compute(
        "match",
        [nn.at(chosen, *read, pad=float(prod(op.window))), number, nn.at(wide, *read)],
        dims,
        combiner="sum",
    )
    added = new.cast(new.add(made), kind)
    if is_identity(new, first, "sum"):
        return added
    return new.add(nn.AddOp(added, first))


def _direction(op: stablehlo.SelectAndScatterOp) -> str | None:
    """The comparison of the first element with the second that selects it; None for others."""
    end = op.select.block.last_op
    assert end is not None
    made = end.operands[0].owner
    if not isinstance(made, stablehlo.CompareOp):
        return None
    first, second = op.select.block.args
    found = made.comparison_direction.data
    if made.is_total or found in ("EQ", "NE"):
        return None
    if (made.lhs, made.rhs) == (first, second):
        return found
    swapped = {"GE": "LE", "GT": "LT", "LE": "GE", "LT": "GT"}
    return swapped[found] if (made.lhs, made.rhs) == (second, first) else None


def _chosen(
    op: stablehlo.SelectAndScatterOp, new: ToNn, value: SSAValue, direction: str
) -> SSAValue:
    """For each place of the window, the number of the element under it that is selected."""
    if not any(map(any, op.pads)):
        return _position(op, new, value, direction, lambda _, window: window)
    # A place outside the tensor contributes nothing, so the number counts places in it too.
    index = _position(op, new, value, direction, lambda tensor, window: (*tensor, *window))
    return new.add(nn.ModOp(index, new.number(prod(op.window), index)))


def _position(
    op: stablehlo.SelectAndScatterOp,
    new: ToNn,
    value: SSAValue,
    direction: str,
    counted: Callable[[Axes, Axes], Axes],
) -> SSAValue:
    """For each place of the window, the number of the element that is selected.

    Args:
        counted: the axes along which elements are numbered, from those of the tensor and those of
            the window.
    """
    # The first of several equal elements stays selected if equal ones are, else the last one is.
    largest, last = direction[0] == "G", direction[1] != "E"
    name = f"arg{'max' if largest else 'min'}{'_last' if last else ''}"
    shape = nn.shape_of(value)
    if nn.element_of(value) == i1:
        value = new.cast(value, i8)
    ones = (1,) * len(shape)
    places, under, read = _under(shape, op.window, op.strides, ones, ones, op.pads)
    dims = dims_of(places, read)
    access = nn.at(value, *read).access(dims)
    target = AccessMap(tuple(index.axis(index.dim.size, dims) for index in places))
    window = tuple(index.axis(index.dim.size, dims) for index in under)
    body = Body("identity", name)
    position = Position(AccessMap(counted(access.axes, window)))
    space = Space(dims, (access,), (target,) * body.result_count, (), (position,))
    return new.add_several(nn.ComputeOp([value], Structure(space, body)))[1]


TABLE: Mapping[str, Lower] = {
    "stablehlo.pad": _pad,
    "stablehlo.reduce_window": computed_wide(_reduce_window),
    "stablehlo.select_and_scatter": computed_wide(_select_and_scatter),
}
"""What lowers padding and each operation with a window, by name."""
