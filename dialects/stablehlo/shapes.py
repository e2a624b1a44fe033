"""Operations that compute nothing: they move elements, repeat them, or give them another shape."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_operand_def

from ...ir.upstream import VerifyException
from ..source_types import shape_of
from .base import (
    INTEGER,
    INTEGERS,
    PureOp,
    integers_of,
    need_axes,
    need_length,
    need_same_element,
    need_shape,
)


@irdl_op_definition
class BroadcastInDimOp(PureOp):
    """Repeat a tensor along new axes, and along those where it has one element.

    Example: %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 1>}> :
    (tensor<4xf32>) -> tensor<2x4xf32>

    Attributes:
        operand: of any shape.
        broadcast_dimensions: the axis of the result for each axis of the operand.
        result: of the operand's elements.
    """

    name = "stablehlo.broadcast_in_dim"
    operand = operand_def(TensorType)
    broadcast_dimensions = prop_def(INTEGERS)
    result = result_def(TensorType)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axis of the result for each axis of the operand."""
        return integers_of(self.broadcast_dimensions, ())

    def verify_(self) -> None:
        """Check also that the operand fits the axes."""
        super().verify_()
        shape, result, axes = shape_of(self.operand), shape_of(self.result), self.axes
        need_same_element("the result", self.result, self.operand)
        need_length("broadcast_dimensions", axes, len(shape))
        need_axes("broadcast_dimensions", axes, len(result))
        for i, (size, axis) in enumerate(zip(shape, axes, strict=True)):
            if size not in (1, result[axis]):
                raise VerifyException(
                    f"axis {i} has {size} elements, axis {axis} of the result {result[axis]}; need "
                    "as many, or 1"
                )


@irdl_op_definition
class BroadcastOp(PureOp):
    """Repeat a tensor along new axes in front.

    Example: %1 = "stablehlo.broadcast"(%0) <{broadcast_sizes = array<i64: 2>}> :
    (tensor<4xf32>) -> tensor<2x4xf32>

    Attributes:
        operand: of any shape.
        broadcast_sizes: of the new axes.
        result: of the operand's elements.
    """

    name = "stablehlo.broadcast"
    operand = operand_def(TensorType)
    broadcast_sizes = prop_def(INTEGERS)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the shape."""
        super().verify_()
        sizes = integers_of(self.broadcast_sizes, ())
        need_shape("the result", self.result, (*sizes, *shape_of(self.operand)))
        need_same_element("the result", self.result, self.operand)


@irdl_op_definition
class ReshapeOp(PureOp):
    """The same elements in the same order in another shape.

    Example: %1 = "stablehlo.reshape"(%0) : (tensor<2x4xf32>) -> tensor<8xf32>

    Attributes:
        operand: of any shape.
        result: of as many elements of the operand's type.
    """

    name = "stablehlo.reshape"
    operand = operand_def(TensorType)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the number of elements."""
        super().verify_()
        need_same_element("the result", self.result, self.operand)
        if prod(shape_of(self.operand)) != prod(shape_of(self.result)):
            raise VerifyException(f"{self.operand.type} has other elements than {self.result.type}")


@irdl_op_definition
class TransposeOp(PureOp):
    """Reorder axes: axis i of the result is axis permutation[i] of the operand.

    Example: %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0>}> :
    (tensor<2x4xf32>) -> tensor<4x2xf32>

    Attributes:
        operand: of any shape.
        permutation: each of its axes once.
        result: of the operand's elements.
    """

    name = "stablehlo.transpose"
    operand = operand_def(TensorType)
    permutation = prop_def(INTEGERS)
    result = result_def(TensorType)

    @property
    def axes(self) -> tuple[int, ...]:
        """The permutation."""
        return integers_of(self.permutation, ())

    def verify_(self) -> None:
        """Check also that each axis is there once."""
        super().verify_()
        shape = shape_of(self.operand)
        need_length("permutation", self.axes, len(shape))
        need_axes("permutation", self.axes, len(shape))
        need_shape("the result", self.result, [shape[axis] for axis in self.axes])
        need_same_element("the result", self.result, self.operand)


@irdl_op_definition
class SliceOp(PureOp):
    """Every stride-th element from a start to a limit, on each axis.

    Example: %1 = "stablehlo.slice"(%0) <{start_indices = array<i64: 1>,
    limit_indices = array<i64: 4>, strides = array<i64: 2>}> : (tensor<4xf32>) -> tensor<2xf32>

    Attributes:
        operand: of any shape.
        start_indices: the first element.
        limit_indices: the element after the last one.
        strides: from one element to the next, 1 or more.
        result: of the operand's elements.
    """

    name = "stablehlo.slice"
    operand = operand_def(TensorType)
    start_indices = prop_def(INTEGERS)
    limit_indices = prop_def(INTEGERS)
    strides = prop_def(INTEGERS)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also that all elements exist."""
        super().verify_()
        shape = shape_of(self.operand)
        starts = integers_of(self.start_indices, ())
        limits, strides = integers_of(self.limit_indices, ()), integers_of(self.strides, ())
        for what, each in (("starts", starts), ("limits", limits), ("strides", strides)):
            need_length(what, each, len(shape))
        for i, n in enumerate(shape):
            if not 0 <= starts[i] <= limits[i] <= n or strides[i] < 1:
                raise VerifyException(
                    f"axis {i}: from {starts[i]} to {limits[i]} of {n} by {strides[i]}"
                )
        sizes = [-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True)]
        need_shape("the result", self.result, sizes)
        need_same_element("the result", self.result, self.operand)


@irdl_op_definition
class ConcatenateOp(PureOp):
    """Put tensors next to each other along an axis.

    Example: %2 = "stablehlo.concatenate"(%0, %1) <{dimension = 0 : i64}> :
    (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>

    Attributes:
        inputs: one tensor or more, of equal sizes but along the axis.
        dimension: the axis.
        result: of the tensors' elements.
    """

    name = "stablehlo.concatenate"
    inputs = var_operand_def(TensorType)
    dimension = prop_def(INTEGER)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the sizes."""
        super().verify_()
        if not self.inputs:
            raise VerifyException("no tensors; need one or more")
        shape, axis = shape_of(self.result), self.dimension.value.data
        need_axes("dimension", [axis], len(shape))
        for i, value in enumerate(self.inputs):
            own = list(shape)
            own[axis] = (*shape_of(value), *shape)[axis]
            need_shape(f"tensor {i}", value, own)
            need_same_element(f"tensor {i}", value, self.result)
        if sum(shape_of(value)[axis] for value in self.inputs) != shape[axis]:
            raise VerifyException(f"axis {axis} of the result has another size than all tensors")


@irdl_op_definition
class PadOp(PureOp):
    """Add elements around a tensor and between its elements, or take some away at its ends.

    Example: %2 = "stablehlo.pad"(%0, %1) <{edge_padding_low = array<i64: 1>,
    edge_padding_high = array<i64: -1>, interior_padding = array<i64: 1>}> :
    (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>

    Attributes:
        operand: of any shape.
        padding_value: what new elements are, a tensor without axes.
        edge_padding_low: how many elements come before the first; fewer than 0 take some away.
        edge_padding_high: how many come after the last.
        interior_padding: how many come between two elements.
        result: of the operand's elements.
    """

    name = "stablehlo.pad"
    operand = operand_def(TensorType)
    padding_value = operand_def(TensorType)
    edge_padding_low = prop_def(INTEGERS)
    edge_padding_high = prop_def(INTEGERS)
    interior_padding = prop_def(INTEGERS)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the sizes."""
        super().verify_()
        shape = shape_of(self.operand)
        low, high = integers_of(self.edge_padding_low, ()), integers_of(self.edge_padding_high, ())
        between = integers_of(self.interior_padding, ())
        for what, each in (("low", low), ("high", high), ("interior", between)):
            need_length(what, each, len(shape))
        if min(between, default=0) < 0:
            raise VerifyException(f"interior padding {list(between)}; need 0 or more")
        sizes = [n + max(n - 1, 0) * between[i] + low[i] + high[i] for i, n in enumerate(shape)]
        need_shape("the result", self.result, sizes)
        need_shape("padding_value", self.padding_value, ())
        need_same_element("padding_value", self.padding_value, self.operand)
        need_same_element("the result", self.result, self.operand)


@irdl_op_definition
class ReverseOp(PureOp):
    """The elements in reverse order along some axes.

    Example: %1 = "stablehlo.reverse"(%0) <{dimensions = array<i64: 0>}> :
    (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        operand: of any shape.
        dimensions: the axes.
        result: of the operand's type.
    """

    name = "stablehlo.reverse"
    operand = operand_def(TensorType)
    dimensions = prop_def(INTEGERS)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the axes."""
        super().verify_()
        need_axes("dimensions", integers_of(self.dimensions, ()), len(shape_of(self.operand)))
        need_shape("the result", self.result, shape_of(self.operand))
        need_same_element("the result", self.result, self.operand)


SHAPES = (
    BroadcastInDimOp,
    BroadcastOp,
    ReshapeOp,
    TransposeOp,
    SliceOp,
    ConcatenateOp,
    PadOp,
    ReverseOp,
)
"""All of them."""
