"""Windows that hold all elements up to each one: cumulative sums, and what JAX writes like them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from ...dialects import nn, stablehlo
from .conversion import ToNn
from .regions import MERGE, combiner_of, is_identity


def cumulative(
    op: stablehlo.ReduceWindowOp,
    new: ToNn,
    values: Sequence[SSAValue],
    initial: Sequence[SSAValue],
) -> list[SSAValue] | None:
    """The results of windows that end at each element along an axis, or that begin there.

    None for other windows.
    """
    found = _along(op, nn.shape_of(values[0]))
    if found is None:
        return None
    axis, reverse = found
    combiners = [combiner_of(op.body, i) for i in range(len(values))]
    if None in combiners:
        return _by_doubling(op, new, values, initial, axis, reverse=reverse)
    return [
        _scanned(new, value, first, str(combiner), axis, reverse=reverse)
        for value, first, combiner in zip(values, initial, combiners, strict=True)
    ]


def _along(op: stablehlo.ReduceWindowOp, shape: Sequence[int]) -> tuple[int, bool] | None:
    """The axis, and whether windows begin at each element; None for other windows."""
    if {*op.strides, *op.dilations, *op.reaches} - {1}:
        return None
    axes = [a for a, size in enumerate(op.window) if size > 1]
    if len(axes) != 1 or op.window[axes[0]] != shape[axes[0]]:
        return None
    (axis,) = axes
    beyond = shape[axis] - 1
    for reverse, pad in ((False, (beyond, 0)), (True, (0, beyond))):
        wanted = [pad if a == axis else (0, 0) for a in range(len(shape))]
        if [tuple(each) for each in op.pads] == wanted:
            return axis, reverse
    return None


def _scanned(
    new: ToNn, value: SSAValue, first: SSAValue, combiner: str, axis: int, *, reverse: bool
) -> SSAValue:
    """A scan by a combiner of nn, from a first value on."""
    kind = nn.element_of(value)
    wide = new.cast(value, i32) if kind == i1 else value
    made = new.add(nn.ScanOp(wide, combiner, axis, reverse=reverse))
    if not is_identity(new, first, combiner):
        made = new.add(MERGE[combiner](made, new.cast(first, nn.element_of(wide))))
    return new.cast(made, kind)


def _by_doubling(
    op: stablehlo.ReduceWindowOp,
    new: ToNn,
    values: Sequence[SSAValue],
    initial: Sequence[SSAValue],
    axis: int,
    *,
    reverse: bool,
) -> list[SSAValue]:
    """A scan by any region: each step merges with the element twice as far as the step before.

    Source: Hillis and Steele, Data Parallel Algorithms, 1986.
    """
    shape = nn.shape_of(values[0])
    size = shape[axis]

    def part(value: SSAValue, start: int, count: int) -> SSAValue:
        starts = [start if a == axis else 0 for a in range(len(shape))]
        return new.box(value, starts, [count if a == axis else n for a, n in enumerate(shape)])

    parts, step = list(values), 1
    while step < size:
        earlier = [part(each, 0, size - step) for each in parts]
        later = [part(each, step, size - step) for each in parts]
        merged = new.applied(op.body, [*earlier, *later])
        kept = [part(each, size - step if reverse else 0, step) for each in parts]
        pairs = zip(merged, kept, strict=True)
        parts = [
            new.add(nn.ConcatOp([both, rest] if reverse else [rest, both], axis))
            for both, rest in pairs
        ]
        step *= 2
    return [new.expand(each, shape) for each in new.applied(op.body, [*initial, *parts])]
