"""Constants, and operations that move or repeat elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import OpResult, SSAValue

from ...dialects import nn, stablehlo
from ...dialects.coordinates import holds_exactly
from ...dialects.dtypes import STORED, numpy_dtype
from .conversion import Lower, ToNn


def _constant(op: stablehlo.ConstantOp, new: ToNn) -> Sequence[SSAValue]:
    return [new.constant(op.array)]


def _iota(op: stablehlo.IotaOp, new: ToNn) -> Sequence[SSAValue]:
    """Numbers along one axis. Types that do not hold them all are cast to, as stablehlo rounds."""
    type_ = nn.tensor_of(op.output)
    shape, element = nn.shape_of(type_), type_.element_type
    steps = [int(axis == op.axis) for axis in range(len(shape))]
    most = max(shape[op.axis] - 1, 0)
    computed = element != i1 and element not in STORED
    if computed and holds_exactly(numpy_dtype(element), 0, most):
        return [new.add(nn.IotaOp(type_, steps))]
    counted = new.add(nn.IotaOp(nn.tensor(shape, i32), steps))
    return [new.cast(counted, element)]


def _broadcast_in_dim(op: stablehlo.BroadcastInDimOp, new: ToNn) -> Sequence[SSAValue]:
    value, shape, axes = new.value(op.operand), nn.shape_of(op.result), op.axes
    if value in new.spread:
        # Two of them are one.
        value, inner = new.spread[value]
        axes = tuple(axes[a] for a in inner)
    made = _spread(new, value, axes, shape)
    new.spread.setdefault(made, (value, axes))
    return [made]


def _spread(new: ToNn, value: SSAValue, axes: Sequence[int], shape: Sequence[int]) -> SSAValue:
    """A tensor repeated along new axes, and along those where it has one element.

    Args:
        axes: the axis of the result for each axis of the tensor.
    """
    kept = _with_all_axes(new, value, axes, len(shape))
    if kept is not None:
        return new.expand(kept, shape)
    own = nn.shape_of(value)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    value = new.transpose(value, order)
    wide = [1] * len(shape)
    for axis, size in zip(axes, own, strict=True):
        wide[axis] = size
    # Axes of one element in front are there without being written.
    while wide and wide[0] == 1 and len(wide) > max(len(own), 0):
        wide.pop(0)
    return new.expand(new.reshape(value, wide), shape)


def _with_all_axes(new: ToNn, value: SSAValue, axes: Sequence[int], rank: int) -> SSAValue | None:
    """A reduced tensor that has kept its axes, with one element; None if it is no reduced one, or
    if its axes become others.
    """
    if not isinstance(value, OpResult) or not isinstance(value.op, nn.ReduceOp):
        return None
    gone = nn.values_of(value.op.axes)
    full = len(nn.shape_of(value.op.operand))
    if value.op.keep_dims is not None or full != rank:
        return None
    if tuple(axes) != tuple(a for a in range(full) if a not in gone):
        return None
    found = new.whole.get(value)
    if found is None:
        made = nn.ReduceOp(value.op.operand, value.op.combiner.data, gone, keep_dims=True)
        found = new.whole[value] = new.add(made)
    return found


def _broadcast(op: stablehlo.BroadcastOp, new: ToNn) -> Sequence[SSAValue]:
    return [new.expand(new.value(op.operand), nn.shape_of(op.result))]


def _reshape(op: stablehlo.ReshapeOp, new: ToNn) -> Sequence[SSAValue]:
    return [new.reshape(new.value(op.operand), nn.shape_of(op.result))]


def _transpose(op: stablehlo.TransposeOp, new: ToNn) -> Sequence[SSAValue]:
    return [new.transpose(new.value(op.operand), op.axes)]


def _slice(op: stablehlo.SliceOp, new: ToNn) -> Sequence[SSAValue]:
    value, sizes = new.value(op.operand), nn.shape_of(op.result)
    starts = stablehlo.integers_of(op.start_indices, ())
    strides = stablehlo.integers_of(op.strides, ())
    if sizes == nn.shape_of(value):
        return [value]
    return [new.add(nn.SliceOp(value, starts, strides, sizes))]


def _concatenate(op: stablehlo.ConcatenateOp, new: ToNn) -> Sequence[SSAValue]:
    parts = new.operands(op)
    if len(parts) == 1:
        return parts
    return [new.add(nn.ConcatOp(parts, op.dimension.value.data))]


def _reverse(op: stablehlo.ReverseOp, new: ToNn) -> Sequence[SSAValue]:
    value = new.value(op.operand)
    return [reversed_along(new, value, stablehlo.integers_of(op.dimensions, ()))]


def reversed_along(new: ToNn, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """A value of nn in reverse order along some axes."""
    shape = nn.shape_of(value)
    if not any(shape[axis] > 1 for axis in axes):
        return value
    starts = [max(n - 1, 0) if i in axes else 0 for i, n in enumerate(shape)]
    steps = [-1 if i in axes else 1 for i in range(len(shape))]
    return new.add(nn.SliceOp(value, starts, steps, shape))


def _optimization_barrier(op: stablehlo.OptimizationBarrierOp, new: ToNn) -> Sequence[SSAValue]:
    return new.operands(op)


TABLE: Mapping[str, Lower] = {
    "stablehlo.constant": _constant,
    "stablehlo.iota": _iota,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.broadcast": _broadcast,
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose,
    "stablehlo.slice": _slice,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.reverse": _reverse,
    "stablehlo.optimization_barrier": _optimization_barrier,
}
"""What lowers each operation that moves elements, by name."""
