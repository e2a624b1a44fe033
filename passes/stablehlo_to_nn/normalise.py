"""Batch normalisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.ir import SSAValue

from ...dialects import nn, stablehlo
from .conversion import Lower, ToNn


def _spread(new: ToNn, value: SSAValue, axis: int, rank: int) -> SSAValue:
    """One number for each feature, in the shape that broadcasts along the axis of features."""
    return new.reshape(value, (*nn.shape_of(value), *[1] * (rank - axis - 1)))


def _others(value: SSAValue, axis: int) -> list[int]:
    return [a for a in range(len(nn.shape_of(value))) if a != axis]


def _inference(op: stablehlo.BatchNormInferenceOp, new: ToNn) -> Sequence[SSAValue]:
    value, scale, offset, mean, variance = new.operands(op)
    epsilon = op.epsilon.value.data
    if op.axis == 1:
        return [new.add(nn.BatchNormOp(value, scale, offset, mean, variance, epsilon=epsilon))]
    return [_normalised(new, value, op.axis, (scale, offset, mean, variance), epsilon)]


def _normalised(
    new: ToNn, value: SSAValue, axis: int, given: Sequence[SSAValue], epsilon: float
) -> SSAValue:
    """A tensor normalised along an axis.

    Args:
        given: the scale, the offset, the mean and the variance of each feature.
    """
    kind, rank = nn.element_of(value), len(nn.shape_of(value))
    scale, offset, mean, variance = map(new.wide, given)
    deviation = new.add(nn.SqrtOp(new.add(nn.ShiftOp(variance, epsilon))))
    factor = new.add(nn.DivOp(scale, deviation))
    rest = new.add(nn.SubOp(offset, new.add(nn.MulOp(mean, factor))))
    wide = new.wide(value)
    scaled = new.add(nn.MulOp(wide, _spread(new, factor, axis, rank)))
    return new.cast(new.add(nn.AddOp(scaled, _spread(new, rest, axis, rank))), kind)


def _training(op: stablehlo.BatchNormTrainingOp, new: ToNn) -> Sequence[SSAValue]:
    value, scale, offset = new.operands(op)
    kind = nn.element_of(value)
    axes = _others(value, op.axis)
    mean, variance = new.add_several(nn.SummarizeOp(value, "moments", axes))
    given = (scale, offset, mean, variance)
    made = _normalised(new, value, op.axis, given, op.epsilon.value.data)
    return [made, new.cast(mean, kind), new.cast(variance, kind)]


def _gradient(op: stablehlo.BatchNormGradOp, new: ToNn) -> Sequence[SSAValue]:
    """The gradients of a normalisation by the mean and the variance of its own tensor.

    With c the centred tensor, v the variance plus epsilon, and n the elements of a feature:

        of the operand:  scale / sqrt(v) / n * (n * g - sum(g) - c / v * sum(g * c))
        of the scale:    sum(g * c) / sqrt(v)
        of the offset:   sum(g)
    """
    value, scale, mean, variance, given = map(new.wide, new.operands(op))
    kind, shape = nn.element_of(op.operand), nn.shape_of(value)
    rank, axes = len(shape), _others(value, op.axis)

    def spread(each: SSAValue) -> SSAValue:
        return _spread(new, each, op.axis, rank)

    count = prod(shape[a] for a in axes)
    steady = new.add(nn.ShiftOp(variance, op.epsilon.value.data))
    inverse = new.add(nn.ReciprocalOp(new.add(nn.SqrtOp(steady))))
    centred = new.add(nn.SubOp(value, spread(mean)))
    sum_of = new.add(nn.ReduceOp(given, "sum", axes))
    weighted = new.add(nn.ReduceOp(new.add(nn.MulOp(given, centred)), "sum", axes))
    factor = new.add(nn.ScaleOp(new.add(nn.MulOp(scale, inverse)), 1.0 / max(count, 1)))
    slope = new.add(nn.MulOp(centred, spread(new.add(nn.DivOp(weighted, steady)))))
    rest = new.add(nn.SubOp(new.add(nn.ScaleOp(given, float(count))), spread(sum_of)))
    of_value = new.add(nn.MulOp(new.add(nn.SubOp(rest, slope)), spread(factor)))
    of_scale = new.add(nn.MulOp(weighted, inverse))
    return [new.cast(each, kind) for each in (of_value, of_scale, sum_of)]


TABLE: Mapping[str, Lower] = {
    "stablehlo.batch_norm_inference": _inference,
    "stablehlo.batch_norm_training": _training,
    "stablehlo.batch_norm_grad": _gradient,
}
"""What lowers each operation of batch normalisation, by name."""
