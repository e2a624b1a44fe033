"""Batch normalisation."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import FloatAttr, TensorType, f32
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from ..source_types import shape_of
from .base import INTEGER, PureOp, need_axes, need_same_element, need_shape


class BatchNormOp(PureOp, ABC):
    """Batch normalisation, along one axis of features.

    The first operand is the tensor.

    Attributes:
        epsilon: added to the variance.
        feature_index: the axis.
    """

    epsilon = prop_def(FloatAttr.constr(f32))
    feature_index = prop_def(INTEGER)

    @property
    def axis(self) -> int:
        """The axis of the features."""
        return self.feature_index.value.data

    def verify_(self) -> None:
        """Check also the sizes."""
        super().verify_()
        shape = shape_of(self.operands[0])
        need_axes("feature_index", [self.axis], len(shape))
        for i, value in enumerate((*self.operands, *self.results)):
            whole = len(shape_of(value)) == len(shape) > 1
            need_shape(f"value {i}", value, shape if whole else shape[self.axis :][:1])
            need_same_element(f"value {i}", value, self.operands[0])


@irdl_op_definition
class BatchNormInferenceOp(BatchNormOp):
    """scale * (a - mean) / sqrt(variance + epsilon) + offset.

    Example: %5 = "stablehlo.batch_norm_inference"(%0, %1, %2, %3, %4) <{epsilon = 1.0e-05 : f32,
    feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>,
    tensor<3xf32>) -> tensor<2x3xf32>

    Attributes:
        operand: a.
        scale: one number for each feature.
        offset: one number for each feature.
        mean: one number for each feature.
        variance: one number for each feature.
        result: of the operand's type.
    """

    name = "stablehlo.batch_norm_inference"
    operand = operand_def(TensorType)
    scale = operand_def(TensorType)
    offset = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    result = result_def(TensorType)


@irdl_op_definition
class BatchNormTrainingOp(BatchNormOp):
    """The same with the mean and the variance of the tensor itself, which are results too.

    Example: %3, %4, %5 = "stablehlo.batch_norm_training"(%0, %1, %2) <{epsilon = 1.0e-05 : f32,
    feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) ->
    (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)

    Attributes:
        operand: the tensor.
        scale: one number for each feature.
        offset: one number for each feature.
        output: of the operand's type.
        batch_mean: one number for each feature.
        batch_var: one number for each feature.
    """

    name = "stablehlo.batch_norm_training"
    operand = operand_def(TensorType)
    scale = operand_def(TensorType)
    offset = operand_def(TensorType)
    output = result_def(TensorType)
    batch_mean = result_def(TensorType)
    batch_var = result_def(TensorType)


@irdl_op_definition
class BatchNormGradOp(BatchNormOp):
    """The gradients of a batch normalisation by the statistics of its tensor.

    Example: %5, %6, %7 = "stablehlo.batch_norm_grad"(%0, %1, %2, %3, %4)
    <{epsilon = 1.0e-05 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>,
    tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>,
    tensor<3xf32>)

    Attributes:
        operand: the tensor.
        scale: one number for each feature.
        mean: of the operand, one number for each feature.
        variance: of the operand, one number for each feature.
        grad_output: the gradient of the normalised tensor.
        grad_operand: the gradient of the operand.
        grad_scale: the gradient of the scale.
        grad_offset: the gradient of the offset.
    """

    name = "stablehlo.batch_norm_grad"
    operand = operand_def(TensorType)
    scale = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    grad_output = operand_def(TensorType)
    grad_operand = result_def(TensorType)
    grad_scale = result_def(TensorType)
    grad_offset = result_def(TensorType)


NORMALISE = (BatchNormInferenceOp, BatchNormTrainingOp, BatchNormGradOp)
"""All of them."""
