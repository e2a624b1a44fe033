"""Random numbers."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from ...ir.upstream import VerifyException
from ..source_types import shape_of
from .base import PureOp, StablehloOp, need_shape
from .enums import RngAlgorithmAttr, RngDistributionAttr


@irdl_op_definition
class RngOp(StablehloOp):
    """Random numbers of a distribution, others in each run.

    Example: %3 = "stablehlo.rng"(%0, %1, %2) <{rng_distribution =
    #stablehlo<rng_distribution UNIFORM>}> : (tensor<f32>, tensor<f32>, tensor<1xi64>) ->
    tensor<4xf32>

    Attributes:
        a: the least number, or the mean.
        b: what all numbers are below, or the standard deviation.
        shape: of the result.
        rng_distribution: the distribution.
        result: the numbers.
    """

    name = "stablehlo.rng"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    shape = operand_def(TensorType)
    rng_distribution = prop_def(RngDistributionAttr)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the shapes."""
        super().verify_()
        need_shape("a", self.a, ())
        need_shape("b", self.b, ())
        need_shape("shape", self.shape, (len(shape_of(self.result)),))


@irdl_op_definition
class RngBitGeneratorOp(PureOp):
    """Random bits that follow from a state, and the next state.

    Example: %1, %2 = "stablehlo.rng_bit_generator"(%0) <{rng_algorithm =
    #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)

    Attributes:
        initial_state: the state.
        rng_algorithm: the algorithm.
        output_state: the next state, of the state's type.
        output: the bits, as whole numbers.
    """

    name = "stablehlo.rng_bit_generator"
    initial_state = operand_def(TensorType)
    rng_algorithm = prop_def(RngAlgorithmAttr)
    output_state = result_def(TensorType)
    output = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the types of the states."""
        super().verify_()
        if self.initial_state.type != self.output_state.type:
            raise VerifyException("the next state has another type than the state")


RANDOM = (RngOp, RngBitGeneratorOp)
"""All of them."""
