"""Operations of tensor: tensors cut, joined, padded, and seen in other shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerType, i1, i64
from xdsl.ir import Block, SSAValue

from ...dialects import nn
from ...ir.refusals import Uncovered
from .conversion import ToNn, number_that_fills, type_in_nn
from .scope import Scope


def empty(op: tensor.EmptyOp, new: ToNn) -> None:
    """Convert tensor.empty: nothing is made of it until something reads it.

    before: %0 = tensor.empty() : tensor<4xf32>
    after:  (nothing)
    """
    _ = type_in_nn(op.tensor.type)
    new.unset.add(op.tensor)


def cast_shape(op: tensor.CastOp, new: ToNn) -> None:
    """Convert tensor.cast between equal static shapes: it is its operand."""
    if type_in_nn(op.source.type) != type_in_nn(op.dest.type):
        raise Uncovered(f"{op.source.type} as {op.dest.type}; need static shapes")
    new.values[op.dest] = new.value(op.source)


def dim(op: tensor.DimOp, new: ToNn) -> None:
    """Convert tensor.dim: the size of an axis is a constant."""
    shape, axis = type_in_nn(op.source.type).get_shape(), new.known(op.index)
    if not 0 <= axis < len(shape):
        raise Uncovered(f"axis {axis} of {op.source.type}, which has {len(shape)} axes")
    size = shape[axis]
    new.whole[op.result] = size
    new.values[op.result] = new.number(size, i64)


def reshaped(
    op: tensor.CollapseShapeOp | tensor.ExpandShapeOp | tensor.ReshapeOp, new: ToNn
) -> None:
    """Convert the operations that give a tensor another shape.

    before: %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
    after:  %1 = nn.reshape %0 to [6] : (tensor<2x3xf32>) -> tensor<6xf32>
    """
    source, shape = op.operands[0], type_in_nn(op.results[0].type).get_shape()
    if source in new.unset:
        new.unset.add(op.results[0])
        return
    new.values[op.results[0]] = new.emit(nn.ReshapeOp(new.value(source), shape))


def concat(op: tensor.ConcatOp, new: ToNn) -> None:
    """Convert tensor.concat.

    before: %2 = tensor.concat dim(0) %0, %1 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
    after:  %2 = nn.concat %0, %1 axis 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
    """
    parts = [new.value(each) for each in op.inputs]
    new.values[op.result] = new.emit(nn.ConcatOp(parts, op.dim.value.data))


def from_elements(op: tensor.FromElementsOp, new: ToNn) -> None:
    """Convert tensor.from_elements: the numbers are joined."""
    type_ = type_in_nn(op.result.type)
    shape = type_.get_shape()
    if not op.elements:
        new.values[op.result] = new.filled(0, type_)
        return
    single = [new.emit(nn.ReshapeOp(new.value(each), (1,))) for each in op.elements]
    joined = single[0] if len(single) == 1 else new.emit(nn.ConcatOp(single, 0))
    new.values[op.result] = new.emit(nn.ReshapeOp(joined, shape))
    if shape == () and op.elements[0] in new.whole:
        new.whole[op.result] = new.whole[op.elements[0]]


def splat(op: tensor.SplatOp, new: ToNn) -> None:
    """Convert tensor.splat: a number is repeated."""
    shape = type_in_nn(op.result.type).get_shape()
    new.values[op.result] = new.emit(nn.ExpandOp(new.value(op.input), shape))


# Slices


def _numbers(
    static: DenseArrayBase[IntegerType], given: Sequence[SSAValue]
) -> list[int | SSAValue]:
    """The numbers of a list, some of which are operands."""
    rest = iter(given)
    return [next(rest) if n == DYNAMIC_INDEX else n for n in static.get_values()]


def _known(new: ToNn, numbers: Sequence[int | SSAValue]) -> list[int]:
    return [each if isinstance(each, int) else new.known(each) for each in numbers]


def _is_known(new: ToNn, numbers: Sequence[int | SSAValue]) -> bool:
    return all(isinstance(each, int) or each in new.whole for each in numbers)


def extract_slice(op: tensor.ExtractSliceOp, new: ToNn) -> None:
    """Convert tensor.extract_slice. Offsets may depend on values.

    before: %1 = tensor.extract_slice %0[0, 2] [4, 3] [1, 2] : tensor<4x8xf32> to tensor<4x3xf32>
    after:  %1 = nn.slice %0 from [0, 2] step [1, 2] size [4, 3] : (tensor<4x8xf32>) -> ...
    """
    offsets = _numbers(op.static_offsets, op.offsets)
    sizes = _known(new, _numbers(op.static_sizes, op.sizes))
    steps = _known(new, _numbers(op.static_strides, op.strides))
    source, shape = new.value(op.source), type_in_nn(op.result.type).get_shape()
    if _is_known(new, offsets):
        found = new.emit(nn.SliceOp(source, _known(new, offsets), steps, sizes))
    else:
        found = source
        for axis, (offset, size, step) in enumerate(zip(offsets, sizes, steps, strict=True)):
            if _is_known(new, [offset]):
                (start,) = _known(new, [offset])
                taken = (start, step, size)
                if taken != (0, 1, nn.shape_of(found)[axis]):
                    cut = _only(nn.shape_of(found), axis, taken)
                    found = new.emit(nn.SliceOp(found, *cut))
            else:
                rows = _rows(new, cast("SSAValue", offset), size, step)
                found = new.emit(nn.GatherOp(found, rows, axis))
    new.values[op.result] = (
        found if tuple(shape) == tuple(sizes) else new.emit(nn.ReshapeOp(found, shape))
    )


def _only(
    shape: Sequence[int], axis: int, cut: tuple[int, int, int]
) -> tuple[list[int], list[int], list[int]]:
    """Starts, steps and sizes of a slice that cuts one axis."""
    cuts = [cut if i == axis else (0, 1, n) for i, n in enumerate(shape)]
    starts, steps, sizes = zip(*cuts, strict=True)
    return list(starts), list(steps), list(sizes)


def _rows(new: ToNn, offset: SSAValue, size: int, step: int) -> SSAValue:
    """The indices of a slice along an axis: (size,), of i64."""
    counted = new.emit(nn.IotaOp(nn.tensor((size,), i64), (step,)))
    return new.emit(nn.AddOp(counted, new.value(offset)))


def insert_slice(op: tensor.InsertSliceOp, new: ToNn) -> None:
    """Convert tensor.insert_slice: updates along one axis, or a choice between two tensors.

    before: %2 = tensor.insert_slice %0 into %1[2, 0] [2, 4] [1, 1] : tensor<2x4xf32> into ...
    after:  %2 = nn.concat of what is before, the slice and what is after, axis 0
    """
    offsets = _numbers(op.static_offsets, op.offsets)
    sizes = _known(new, _numbers(op.static_sizes, op.sizes))
    steps = _known(new, _numbers(op.static_strides, op.strides))
    shape = type_in_nn(op.dest.type).get_shape()
    source = new.value(op.source)
    if nn.shape_of(source) != tuple(sizes):
        source = new.emit(nn.ReshapeOp(source, sizes))
    if tuple(sizes) == tuple(shape):
        new.values[op.result] = source
        return
    dest = new.value(op.dest)
    cut = [i for i, (n, m) in enumerate(zip(sizes, shape, strict=True)) if n != m]
    if len(cut) == 1:
        axis = cut[0]
        if not _is_known(new, offsets):
            rows = _rows(new, _as_value(new, offsets[axis]), sizes[axis], steps[axis])
            new.values[op.result] = _updated(new, source, rows, dest, axis)
            return
        start, count = _known(new, offsets)[axis], sizes[axis]
        if steps[axis] == 1:
            parts: list[SSAValue] = []
            for first, n in ((0, start), (start + count, shape[axis] - start - count)):
                if n:
                    taken = _only(shape, axis, (first, 1, n))
                    parts.append(new.emit(nn.SliceOp(dest, *taken)))
                if not first:
                    parts.append(source)
            new.values[op.result] = new.emit(nn.ConcatOp(parts, axis))
            return
    new.values[op.result] = _chosen(new, source, dest, _known(new, offsets), steps)


def _as_value(new: ToNn, number: int | SSAValue) -> SSAValue:
    return number if isinstance(number, SSAValue) else new.number(number, i64)


def _updated(new: ToNn, source: SSAValue, rows: SSAValue, dest: SSAValue, axis: int) -> SSAValue:
    """A tensor in which some rows are replaced."""
    rank, (size,) = len(nn.shape_of(dest)), nn.shape_of(rows)
    indices = new.emit(nn.ReshapeOp(rows, [size if i == axis else 1 for i in range(rank)]))
    return new.emit(nn.UpdateOp(source, indices, dest, "last", axis))


def _chosen(
    new: ToNn, source: SSAValue, dest: SSAValue, offsets: Sequence[int], steps: Sequence[int]
) -> SSAValue:
    """A tensor in which a slice along several axes is replaced: a choice at each element."""
    shape, sizes = nn.shape_of(dest), nn.shape_of(source)
    scope = Scope(new, [nn.dim(f"d{i}", n).dim for i, n in enumerate(shape)])
    along = [nn.Index(((dim, 1),)) for dim in scope.dims]
    places = [
        (each - offset).exactly(step).outside("fill")
        if step > 1
        else (each - offset).outside("fill")
        for each, offset, step in zip(along, offsets, steps, strict=True)
    ]
    spread = new.emit(nn.compute("identity", [nn.at(source, *places)], along))
    inside = new.filled(True, nn.tensor(sizes, i1))
    is_slice = new.emit(nn.compute("identity", [nn.at(inside, *places)], along))
    return new.emit(nn.SelectOp(is_slice, spread, dest))


# Single elements


def extract(op: tensor.ExtractOp, new: ToNn) -> None:
    """Convert tensor.extract outside bodies: a number, which is a tensor without axes."""
    found = new.value(op.tensor)
    for each in op.indices:
        if each in new.whole:
            shape = nn.shape_of(found)
            found = new.emit(nn.SliceOp(found, *_only(shape, 0, (new.whole[each], 1, 1))))
            found = new.emit(nn.ReshapeOp(found, shape[1:]))
        else:
            found = new.emit(nn.GatherOp(found, new.value(each), 0))
    new.values[op.result] = found
    if op.tensor in new.whole:
        new.whole[op.result] = new.whole[op.tensor]


def insert(op: tensor.InsertOp, new: ToNn) -> None:
    """Convert tensor.insert: one element is replaced."""
    dest = new.value(op.dest)
    shape = nn.shape_of(dest)
    if not shape:
        new.values[op.result] = new.value(op.scalar)
        return
    # The number of the element in the tensor seen as one row.
    place = new.number(0, i64)
    for each, size in zip(op.indices, shape, strict=True):
        wide = new.emit(nn.MulOp(place, new.number(size, i64)))
        place = new.emit(nn.AddOp(wide, new.value(each)))
    total = int(np.prod(shape))
    row = new.emit(nn.ReshapeOp(dest, (total,)))
    number = new.emit(nn.ReshapeOp(new.value(op.scalar), (1,)))
    index = new.emit(nn.ReshapeOp(place, (1,)))
    made = new.emit(nn.UpdateOp(number, index, row, "last", 0))
    new.values[op.result] = new.emit(nn.ReshapeOp(made, shape))


# Padding


def pad(op: tensor.PadOp, new: ToNn) -> None:
    """Convert tensor.pad with one number, which may depend on values.

    before: %1 = tensor.pad %0 low[1] high[2] { ^bb0(%i: index): tensor.yield %c : f32 } : ...
    after:  %1 = nn.pad "constant" %0 low [1] high [2] value 0.0 : (tensor<4xf32>) -> tensor<7xf32>
    """
    low = _known(new, _numbers(op.static_low, op.low))
    high = _known(new, _numbers(op.static_high, op.high))
    value = _padding(op.region.block, new)
    source = new.value(op.source)
    number = number_that_fills(value)
    if number is not None and (isinstance(number, bool) or number == number):
        made = new.emit(nn.PadOp(source, low, high, value=float(number)))
        new.values[op.result] = made
        return
    shape = nn.shape_of(source)
    inside = new.emit(nn.PadOp(new.filled(True, nn.tensor(shape, i1)), low, high))
    padded = new.emit(nn.PadOp(source, low, high))
    new.values[op.result] = new.emit(nn.SelectOp(inside, padded, value))


def _padding(block: Block, new: ToNn) -> SSAValue:
    """The number that a region of tensor.pad yields. Raises Uncovered if it is not one number."""
    last = block.last_op
    assert last is not None
    if any(argument.uses for argument in block.args):
        raise Uncovered("padding that depends on its place; need one number")
    for op in block.ops:
        if op is not last:
            new.convert(op)
    return new.value(last.operands[0])
