"""Means and variances, which frameworks write as sums.

A mean is a sum divided by the number of elements, and a variance is the mean of squared deviations,
or the mean of squares minus the square of the mean. `nn.summarize "moments"` computes both at once,
as the importers of other frameworks write it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects import nn
from ...ir.provenance import at
from .conversion import source_of, splat_of

Axes = tuple[int, ...]


@dataclass(frozen=True)
class _Mean:
    """A mean along axes.

    Attributes:
        value: the tensor whose mean it is.
    """

    value: SSAValue
    axes: Axes


def fold_moments(block: Block) -> None:
    """Replace each variance, and the mean that it is around, by moments."""
    means: dict[SSAValue, _Mean] = {}
    made: dict[tuple[SSAValue, Axes], nn.SummarizeOp] = {}
    for op in tuple(block.ops):
        if isinstance(op, nn.ReduceOp) and op.combiner.data == "sum":
            for value in _quotients(op):
                means[value] = _Mean(op.operand, nn.values_of(op.axes))
    for value, mean in tuple(means.items()):
        found = _around(mean, means)
        if found is not None:
            _replace(value, *found, made)
    for op in tuple(block.ops):
        if isinstance(op, nn.SubOp):
            found = _difference(op, means)
            if found is not None:
                _replace(_at_least_0(op), *found, made)


def _quotients(op: nn.ReduceOp) -> Iterator[SSAValue]:
    """The values that are a sum divided by the number of its terms."""
    count = prod(nn.shape_of(op.operand)[a] for a in nn.values_of(op.axes))
    pending: list[SSAValue] = [op.result]
    while pending:
        value = pending.pop()
        for use in value.uses:
            reader = use.operation
            if isinstance(reader, nn.ReshapeOp):
                pending.append(reader.result)
            elif isinstance(reader, nn.DivOp) and use.index == 0 and _is(reader.rhs, count):
                yield reader.result
            elif isinstance(reader, nn.MulOp) and count and _is(_other(reader, value), 1 / count):
                yield reader.result


def _other(op: nn.MulOp, value: SSAValue) -> SSAValue:
    return op.rhs if op.lhs is value else op.lhs


def _is(value: SSAValue, number: float) -> bool:
    """Whether a value is a number, as far as f32 holds it."""
    found = splat_of(value)
    return found is not None and abs(found - number) <= 1e-6 * abs(number)


def _squared(value: SSAValue) -> SSAValue | None:
    """The value whose square a value is; None if it is no square."""
    if not isinstance(value, OpResult):
        return None
    op = value.op
    if isinstance(op, nn.SquareOp):
        return op.operand
    return op.lhs if isinstance(op, nn.MulOp) and op.lhs is op.rhs else None


Found = tuple[SSAValue, Axes, SSAValue]
"""The tensor that moments describe, their axes, and the mean that is one of them."""


def _around(mean: _Mean, means: dict[SSAValue, _Mean]) -> Found | None:
    """The moments of which a mean is the variance: it is a mean of squared deviations.

    None for another mean.
    """
    deviation = _squared(mean.value)
    if not isinstance(deviation, OpResult) or not isinstance(deviation.op, nn.SubOp):
        return None
    value, centre = deviation.op.lhs, source_of(deviation.op.rhs)
    inner = means.get(centre) or means.get(deviation.op.rhs)
    named = centre if centre in means else deviation.op.rhs
    if inner is None or inner.value is not value or inner.axes != mean.axes:
        return None
    return (value, mean.axes, named) if _lies_along(deviation.op.rhs, value, mean.axes) else None


def _lies_along(value: SSAValue, like: SSAValue, axes: Axes) -> bool:
    """Whether a mean broadcasts to a tensor as one number for all elements along axes."""
    shape, own = nn.shape_of(like), nn.shape_of(value)
    if own == shape and isinstance(value, OpResult) and isinstance(value.op, nn.ExpandOp):
        own = nn.shape_of(value.op.operand)
    own = (*[1] * (len(shape) - len(own)), *own)
    return own == tuple(1 if a in axes else n for a, n in enumerate(shape))


def _difference(op: nn.SubOp, means: dict[SSAValue, _Mean]) -> Found | None:
    """The moments of which a difference is the variance: mean of squares minus square of the mean.

    None for another difference.
    """
    squares, centre = means.get(op.lhs), _squared(op.rhs)
    if squares is None or centre is None or centre not in means:
        return None
    value, inner = _squared(squares.value), means[centre]
    if value is None or inner.value is not value or inner.axes != squares.axes:
        return None
    return value, inner.axes, centre


def _at_least_0(op: nn.SubOp) -> SSAValue:
    """A difference, or what only keeps it from being negative, which a variance never is."""
    uses = [use.operation for use in op.result.uses]
    is_kept = len(uses) == 1 and isinstance(uses[0], nn.ReluOp)
    return uses[0].results[0] if is_kept else op.result


def _replace(
    variance: SSAValue,
    value: SSAValue,
    axes: Axes,
    mean: SSAValue,
    made: dict[tuple[SSAValue, Axes], nn.SummarizeOp],
) -> None:
    """Let moments take the place of a variance and of its mean."""
    if nn.element_of(value) != f32 or 0 in nn.shape_of(value):
        return
    assert isinstance(mean, OpResult)
    assert isinstance(variance, OpResult)
    key = value, axes
    if key not in made:
        made[key] = nn.SummarizeOp(value, "moments", axes, keep_dims=True)
        made[key].location = at(mean.op, "moments")
        _insert(made[key], mean.op)
        _take(mean, made[key].results[0], mean.op)
    _take(variance, made[key].results[1], variance.op)


def _take(old: OpResult, new: SSAValue, before: Operation) -> None:
    """Replace a value by another one, in its shape."""
    shape = nn.shape_of(old)
    if nn.shape_of(new) != shape:
        reshape = nn.ReshapeOp(new, shape)
        reshape.location = before.location
        _insert(reshape, before)
        new = reshape.result
    old.replace_all_uses_with(new)


def _insert(op: Operation, before: Operation) -> None:
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
