"""Operations that multiply and sum: products of tensors and convolutions."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)

from ...ir.upstream import VerifyException
from ..source_types import shape_of
from .base import (
    FLAGS,
    INTEGER,
    INTEGERS,
    PureOp,
    integers_of,
    need_axes,
    need_length,
    need_shape,
    pairs_of,
    window_places,
)
from .enums import PrecisionAttr
from .numberings import ConvAttr, DotAttr

PRECISIONS = ArrayAttr[PrecisionAttr]
"""The precision asked of each operand."""


@irdl_op_definition
class DotGeneralOp(PureOp):
    """Products of two tensors, summed along some axes.

    The axes of the result are the common ones, then those that are left of the first tensor, then
    those of the second.

    Example: %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers =
    #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> :
    (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>

    Attributes:
        lhs: the first tensor.
        rhs: the second tensor.
        dot_dimension_numbers: which axes are common, and which are summed along.
        precision_config: how exact the products are.
        algorithm: how the machine is to compute them.
        result: the sums.
    """

    name = "stablehlo.dot_general"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    dot_dimension_numbers = prop_def(DotAttr)
    precision_config = opt_prop_def(PRECISIONS)
    algorithm = opt_prop_def(Attribute)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the sizes of axes."""
        super().verify_()
        axes, lhs, rhs = self.dot_dimension_numbers.data, shape_of(self.lhs), shape_of(self.rhs)
        left = (*axes.lhs_batching_dimensions, *axes.lhs_contracting_dimensions)
        right = (*axes.rhs_batching_dimensions, *axes.rhs_contracting_dimensions)
        need_axes("axes of lhs", left, len(lhs))
        need_axes("axes of rhs", right, len(rhs))
        batch = axes.lhs_batching_dimensions
        need_length("rhs_batching_dimensions", axes.rhs_batching_dimensions, len(batch))
        need_length("axes of rhs", right, len(left))
        for a, b in zip(left, right, strict=True):
            if lhs[a] != rhs[b]:
                raise VerifyException(
                    f"axis {a} of lhs has {lhs[a]} elements, axis {b} of rhs {rhs[b]}"
                )
        shape = (
            *(lhs[a] for a in batch),
            *(n for a, n in enumerate(lhs) if a not in left),
            *(n for b, n in enumerate(rhs) if b not in right),
        )
        need_shape("the result", self.result, shape)


@irdl_op_definition
class DotOp(PureOp):
    """The product of two matrices or vectors.

    Example: %2 = "stablehlo.dot"(%0, %1) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>

    Attributes:
        lhs: a matrix or a vector.
        rhs: a matrix or a vector, with as many rows as lhs has columns.
        precision_config: how exact the products are.
        result: the sums.
    """

    name = "stablehlo.dot"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    precision_config = opt_prop_def(PRECISIONS)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the sizes."""
        super().verify_()
        lhs, rhs = shape_of(self.lhs), shape_of(self.rhs)
        if not (len(lhs) in (1, 2) and len(rhs) in (1, 2)) or lhs[-1] != rhs[0]:
            raise VerifyException(f"shapes {list(lhs)} and {list(rhs)} have no product")
        need_shape("the result", self.result, (*lhs[:-1], *rhs[1:]))


class Convolving(PureOp, ABC):
    """A convolution. Its first operands are the image and the kernel.

    Attributes:
        window_strides: from one place of the kernel to the next, along each spatial axis; 1 if
            absent.
        lhs_dilation: from one element of the image to the next, with zeros between; 1 if absent.
        rhs_dilation: the same for the kernel.
        window_reversal: whether the kernel is reversed along each spatial axis; not if absent.
        dimension_numbers: what the axes are for.
        feature_group_count: the number of groups that the features are in.
        batch_group_count: the number of groups that the batch is in.
        precision_config: how exact the products are.
    """

    window_strides = opt_prop_def(INTEGERS)
    lhs_dilation = opt_prop_def(INTEGERS)
    rhs_dilation = opt_prop_def(INTEGERS)
    window_reversal = opt_prop_def(FLAGS)
    dimension_numbers = prop_def(ConvAttr)
    feature_group_count = prop_def(INTEGER)
    batch_group_count = prop_def(INTEGER)
    precision_config = opt_prop_def(PRECISIONS)

    def verify_(self) -> None:
        """Check also the sizes that do not depend on the padding."""
        super().verify_()
        axes, spatial = self.dimension_numbers.data, self.spatial
        image, kernel, result = map(shape_of, (*self.operands[:2], *self.results))
        for what, shape in (("lhs", image), ("rhs", kernel), ("result", result)):
            need_length(f"the shape of {what}", shape, spatial + 2)
        strides, wide = self.strides, (self.dilations, self.kernel_dilations)
        for what, values in (("window_strides", strides), ("dilation", wide[0] + wide[1])):
            if min(values, default=1) < 1:
                raise VerifyException(f"{what} {list(values)}; need 1 or more")
        need_length("window_strides", strides, spatial)
        need_length("dilations", wide[0], spatial)
        need_length("dilations", wide[1], spatial)
        need_length("window_reversal", self.reversals, spatial)
        groups, batches = self.groups
        features, taken, made = image[axes.image[1]], *(kernel[a] for a in axes.kernel[:2])
        batch = image[axes.image[0]]
        if min(groups, batches) < 1 or (groups > 1 and batches > 1):
            raise VerifyException(f"{groups} groups of features and {batches} of the batch")
        if features != taken * groups or made % (groups * batches) or batch % batches:
            raise VerifyException(
                f"{features} features and {batch} images for a kernel from {taken} to {made} "
                f"features, in {groups} and {batches} groups"
            )
        sizes = [*result]
        sizes[axes.result[0]], sizes[axes.result[1]] = batch // batches, made
        need_shape("the result", self.results[0], sizes)

    @property
    def spatial(self) -> int:
        """The number of spatial axes."""
        return len(self.dimension_numbers.data.image[2])

    @property
    def strides(self) -> tuple[int, ...]:
        """From one place of the kernel to the next."""
        return integers_of(self.window_strides, (1,) * self.spatial)

    @property
    def dilations(self) -> tuple[int, ...]:
        """From one element of the image to the next."""
        return integers_of(self.lhs_dilation, (1,) * self.spatial)

    @property
    def kernel_dilations(self) -> tuple[int, ...]:
        """From one element of the kernel to the next."""
        return integers_of(self.rhs_dilation, (1,) * self.spatial)

    @property
    def reversals(self) -> tuple[bool, ...]:
        """Whether the kernel is reversed along each axis."""
        return tuple(map(bool, integers_of(self.window_reversal, (0,) * self.spatial)))

    @property
    def groups(self) -> tuple[int, int]:
        """The number of groups of features, and of groups of the batch."""
        return self.feature_group_count.value.data, self.batch_group_count.value.data


@irdl_op_definition
class ConvolutionOp(Convolving):
    """The sums of products of a kernel with the elements of an image under it, as it moves.

    Example: %2 = "stablehlo.convolution"(%0, %1) <{batch_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>,
    feature_group_count = 1 : i64}> :
    (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>

    Attributes:
        lhs: the image.
        rhs: the kernel.
        padding: the zeros before and after the image, along each spatial axis; fewer than 0 take
            elements away; none if absent.
        result: the sums.
    """

    name = "stablehlo.convolution"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    padding = opt_prop_def(DenseIntOrFPElementsAttr)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the sizes of the spatial axes."""
        super().verify_()
        axes, pads = self.dimension_numbers.data, pairs_of(self.padding, self.spatial)
        image, kernel, sizes = shape_of(self.lhs), shape_of(self.rhs), [*shape_of(self.result)]
        for i, (a, k, r) in enumerate(
            zip(axes.image[2], axes.kernel[2], axes.result[2], strict=True)
        ):
            sizes[r] = window_places(
                image[a],
                kernel[k],
                self.strides[i],
                pads[i],
                dilation=self.dilations[i],
                reach=self.kernel_dilations[i],
            )
        need_shape("the result", self.result, sizes)


PRODUCTS = (DotGeneralOp, DotOp, ConvolutionOp)
"""All of them."""
