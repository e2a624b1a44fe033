"""Operations of stablehlo that move elements, added to a program that is changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.ir import SSAValue

from ...dialects import stablehlo
from ...dialects.source_types import dtype_of_elements, element_of, shape_of, tensor
from .splitting import Splitting


def integers(values: Sequence[int]) -> DenseArrayBase:
    """A list of numbers as a property."""
    return DenseArrayBase.from_list(i64, list(values))


def reshape(new: Splitting, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """A value in another shape."""
    if shape_of(value) == tuple(shape):
        return value
    type_ = tensor(shape, element_of(value))
    return new.add(stablehlo.ReshapeOp.create(operands=[value], result_types=[type_]))


def transpose(new: Splitting, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """A value with its axes in another order."""
    if list(order) == list(range(len(order))):
        return value
    type_ = tensor([shape_of(value)[a] for a in order], element_of(value))
    properties = {"permutation": integers(order)}
    op = stablehlo.TransposeOp.create(operands=[value], result_types=[type_], properties=properties)
    return new.add(op)


def concatenate(new: Splitting, values: Sequence[SSAValue], axis: int) -> SSAValue:
    """Values one after the other along an axis."""
    if len(values) == 1:
        return values[0]
    shape = list(shape_of(values[0]))
    shape[axis] = sum(shape_of(each)[axis] for each in values)
    op = stablehlo.ConcatenateOp.create(
        operands=list(values),
        result_types=[tensor(shape, element_of(values[0]))],
        properties={"dimension": IntegerAttr(axis, 64)},
    )
    return new.add(op)


def box(new: Splitting, value: SSAValue, axis: int, start: int, end: int) -> SSAValue:
    """The elements of a value along an axis, from `start` to before `end`."""
    shape = shape_of(value)
    if (start, end) == (0, shape[axis]):
        return value
    starts = [start if a == axis else 0 for a in range(len(shape))]
    ends = [end if a == axis else n for a, n in enumerate(shape)]
    sizes = [b - a for a, b in zip(starts, ends, strict=True)]
    op = stablehlo.SliceOp.create(
        operands=[value],
        result_types=[tensor(sizes, element_of(value))],
        properties={
            "start_indices": integers(starts),
            "limit_indices": integers(ends),
            "strides": integers([1] * len(shape)),
        },
    )
    return new.add(op)


def pad(new: Splitting, value: SSAValue, axis: int, count: int) -> SSAValue:
    """A value with zeros after its elements along an axis."""
    shape = shape_of(value)
    zero = new.add(stablehlo.ConstantOp(np.zeros((), dtype_of_elements(value))))
    after = [count if a == axis else 0 for a in range(len(shape))]
    sizes = [n + more for n, more in zip(shape, after, strict=True)]
    none = integers([0] * len(shape))
    op = stablehlo.PadOp.create(
        operands=[value, zero],
        result_types=[tensor(sizes, element_of(value))],
        properties={
            "edge_padding_low": none,
            "edge_padding_high": integers(after),
            "interior_padding": none,
        },
    )
    return new.add(op)


def reverse(new: Splitting, value: SSAValue, axis: int) -> SSAValue:
    """A value whose elements along an axis are in the other order."""
    op = stablehlo.ReverseOp.create(
        operands=[value], result_types=[value.type], properties={"dimensions": integers([axis])}
    )
    return new.add(op)


def repeat(new: Splitting, value: SSAValue, axes: Sequence[int], shape: Sequence[int]) -> SSAValue:
    """A value repeated to a shape. Its own axes become the given axes of the shape."""
    op = stablehlo.BroadcastInDimOp.create(
        operands=[value],
        result_types=[tensor(shape, element_of(value))],
        properties={"broadcast_dimensions": integers(axes)},
    )
    return new.add(op)


def product(new: Splitting, value: SSAValue, matrix: SSAValue, axis: int) -> SSAValue:
    """The products of the rows of a value along an axis with a matrix. They lie along a new last
    axis, and this one is gone."""
    shape = shape_of(value)
    made = [*shape[:axis], *shape[axis + 1 :], shape_of(matrix)[1]]
    axes = stablehlo.DotAxes((), (), (axis,), (0,))
    op = stablehlo.DotGeneralOp.create(
        operands=[value, matrix],
        result_types=[tensor(made, element_of(value))],
        properties={"dot_dimension_numbers": stablehlo.DotAttr(axes)},
    )
    return new.add(op)
