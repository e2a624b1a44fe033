"""Reductions of whole axes, and functions of elements that regions say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import OpResult, SSAValue

from ...dialects import nn, stablehlo
from .conversion import Lower, ToNn
from .regions import MERGE, combiner_of, extreme_of, is_identity
from .stored_types import computed_wide


def _reduce(op: stablehlo.ReduceOp, new: ToNn) -> Sequence[SSAValue]:
    count = len(op.inputs)
    given = new.operands(op)
    values, initial = given[:count], given[count:]
    if not op.axes:
        made = new.applied(op.body, [*initial, *values])
        return [new.expand(each, nn.shape_of(values[0])) for each in made]
    if 0 in nn.shape_of(values[0]):
        return [_begun(new, op, each, i) for i, each in enumerate(initial)]
    combiners = [combiner_of(op.body, i) for i in range(count)]
    if None not in combiners:
        return [
            _merged(new, value, first, str(combiner), op.axes)
            for value, first, combiner in zip(values, initial, combiners, strict=True)
        ]
    found = _extreme(op, new, values, initial)
    return _in_halves(op, new, values, initial) if found is None else found


def _begun(new: ToNn, op: stablehlo.ReduceOp, first: SSAValue, number: int) -> SSAValue:
    """The result of merging nothing."""
    return new.expand(first, nn.shape_of(op.made[number]))


def _merged(
    new: ToNn, value: SSAValue, first: SSAValue, combiner: str, axes: Sequence[int]
) -> SSAValue:
    """A tensor merged along axes by a combiner, from a first value on."""
    made = reduced(new, value, combiner, axes)
    if is_identity(new, first, combiner):
        return made
    if nn.element_of(value) == i1:
        merge = nn.LogicalOrOp if combiner == "max" else nn.LogicalAndOp
        return new.add(merge(made, first))
    return new.add(MERGE[combiner](made, first))


def reduced(new: ToNn, value: SSAValue, combiner: str, axes: Sequence[int]) -> SSAValue:
    """A tensor merged along axes by a combiner."""
    return new.add(nn.ReduceOp(value, combiner, axes))


def _extreme(
    op: stablehlo.ReduceOp, new: ToNn, values: Sequence[SSAValue], initial: Sequence[SSAValue]
) -> list[SSAValue] | None:
    """Extremes with their indices; None if the region finds something else."""
    if len(values) != 2 or len(op.axes) != 1 or not _counts(values[1], op.axes[0]):
        return None
    name = extreme_of(new, op.body)
    if name is None or not is_identity(new, initial[0], name[3:6]):
        return None
    element = nn.element_of(values[0])
    value = new.cast(values[0], i32) if element == i1 else values[0]
    found, index = new.add_several(nn.SummarizeOp(value, name, op.axes))
    return [new.cast(found, element), new.cast(index, nn.element_of(values[1]))]


def _counts(value: SSAValue, axis: int) -> bool:
    """Whether a value of nn is the number of each element along an axis."""
    while isinstance(value, OpResult) and isinstance(value.op, nn.CastOp | nn.ExpandOp):
        # An axis that is repeated along is in front of those of the operand.
        axis -= len(nn.shape_of(value)) - len(nn.shape_of(value.op.operands[0]))
        value = value.op.operands[0]
    if not isinstance(value, OpResult) or not isinstance(value.op, nn.IotaOp):
        return False
    steps = nn.values_of(value.op.steps)
    counted = [int(i == axis) for i in range(len(steps))]
    return list(steps) == counted and value.op.start.value.data == 0


def _in_halves(
    op: stablehlo.ReduceOp, new: ToNn, values: Sequence[SSAValue], initial: Sequence[SSAValue]
) -> list[SSAValue]:
    """Tensors merged along axes by any region: their two halves, element by element, until one
    element is left. Merging may be done in any order.
    """
    rank = len(nn.shape_of(values[0]))
    kept = [a for a in range(rank) if a not in op.axes]
    sizes = [nn.shape_of(values[0])[a] for a in kept]
    count = prod(nn.shape_of(values[0])[a] for a in op.axes)
    parts = [
        new.reshape(new.transpose(each, [*op.axes, *kept]), (count, *sizes)) for each in values
    ]

    def part(value: SSAValue, start: int, size: int) -> SSAValue:
        return new.box(value, [start, *[0] * len(sizes)], [size, *sizes])

    while count > 1:
        half = count // 2
        first, second = ([part(each, at, half) for each in parts] for at in (0, half))
        merged = [
            new.expand(each, (half, *sizes)) for each in new.applied(op.body, [*first, *second])
        ]
        if count % 2:
            rest = [part(each, count - 1, 1) for each in parts]
            merged = [
                new.add(nn.ConcatOp([each, last], 0))
                for each, last in zip(merged, rest, strict=True)
            ]
        parts, count = merged, half + count % 2
    last = [new.reshape(each, sizes) for each in parts]
    made = new.applied(op.body, [*initial, *last])
    return [new.expand(each, sizes) for each in made]


def _map(op: stablehlo.MapOp, new: ToNn) -> Sequence[SSAValue]:
    (made,) = new.applied(op.computation, new.operands(op))
    return [new.expand(made, nn.shape_of(op.result))]


TABLE: Mapping[str, Lower] = {
    "stablehlo.reduce": computed_wide(_reduce),
    "stablehlo.map": _map,
}
"""What lowers each reduction, by name."""
