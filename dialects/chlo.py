"""The functions that StableHLO leaves to its client dialect: special functions, and the largest
elements of rows.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from ..ir.upstream import VerifyException
from .nn.base import INTEGER, shape_of
from .stablehlo.base import PureOp, need_element, need_same_element, need_shape
from .stablehlo.elementwise import BinaryOp, PredicateOp, UnaryOp


@irdl_op_definition
class AcosOp(UnaryOp):
    """The angle, in radians, whose cosine is a.

    Example: %1 = "chlo.acos"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.acos"


@irdl_op_definition
class AcoshOp(UnaryOp):
    """The number whose hyperbolic cosine is a.

    Example: %1 = "chlo.acosh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.acosh"


@irdl_op_definition
class AsinOp(UnaryOp):
    """The angle, in radians, whose sine is a.

    Example: %1 = "chlo.asin"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.asin"


@irdl_op_definition
class AsinhOp(UnaryOp):
    """The number whose hyperbolic sine is a.

    Example: %1 = "chlo.asinh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.asinh"


@irdl_op_definition
class AtanOp(UnaryOp):
    """The angle, in radians, whose tangent is a.

    Example: %1 = "chlo.atan"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.atan"


@irdl_op_definition
class AtanhOp(UnaryOp):
    """The number whose hyperbolic tangent is a.

    Example: %1 = "chlo.atanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.atanh"


@irdl_op_definition
class BesselI1eOp(UnaryOp):
    """The modified Bessel function of order 1 of a, times exp(-|a|).

    Example: %1 = "chlo.bessel_i1e"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.bessel_i1e"


@irdl_op_definition
class ConjOp(UnaryOp):
    """The complex number a with the other imaginary part; a itself if it is a float.

    Example: %1 = "chlo.conj"(%0) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    """

    name = "chlo.conj"


@irdl_op_definition
class CoshOp(UnaryOp):
    """The hyperbolic cosine of a.

    Example: %1 = "chlo.cosh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.cosh"


@irdl_op_definition
class DigammaOp(UnaryOp):
    """The derivative of the logarithm of the gamma function at a.

    Example: %1 = "chlo.digamma"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.digamma"


@irdl_op_definition
class ErfOp(UnaryOp):
    """The error function of a.

    Example: %1 = "chlo.erf"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.erf"


@irdl_op_definition
class ErfInvOp(UnaryOp):
    """The number whose error function is a.

    Example: %1 = "chlo.erf_inv"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.erf_inv"


@irdl_op_definition
class ErfcOp(UnaryOp):
    """1 minus the error function of a, with all digits where that is small.

    Example: %1 = "chlo.erfc"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.erfc"


@irdl_op_definition
class LgammaOp(UnaryOp):
    """The logarithm of the magnitude of the gamma function of a.

    Example: %1 = "chlo.lgamma"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.lgamma"


@irdl_op_definition
class SinhOp(UnaryOp):
    """The hyperbolic sine of a.

    Example: %1 = "chlo.sinh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.sinh"


@irdl_op_definition
class SquareOp(UnaryOp):
    """a times a.

    Example: %1 = "chlo.square"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.square"


@irdl_op_definition
class TanOp(UnaryOp):
    """The tangent of a, in radians.

    Example: %1 = "chlo.tan"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.tan"


@irdl_op_definition
class IsInfOp(PredicateOp):
    """Whether a is infinity or -infinity.

    Example: %1 = "chlo.is_inf"(%0) : (tensor<4xf32>) -> tensor<4xi1>
    """

    name = "chlo.is_inf"


@irdl_op_definition
class IsNegInfOp(PredicateOp):
    """Whether a is -infinity.

    Example: %1 = "chlo.is_neg_inf"(%0) : (tensor<4xf32>) -> tensor<4xi1>
    """

    name = "chlo.is_neg_inf"


@irdl_op_definition
class IsPosInfOp(PredicateOp):
    """Whether a is infinity.

    Example: %1 = "chlo.is_pos_inf"(%0) : (tensor<4xf32>) -> tensor<4xi1>
    """

    name = "chlo.is_pos_inf"


@irdl_op_definition
class NextAfterOp(BinaryOp):
    """The next number after a towards b; b if they are equal.

    Example: %2 = "chlo.next_after"(%0, %1) :
    (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.next_after"


@irdl_op_definition
class PolygammaOp(BinaryOp):
    """The derivative of order a of the digamma function at b.

    Example: %2 = "chlo.polygamma"(%0, %1) :
    (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.polygamma"


@irdl_op_definition
class ZetaOp(BinaryOp):
    """The Hurwitz zeta function of a and b: the sum of (b + k)^-a over k from 0 on.

    Example: %2 = "chlo.zeta"(%0, %1) :
    (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "chlo.zeta"


@irdl_op_definition
class TopKOp(PureOp):
    """The largest elements along the last axis, from the largest on, and their indices.

    NaN counts as larger than any number. Of equal elements, the first one comes first.

    Example: %1, %2 = "chlo.top_k"(%0) <{k = 2 : i64}> : (tensor<3x8xf32>) ->
    (tensor<3x2xf32>, tensor<3x2xi32>)

    Attributes:
        operand: of any shape with an axis.
        k: the number of elements.
        values: the elements.
        indices: of i32.
    """

    name = "chlo.top_k"
    operand = operand_def(TensorType)
    k = prop_def(INTEGER)
    values = result_def(TensorType)
    indices = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the shapes."""
        super().verify_()
        *outer, size = shape_of(self.operand) or (0,)
        count = self.k.value.data
        if not shape_of(self.operand) or not 0 <= count <= size:
            raise VerifyException(f"k {count} of {list(shape_of(self.operand))}; need 0 to {size}")
        for what, value in (("values", self.values), ("indices", self.indices)):
            need_shape(what, value, (*outer, count))
        need_same_element("values", self.values, self.operand)
        need_element("indices", self.indices, i32)


CHLO = Dialect(
    "chlo",
    [
        AcosOp,
        AcoshOp,
        AsinOp,
        AsinhOp,
        AtanOp,
        AtanhOp,
        BesselI1eOp,
        ConjOp,
        CoshOp,
        DigammaOp,
        ErfInvOp,
        ErfOp,
        ErfcOp,
        IsInfOp,
        IsNegInfOp,
        IsPosInfOp,
        LgammaOp,
        NextAfterOp,
        PolygammaOp,
        SinhOp,
        SquareOp,
        TanOp,
        TopKOp,
        ZetaOp,
    ],
    [],
)
"""The dialect."""
