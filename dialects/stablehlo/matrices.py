"""Operations on matrices in the last two axes: factors, and systems of equations."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, TensorType
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from ...ir.upstream import VerifyException
from ..source_types import shape_of
from .base import PureOp, need_same_element, need_shape
from .enums import TransposeAttr


@irdl_op_definition
class CholeskyOp(PureOp):
    """The triangular factors L of positive definite matrices a = L L^H.

    L^H is the conjugate transpose of L, which for floats is the transpose.

    Example: %1 = "stablehlo.cholesky"(%0) <{lower = true}> : (tensor<2x4x4xf32>) ->
    tensor<2x4x4xf32>

    Attributes:
        a: the matrices. Only the triangle of the result is read.
        lower: L is the result; L^H if this is false or absent.
        result: the factors. Their other triangles may hold anything; abele makes them 0.
    """

    name = "stablehlo.cholesky"
    a = operand_def(TensorType)
    lower = opt_prop_def(BoolAttr)
    result = result_def(TensorType)

    @property
    def is_lower(self) -> bool:
        """Whether L is the result, and not L^H."""
        return self.lower is not None and bool(self.lower)

    def verify_(self) -> None:
        """Check also the sizes."""
        super().verify_()
        shape = shape_of(self.a)
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise VerifyException(f"a has shape {list(shape)}; need two equal last axes")
        need_shape("the result", self.result, shape)
        need_same_element("the result", self.result, self.a)


@irdl_op_definition
class TriangularSolveOp(PureOp):
    """The solutions x of systems of equations op(a) x = b, or x op(a) = b, where a is triangular.

    Example: %2 = "stablehlo.triangular_solve"(%0, %1) <{left_side = true, lower = true,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> :
    (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>

    Attributes:
        a: the matrices. Only one triangle is read.
        b: the right sides.
        left_side: a is on the left.
        lower: the lower triangle is read.
        unit_diagonal: the diagonal counts as 1.
        transpose_a: whether op transposes a, and conjugates its elements too.
        result: the solutions.
    """

    name = "stablehlo.triangular_solve"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    left_side = prop_def(BoolAttr)
    lower = prop_def(BoolAttr)
    unit_diagonal = prop_def(BoolAttr)
    transpose_a = prop_def(TransposeAttr)
    result = result_def(TensorType)

    @property
    def is_turned(self) -> bool:
        """Whether a is transposed, with its elements conjugated or not."""
        return self.transpose_a.data in ("TRANSPOSE", "ADJOINT")

    def verify_(self) -> None:
        """Check also the sizes."""
        super().verify_()
        square, shape = shape_of(self.a), shape_of(self.b)
        rank, axis = len(square), -2 if self.left_side else -1
        is_square = rank > 1 and square[-1] == square[-2]
        fits = is_square and len(shape) == rank and shape[:-2] == square[:-2]
        if not fits or shape[axis] != square[-1]:
            raise VerifyException(
                f"a has shape {list(square)} and b {list(shape)}; need square matrices, and right"
                " sides that fit them"
            )
        if self.transpose_a.data == "TRANSPOSE_INVALID":
            raise VerifyException("transpose_a is TRANSPOSE_INVALID; need another word")
        need_same_element("b", self.b, self.a)
        need_shape("the result", self.result, shape)
        need_same_element("the result", self.result, self.b)


MATRICES = (CholeskyOp, TriangularSolveOp)
