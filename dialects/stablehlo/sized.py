"""Operations whose sizes are operands. Here all results have static shapes, and so say these sizes
themselves.

Each is the operation of its name without "dynamic", with the values of these operands.
"""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i32
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from ..source_types import shape_of
from .base import INTEGER, INTEGERS, PureOp, need_axes, need_element, need_length, need_shape
from .numberings import GatherAttr
from .products import Convolving


class ShapedOp(PureOp, ABC):
    """An operation with an operand that is the shape of the result.

    Attributes:
        result: of a static shape.
    """

    result = result_def(TensorType)


@irdl_op_definition
class DynamicBroadcastInDimOp(ShapedOp):
    """Repeat a tensor along new axes, and along those where it has one element.

    Example: %2 = "stablehlo.dynamic_broadcast_in_dim"(%0, %1) <{broadcast_dimensions =
    array<i64: 1>}> : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x4xf32>

    Attributes:
        operand: of any shape.
        output_dimensions: the shape of the result.
        broadcast_dimensions: the axis of the result for each axis of the operand.
        known_expanding_dimensions: axes of the operand along which it is repeated.
        known_nonexpanding_dimensions: axes of the operand along which it is not.
    """

    name = "stablehlo.dynamic_broadcast_in_dim"
    operand = operand_def(TensorType)
    output_dimensions = operand_def(TensorType)
    broadcast_dimensions = prop_def(INTEGERS)
    known_expanding_dimensions = opt_prop_def(INTEGERS)
    known_nonexpanding_dimensions = opt_prop_def(INTEGERS)

    def verify_(self) -> None:
        """Check also the number of sizes."""
        super().verify_()
        need_shape("output_dimensions", self.output_dimensions, (len(shape_of(self.result)),))


@irdl_op_definition
class DynamicReshapeOp(ShapedOp):
    """The same elements in the same order in another shape.

    Example: %2 = "stablehlo.dynamic_reshape"(%0, %1) : (tensor<2x4xf32>, tensor<1xi64>) ->
    tensor<8xf32>

    Attributes:
        operand: of any shape.
        output_shape: the shape of the result.
    """

    name = "stablehlo.dynamic_reshape"
    operand = operand_def(TensorType)
    output_shape = operand_def(TensorType)

    def verify_(self) -> None:
        """Check also the number of sizes."""
        super().verify_()
        need_shape("output_shape", self.output_shape, (len(shape_of(self.result)),))


@irdl_op_definition
class DynamicIotaOp(ShapedOp):
    """Each element's place along an axis, counted from 0.

    Example: %1 = "stablehlo.dynamic_iota"(%0) <{iota_dimension = 0 : i64}> : (tensor<1xi64>) ->
    tensor<4xi32>

    Attributes:
        output_shape: the shape of the result.
        iota_dimension: the axis.
    """

    name = "stablehlo.dynamic_iota"
    output_shape = operand_def(TensorType)
    iota_dimension = prop_def(INTEGER)

    def verify_(self) -> None:
        """Check also the number of sizes."""
        super().verify_()
        need_shape("output_shape", self.output_shape, (len(shape_of(self.result)),))


@irdl_op_definition
class DynamicPadOp(PureOp):
    """Add elements around a tensor and between its elements, or take some away at its ends.

    Example: %5 = "stablehlo.dynamic_pad"(%0, %1, %2, %3, %4) : (tensor<4xf32>, tensor<f32>,
    tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<7xf32>

    Attributes:
        operand: of any shape.
        padding_value: what new elements are, a tensor without axes.
        edge_padding_low: how many elements come before the first along each axis.
        edge_padding_high: how many come after the last.
        interior_padding: how many come between two elements.
        result: of the operand's elements.
    """

    name = "stablehlo.dynamic_pad"
    operand = operand_def(TensorType)
    padding_value = operand_def(TensorType)
    edge_padding_low = operand_def(TensorType)
    edge_padding_high = operand_def(TensorType)
    interior_padding = operand_def(TensorType)
    result = result_def(TensorType)


@irdl_op_definition
class RealDynamicSliceOp(PureOp):
    """Every stride-th element from a start to a limit, on each axis.

    Example: %4 = "stablehlo.real_dynamic_slice"(%0, %1, %2, %3) : (tensor<4xf32>, tensor<1xi64>,
    tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>

    Attributes:
        operand: of any shape.
        start_indices: the first element along each axis.
        limit_indices: the element after the last one.
        strides: from one element to the next.
        result: of the operand's elements.
    """

    name = "stablehlo.real_dynamic_slice"
    operand = operand_def(TensorType)
    start_indices = operand_def(TensorType)
    limit_indices = operand_def(TensorType)
    strides = operand_def(TensorType)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the number of indices."""
        super().verify_()
        rank = len(shape_of(self.operand))
        need_length("the shape of the result", shape_of(self.result), rank)
        for what, value in (
            ("start_indices", self.start_indices),
            ("limit_indices", self.limit_indices),
            ("strides", self.strides),
        ):
            need_shape(what, value, (rank,))


@irdl_op_definition
class DynamicGatherOp(PureOp):
    """Slices of a tensor, from places that another tensor holds.

    Example: %3 = "stablehlo.dynamic_gather"(%0, %1, %2) <{dimension_numbers = #stablehlo.gather<
    offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    indices_are_sorted = false}> : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<2xi32>) ->
    tensor<3x4xf32>

    Attributes:
        operand: the tensor.
        start_indices: the places.
        slice_sizes: the size of a slice along each axis of the operand.
        dimension_numbers: what the axes are for.
        indices_are_sorted: whether the places increase.
        result: the slices.
    """

    name = "stablehlo.dynamic_gather"
    operand = operand_def(TensorType)
    start_indices = operand_def(TensorType)
    slice_sizes = operand_def(TensorType)
    dimension_numbers = prop_def(GatherAttr)
    indices_are_sorted = opt_prop_def(IntegerAttr.constr(i1))
    result = result_def(TensorType)


@irdl_op_definition
class DynamicConvOp(Convolving):
    """The sums of products of a kernel with the elements of an image under it, as it moves.

    Example: %3 = "stablehlo.dynamic_conv"(%0, %1, %2) <{batch_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>,
    feature_group_count = 1 : i64}> :
    (tensor<1x2x8xf32>, tensor<4x2x3xf32>, tensor<1x2xi64>) -> tensor<1x4x6xf32>

    Attributes:
        lhs: the image.
        rhs: the kernel.
        padding: the zeros before and after the image, along each spatial axis; two numbers for
            each.
        result: the sums.
    """

    name = "stablehlo.dynamic_conv"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    padding = operand_def(TensorType)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the number of paddings."""
        super().verify_()
        need_shape("padding", self.padding, (self.spatial, 2))


@irdl_op_definition
class GetDimensionSizeOp(PureOp):
    """The size of an axis.

    Example: %1 = "stablehlo.get_dimension_size"(%0) <{dimension = 0 : i64}> : (tensor<4xf32>) ->
    tensor<i32>

    Attributes:
        operand: of any shape.
        dimension: the axis.
        result: the size, without axes.
    """

    name = "stablehlo.get_dimension_size"
    operand = operand_def(TensorType)
    dimension = prop_def(INTEGER)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the axis and the type of the result."""
        super().verify_()
        need_axes("dimension", [self.dimension.value.data], len(shape_of(self.operand)))
        need_shape("the result", self.result, ())
        need_element("the result", self.result, i32)


SIZED = (
    DynamicBroadcastInDimOp,
    DynamicReshapeOp,
    DynamicIotaOp,
    DynamicPadOp,
    RealDynamicSliceOp,
    DynamicGatherOp,
    DynamicConvOp,
    GetDimensionSizeOp,
)
"""All of them."""
