"""Operations that compute each element of the result from one element of every operand.

Operands have one shape: nothing is broadcast.
"""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Commutative

from ...ir.upstream import VerifyException
from ..source_types import bits_of, element_of, is_complex, part_type, shape_of, tensor
from .base import PureOp, need_element, need_same_element, need_shape
from .enums import ComparisonDirectionAttr, ComparisonTypeAttr


class ElementwiseOp(PureOp, ABC):
    """An operation on the elements of tensors of one shape."""

    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also that all shapes are equal."""
        super().verify_()
        for i, value in enumerate(self.operands):
            need_shape(f"operand {i}", value, shape_of(self.result))


class UnaryOp(ElementwiseOp, ABC):
    """A function of one element.

    Attributes:
        operand: a in the formula.
        result: of the operand's shape and elements.
    """

    operand = operand_def(TensorType)

    def __init__(self, operand: SSAValue):
        super().__init__(operands=[operand], result_types=[self.made_of(operand)])

    @classmethod
    def made_of(cls, operand: SSAValue) -> Attribute:
        """The type of the result for an operand."""
        return operand.type

    def verify_(self) -> None:
        """Check also that the result has the type that follows from the operand's."""
        super().verify_()
        need_element("the result", self.result, element_of(self.made_of(self.operand)))


class PredicateOp(UnaryOp, ABC):
    """A test of each element.

    Attributes:
        result: truth values.
    """

    @classmethod
    def made_of(cls, operand: SSAValue) -> Attribute:
        """Truth values of the operand's shape."""
        return tensor(shape_of(operand), i1)


class BinaryOp(ElementwiseOp, ABC):
    """A function of two elements.

    Attributes:
        lhs: a in the formula.
        rhs: b in the formula.
        result: of the operands' shape and elements.
    """

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        """Check also that all element types are equal."""
        super().verify_()
        need_same_element("rhs", self.rhs, self.lhs)
        need_same_element("the result", self.result, self.lhs)


@irdl_op_definition
class AbsOp(UnaryOp):
    """The absolute value of a; of a complex number, its distance from 0.

    Example: %1 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.abs"

    @classmethod
    def made_of(cls, operand: SSAValue) -> Attribute:
        """The operand's type; that of its parts, if it is complex."""
        return part_type(operand) if is_complex(operand) else operand.type


@irdl_op_definition
class CbrtOp(UnaryOp):
    """The cube root of a.

    Example: %1 = "stablehlo.cbrt"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.cbrt"


@irdl_op_definition
class CeilOp(UnaryOp):
    """The smallest whole number that is not below a.

    Example: %1 = "stablehlo.ceil"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.ceil"


@irdl_op_definition
class CountLeadingZerosOp(UnaryOp):
    """How many of the highest bits of a are 0.

    Example: %1 = "stablehlo.count_leading_zeros"(%0) : (tensor<4xi32>) -> tensor<4xi32>
    """

    name = "stablehlo.count_leading_zeros"


@irdl_op_definition
class CosineOp(UnaryOp):
    """The cosine of a, in radians.

    Example: %1 = "stablehlo.cosine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.cosine"


@irdl_op_definition
class ExponentialOp(UnaryOp):
    """e to the power a.

    Example: %1 = "stablehlo.exponential"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.exponential"


@irdl_op_definition
class ExponentialMinusOneOp(UnaryOp):
    """e to the power a, minus 1, also exact for small a.

    Example: %1 = "stablehlo.exponential_minus_one"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.exponential_minus_one"


@irdl_op_definition
class FloorOp(UnaryOp):
    """The largest whole number that is not above a.

    Example: %1 = "stablehlo.floor"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.floor"


@irdl_op_definition
class IsFiniteOp(PredicateOp):
    """Whether a is neither infinite nor NaN.

    Example: %1 = "stablehlo.is_finite"(%0) : (tensor<4xf32>) -> tensor<4xi1>
    """

    name = "stablehlo.is_finite"


@irdl_op_definition
class LogOp(UnaryOp):
    """The natural logarithm of a.

    Example: %1 = "stablehlo.log"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.log"


@irdl_op_definition
class LogPlusOneOp(UnaryOp):
    """The natural logarithm of 1 + a, also exact for small a.

    Example: %1 = "stablehlo.log_plus_one"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.log_plus_one"


@irdl_op_definition
class LogisticOp(UnaryOp):
    """1 / (1 + exp(-a)).

    Example: %1 = "stablehlo.logistic"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.logistic"


@irdl_op_definition
class NegateOp(UnaryOp):
    """-a; of integers, in their own width.

    Example: %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.negate"


@irdl_op_definition
class NotOp(UnaryOp):
    """Not a, bit by bit.

    Example: %1 = "stablehlo.not"(%0) : (tensor<4xi32>) -> tensor<4xi32>
    """

    name = "stablehlo.not"


@irdl_op_definition
class PopcntOp(UnaryOp):
    """How many bits of a are 1.

    Example: %1 = "stablehlo.popcnt"(%0) : (tensor<4xi32>) -> tensor<4xi32>
    """

    name = "stablehlo.popcnt"


@irdl_op_definition
class RoundNearestAfzOp(UnaryOp):
    """The whole number nearest to a; of two, the one farther from 0.

    Example: %1 = "stablehlo.round_nearest_afz"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.round_nearest_afz"


@irdl_op_definition
class RoundNearestEvenOp(UnaryOp):
    """The whole number nearest to a; of two, the even one.

    Example: %1 = "stablehlo.round_nearest_even"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.round_nearest_even"


@irdl_op_definition
class RsqrtOp(UnaryOp):
    """1 / sqrt(a).

    Example: %1 = "stablehlo.rsqrt"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.rsqrt"


@irdl_op_definition
class SignOp(UnaryOp):
    """1 where a is positive, -1 where it is negative; a itself if it is a zero or NaN.

    Example: %1 = "stablehlo.sign"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.sign"


@irdl_op_definition
class SineOp(UnaryOp):
    """The sine of a, in radians.

    Example: %1 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.sine"


@irdl_op_definition
class SqrtOp(UnaryOp):
    """The square root of a.

    Example: %1 = "stablehlo.sqrt"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.sqrt"


@irdl_op_definition
class TanOp(UnaryOp):
    """The tangent of a, in radians.

    Example: %1 = "stablehlo.tan"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.tan"


@irdl_op_definition
class TanhOp(UnaryOp):
    """The hyperbolic tangent of a.

    Example: %1 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.tanh"


@irdl_op_definition
class AddOp(BinaryOp):
    """a + b; of truth values, a or b.

    Example: %2 = "stablehlo.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.add"
    traits = traits_def(Commutative())


@irdl_op_definition
class AndOp(BinaryOp):
    """a and b, bit by bit.

    Example: %2 = "stablehlo.and"(%0, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    """

    name = "stablehlo.and"
    traits = traits_def(Commutative())


@irdl_op_definition
class Atan2Op(BinaryOp):
    """The angle of the point (b, a), in radians.

    Example: %2 = "stablehlo.atan2"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.atan2"


@irdl_op_definition
class DivideOp(BinaryOp):
    """a / b; of integers, rounded towards 0.

    Example: %2 = "stablehlo.divide"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.divide"


@irdl_op_definition
class MaximumOp(BinaryOp):
    """The larger of a and b, or NaN if one of them is NaN.

    Example: %2 = "stablehlo.maximum"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.maximum"
    traits = traits_def(Commutative())


@irdl_op_definition
class MinimumOp(BinaryOp):
    """The smaller of a and b, or NaN if one of them is NaN.

    Example: %2 = "stablehlo.minimum"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.minimum"
    traits = traits_def(Commutative())


@irdl_op_definition
class MultiplyOp(BinaryOp):
    """a * b; of truth values, a and b.

    Example: %2 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.multiply"
    traits = traits_def(Commutative())


@irdl_op_definition
class OrOp(BinaryOp):
    """a or b, bit by bit.

    Example: %2 = "stablehlo.or"(%0, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    """

    name = "stablehlo.or"
    traits = traits_def(Commutative())


@irdl_op_definition
class PowerOp(BinaryOp):
    """a to the power b.

    Example: %2 = "stablehlo.power"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.power"


@irdl_op_definition
class RemainderOp(BinaryOp):
    """What is left of a divided by b, with the sign of a.

    Example: %2 = "stablehlo.remainder"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.remainder"


@irdl_op_definition
class ShiftLeftOp(BinaryOp):
    """The bits of a moved by b places towards the highest one.

    Example: %2 = "stablehlo.shift_left"(%0, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    """

    name = "stablehlo.shift_left"


@irdl_op_definition
class ShiftRightArithmeticOp(BinaryOp):
    """The bits of a moved by b places towards the lowest one; the sign comes in.

    Example: %2 = "stablehlo.shift_right_arithmetic"(%0, %1) : (tensor<4xi32>, tensor<4xi32>)
    -> tensor<4xi32>
    """

    name = "stablehlo.shift_right_arithmetic"


@irdl_op_definition
class ShiftRightLogicalOp(BinaryOp):
    """The bits of a moved by b places towards the lowest one; zeros come in.

    Example: %2 = "stablehlo.shift_right_logical"(%0, %1) : (tensor<4xi32>, tensor<4xi32>)
    -> tensor<4xi32>
    """

    name = "stablehlo.shift_right_logical"


@irdl_op_definition
class SubtractOp(BinaryOp):
    """a - b.

    Example: %2 = "stablehlo.subtract"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "stablehlo.subtract"


@irdl_op_definition
class XorOp(BinaryOp):
    """a or b but not both, bit by bit.

    Example: %2 = "stablehlo.xor"(%0, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    """

    name = "stablehlo.xor"
    traits = traits_def(Commutative())


@irdl_op_definition
class ConvertOp(ElementwiseOp):
    """The same values as elements of another type.

    Floats become integers by dropping the fraction, and truth values by asking for nonzero.

    Example: %1 = "stablehlo.convert"(%0) : (tensor<4xf32>) -> tensor<4xi32>

    Attributes:
        operand: of any elements.
        result: of the operand's shape.
    """

    name = "stablehlo.convert"
    operand = operand_def(TensorType)

    def __init__(self, operand: SSAValue, element: Attribute):
        super().__init__(operands=[operand], result_types=[tensor(shape_of(operand), element)])


@irdl_op_definition
class BitcastConvertOp(PureOp):
    """The same bits as elements of another type.

    If the new elements are narrower, they lie along one more axis at the end; if they are wider,
    those along the last axis become one.

    Example: %1 = "stablehlo.bitcast_convert"(%0) : (tensor<4xf32>) -> tensor<4xui32>

    Attributes:
        operand: of any elements.
        result: of as many bits.
    """

    name = "stablehlo.bitcast_convert"
    operand = operand_def(TensorType)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also that both tensors have as many bits."""
        super().verify_()
        before, after = shape_of(self.operand), shape_of(self.result)
        bits = [bits_of(each) for each in (self.operand, self.result)]
        # The wider elements, with an axis for the narrower ones in each.
        (few, many), (wide, narrow) = (before, after), bits
        if wide < narrow:
            (few, many), (wide, narrow) = (after, before), bits[::-1]
        inner = () if wide == narrow else (wide // narrow,)
        if wide % narrow or many != (*few, *inner):
            raise VerifyException(f"the bits of {self.operand.type} as {self.result.type}")


@irdl_op_definition
class CompareOp(ElementwiseOp):
    """Whether a comparison of a and b holds. Only NE holds for NaN, unless the order is total.

    Example: %2 = "stablehlo.compare"(%0, %1) <{comparison_direction =
    #stablehlo<comparison_direction LT>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>

    Attributes:
        lhs: a.
        rhs: b, of a's elements.
        comparison_direction: what is asked.
        compare_type: how the elements are read; what their type says if it is absent.
        result: truth values.
    """

    name = "stablehlo.compare"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)

    def __init__(
        self, lhs: SSAValue, rhs: SSAValue, direction: str, compare_type: str | None = None
    ):
        kind = None if compare_type is None else ComparisonTypeAttr(compare_type)
        super().__init__(
            operands=[lhs, rhs],
            properties={
                "comparison_direction": ComparisonDirectionAttr(direction),
                "compare_type": kind,
            },
            result_types=[tensor(shape_of(lhs), i1)],
        )

    @property
    def is_total(self) -> bool:
        """Whether NaN and both zeros have places in the order."""
        return self.compare_type is not None and self.compare_type.data == "TOTALORDER"

    def verify_(self) -> None:
        """Check also the element types."""
        super().verify_()
        need_same_element("rhs", self.rhs, self.lhs)
        need_element("the result", self.result, i1)


@irdl_op_definition
class SelectOp(PureOp):
    """a where the condition holds, b elsewhere.

    Example: %3 = "stablehlo.select"(%0, %1, %2) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>)
    -> tensor<4xf32>

    Attributes:
        pred: the condition, of the others' shape or without axes.
        on_true: a.
        on_false: b, of a's type.
        result: of a's type.
    """

    name = "stablehlo.select"
    pred = operand_def(TensorType)
    on_true = operand_def(TensorType)
    on_false = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, pred: SSAValue, on_true: SSAValue, on_false: SSAValue):
        super().__init__(operands=[pred, on_true, on_false], result_types=[on_true.type])

    def verify_(self) -> None:
        """Check also the shapes and the element types."""
        super().verify_()
        need_element("pred", self.pred, i1)
        if shape_of(self.pred):
            need_shape("pred", self.pred, shape_of(self.result))
        for what, value in (("on_true", self.on_true), ("on_false", self.on_false)):
            need_shape(what, value, shape_of(self.result))
            need_same_element(what, value, self.result)


@irdl_op_definition
class ClampOp(PureOp):
    """a, limited to at least low and at most high, or NaN if one of the three is NaN.

    Example: %3 = "stablehlo.clamp"(%0, %1, %2) : (tensor<f32>, tensor<4xf32>, tensor<f32>)
    -> tensor<4xf32>

    Attributes:
        low: of the operand's shape or without axes.
        operand: a.
        high: of the operand's shape or without axes.
        result: of the operand's type.
    """

    name = "stablehlo.clamp"
    low = operand_def(TensorType)
    operand = operand_def(TensorType)
    high = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, low: SSAValue, operand: SSAValue, high: SSAValue):
        super().__init__(operands=[low, operand, high], result_types=[operand.type])

    def verify_(self) -> None:
        """Check also the shapes and the element types."""
        super().verify_()
        need_shape("the result", self.result, shape_of(self.operand))
        for what, value in (("low", self.low), ("high", self.high)):
            if shape_of(value):
                need_shape(what, value, shape_of(self.operand))
            need_same_element(what, value, self.operand)
        need_same_element("the result", self.result, self.operand)


@irdl_op_definition
class ReducePrecisionOp(UnaryOp):
    """a rounded to a float of fewer bits, and back.

    Example: %1 = "stablehlo.reduce_precision"(%0) <{exponent_bits = 5 : i32,
    mantissa_bits = 10 : i32}> : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        exponent_bits: of the narrower float, 1 or more.
        mantissa_bits: of the narrower float, 0 or more.
    """

    name = "stablehlo.reduce_precision"
    exponent_bits = prop_def(IntegerAttr.constr(i32))
    mantissa_bits = prop_def(IntegerAttr.constr(i32))

    def __init__(self, operand: SSAValue, exponent_bits: int, mantissa_bits: int):
        super(UnaryOp, self).__init__(
            operands=[operand],
            properties={
                "exponent_bits": IntegerAttr(exponent_bits, i32),
                "mantissa_bits": IntegerAttr(mantissa_bits, i32),
            },
            result_types=[operand.type],
        )


UNARY = (
    AbsOp,
    CbrtOp,
    CeilOp,
    CountLeadingZerosOp,
    CosineOp,
    ExponentialOp,
    ExponentialMinusOneOp,
    FloorOp,
    IsFiniteOp,
    LogOp,
    LogPlusOneOp,
    LogisticOp,
    NegateOp,
    NotOp,
    PopcntOp,
    RoundNearestAfzOp,
    RoundNearestEvenOp,
    RsqrtOp,
    SignOp,
    SineOp,
    SqrtOp,
    TanOp,
    TanhOp,
)
"""Functions of one element."""

BINARY = (
    AddOp,
    AndOp,
    Atan2Op,
    DivideOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    OrOp,
    PowerOp,
    RemainderOp,
    ShiftLeftOp,
    ShiftRightArithmeticOp,
    ShiftRightLogicalOp,
    SubtractOp,
    XorOp,
)
"""Functions of two elements."""

ELEMENTWISE = (
    *UNARY,
    *BINARY,
    ConvertOp,
    BitcastConvertOp,
    CompareOp,
    SelectOp,
    ClampOp,
    ReducePrecisionOp,
)
"""All of them."""
