"""Operations that compute each result element from one element of every operand.

Operands are broadcast as in NumPy. Each class is named after the scalar function it applies.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import ClassVar, Self

from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, f32, i1, i32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.traits import Commutative

from ...ir.geometry.space import AccessMap, AxisMap, Dim, Space
from ...ir.support.number_formats import NumberFormat, Overflow, format_of
from ...ir.support.number_kinds import bit_width
from ...ir.unmet import Unmet
from ...ir.upstream import UNKNOWN_LOC, VerifyException
from ..dtypes import numpy_dtype
from ..scalar_functions import FUNCTIONS
from ..structured import Body, Structure, Structured
from .base import (
    NUMBER,
    PureTensorOp,
    Shape,
    broadcast,
    element_of,
    number,
    number_of,
    same_element,
    shape_of,
    tensor,
)
from .chain import CHAIN, ChainableOp
from .wanted import Wanted

__all__ = [
    "AbsOp",
    "AcosOp",
    "AcoshOp",
    "AddOp",
    "AsinOp",
    "AsinhOp",
    "AtanOp",
    "AtanhOp",
    "BinaryOp",
    "BitCastOp",
    "BitsOp",
    "BitwiseAndOp",
    "BitwiseNotOp",
    "BitwiseOrOp",
    "BitwiseXorOp",
    "CastOp",
    "CeilOp",
    "ClipOp",
    "CompareOp",
    "CosOp",
    "CoshOp",
    "DivOp",
    "DrawnOp",
    "ELEMENTWISE",
    "ElementwiseOp",
    "EqualOp",
    "ErfOp",
    "ExpOp",
    "FloorOp",
    "FmodOp",
    "FromCodeOp",
    "GateOp",
    "GreaterEqualOp",
    "GreaterOp",
    "IsInfOp",
    "IsNaNOp",
    "LeakyReluOp",
    "LessEqualOp",
    "LessOp",
    "LogOp",
    "LogicalAndOp",
    "LogicalNotOp",
    "LogicalOp",
    "LogicalOrOp",
    "MatchOp",
    "MaxOp",
    "MinOp",
    "ModOp",
    "MulOp",
    "NegOp",
    "ParametrisedOp",
    "PowOp",
    "PowerOp",
    "PredicateOp",
    "RandomBitsOp",
    "ReciprocalOp",
    "ReluOp",
    "RoundOp",
    "RoundingOp",
    "ScaleOp",
    "SelectOp",
    "ShiftLeftOp",
    "ShiftOp",
    "ShiftRightOp",
    "SigmoidOp",
    "SignOp",
    "SinOp",
    "SinhOp",
    "SoftplusOp",
    "SqrtOp",
    "SquareOp",
    "StochasticOp",
    "SubOp",
    "TanOp",
    "TanhOp",
    "ToCodeOp",
    "ToNearestOp",
    "UnaryOp",
]
"""What abele.dialects.nn exports."""


UINT32 = IntegerType(32, Signedness.UNSIGNED)
"""Unsigned integers of 32 bits."""


@lru_cache(maxsize=4096)
def broadcast_space(shapes: tuple[Shape, ...], result: Shape) -> Space:
    """The space of the result's axes; an operand's map leaves out what it is broadcast over."""
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(result))

    def access(shape: Shape) -> AccessMap:
        skip = len(result) - len(shape)
        return AccessMap(
            tuple(AxisMap(n, ((skip + i, 1),) if n != 1 else ()) for i, n in enumerate(shape))
        )

    return Space(dims, tuple(map(access, shapes)), (access(result),))


class ElementwiseOp(ChainableOp, ABC):
    """An operation on elements: operands broadcast, one scalar function, no reduction.

    Attributes:
        PARAMETERS: the properties that hold the constants of the scalar function, in order.
    """

    PARAMETERS: ClassVar[tuple[str, ...]] = ()

    @property
    def function(self) -> str:
        """The scalar function."""
        return self.name.partition(".")[2]

    @property
    def parameters(self) -> tuple[float, ...]:
        """Constants of the scalar function."""
        return tuple([number_of(self.properties[name]) for name in self.PARAMETERS])

    @property
    def result_numbers(self) -> tuple[str, ...]:
        """The constants that the scalar function may return."""
        if not self.PARAMETERS:
            return ()
        return tuple([self.PARAMETERS[i] for i in FUNCTIONS[self.function].saturating])

    def result_element(self) -> Attribute:
        """The element type of the result."""
        return same_element(*self.operands)

    def infer(self) -> TensorType[Attribute]:
        """The shape that the operands broadcast to."""
        return tensor(broadcast([shape_of(v) for v in self.operands]), self.result_element())

    def core_structure(self) -> Structure:
        """One dimension per result axis."""
        shapes = tuple([shape_of(v) for v in self.operands])
        space = broadcast_space(shapes, shape_of(self.result))
        return Structure(space, Body(self.function, None, self.parameters))


class UnaryOp(ElementwiseOp, ABC):
    """A scalar function of one operand.

    Attributes:
        operand: a in the formula. result: of the operand's type.
    """

    operand = operand_def(TensorType)
    assembly_format = "$operand" + CHAIN

    def __init__(self, operand: SSAValue):
        super().__init__([operand])


class BinaryOp(ElementwiseOp, ABC):
    """A scalar function of two operands.

    Attributes:
        lhs: a in the formula.
        rhs: b in the formula, of a's element type; they broadcast, as in NumPy.
    """

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    assembly_format = "$lhs `,` $rhs" + CHAIN

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__([lhs, rhs])


class CompareOp(BinaryOp, ABC):
    """A comparison: the result's elements are i1."""

    def result_element(self) -> Attribute:
        """The result is i1; the operands must have one element type."""
        same_element(self.lhs, self.rhs)
        return i1


def _need_booleans(values: Sequence[SSAValue]) -> Attribute:
    for i, value in enumerate(values):
        if element_of(value) != i1:
            raise Unmet(f"operand {i} has elements {element_of(value)}; need i1", f"operand {i}")
    return i1


def _need_numbers(values: Sequence[SSAValue]) -> Attribute:
    """The common element type of the operands. Raises VerifyException for truth values.

    Truth values have no difference, in NumPy neither: in i1, 1 + (-1) would be 1, but 1 - 1 is 0.
    """
    element = same_element(*values)
    if element == i1:
        raise Unmet("operands of i1, which has no negative numbers; need numbers", "elements i1")
    return element


class LogicalOp(BinaryOp, ABC):
    """A truth function of two tensors of i1."""

    def result_element(self) -> Attribute:
        """I1, which all operands must have."""
        return _need_booleans(self.operands)


@irdl_op_definition
class AddOp(BinaryOp):
    """a + b.

    Example: %2 = nn.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.add"
    traits = traits_def(Commutative())


@irdl_op_definition
class SubOp(BinaryOp):
    """a - b.

    Example: %2 = nn.sub %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.sub"

    def result_element(self) -> Attribute:
        """The element type of the operands, which must be numbers."""
        return _need_numbers(self.operands)


@irdl_op_definition
class MulOp(BinaryOp):
    """a * b.

    Example: %2 = nn.mul %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.mul"
    traits = traits_def(Commutative())


@irdl_op_definition
class DivOp(BinaryOp):
    """a / b; of integers, rounded towards zero.

    Example: %2 = nn.div %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.div"


@irdl_op_definition
class MaxOp(BinaryOp):
    """The larger of a and b.

    Example: %2 = nn.max %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.max"
    traits = traits_def(Commutative())


@irdl_op_definition
class MinOp(BinaryOp):
    """The smaller of a and b.

    Example: %2 = nn.min %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.min"
    traits = traits_def(Commutative())


@irdl_op_definition
class PowOp(BinaryOp):
    """a to the power b.

    Example: %2 = nn.pow %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.pow"


@irdl_op_definition
class LessOp(CompareOp):
    """a < b.

    Example: %2 = nn.less %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    """

    name = "nn.less"


@irdl_op_definition
class LessEqualOp(CompareOp):
    """a <= b.

    Example: %2 = nn.less_equal %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    """

    name = "nn.less_equal"


@irdl_op_definition
class GreaterOp(CompareOp):
    """a > b.

    Example: %2 = nn.greater %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    """

    name = "nn.greater"


@irdl_op_definition
class GreaterEqualOp(CompareOp):
    """a >= b.

    Example: %2 = nn.greater_equal %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    """

    name = "nn.greater_equal"


@irdl_op_definition
class EqualOp(CompareOp):
    """a == b.

    Example: %2 = nn.equal %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    """

    name = "nn.equal"
    traits = traits_def(Commutative())


@irdl_op_definition
class LogicalAndOp(LogicalOp):
    """a and b.

    Example: %2 = nn.logical_and %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    """

    name = "nn.logical_and"
    traits = traits_def(Commutative())


@irdl_op_definition
class LogicalOrOp(LogicalOp):
    """a or b.

    Example: %2 = nn.logical_or %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    """

    name = "nn.logical_or"
    traits = traits_def(Commutative())


@irdl_op_definition
class ReluOp(UnaryOp):
    """max(a, 0).

    Example: %1 = nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.relu"


@irdl_op_definition
class ExpOp(UnaryOp):
    """e to the power a.

    Example: %1 = nn.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.exp"


@irdl_op_definition
class LogOp(UnaryOp):
    """The natural logarithm of a.

    Example: %1 = nn.log %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.log"


@irdl_op_definition
class SqrtOp(UnaryOp):
    """The square root of a.

    Example: %1 = nn.sqrt %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.sqrt"


@irdl_op_definition
class ReciprocalOp(UnaryOp):
    """1 / a.

    Example: %1 = nn.reciprocal %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.reciprocal"


@irdl_op_definition
class TanhOp(UnaryOp):
    """The hyperbolic tangent of a.

    Example: %1 = nn.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.tanh"


@irdl_op_definition
class SigmoidOp(UnaryOp):
    """1 / (1 + exp(-a)).

    Example: %1 = nn.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.sigmoid"


@irdl_op_definition
class NegOp(UnaryOp):
    """-a.

    Example: %1 = nn.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.neg"

    def result_element(self) -> Attribute:
        """The element type of the operand, which must be a number."""
        return _need_numbers(self.operands)


@irdl_op_definition
class AbsOp(UnaryOp):
    """The absolute value of a.

    Example: %1 = nn.abs %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.abs"


@irdl_op_definition
class SquareOp(UnaryOp):
    """a * a.

    Example: %1 = nn.square %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.square"


@irdl_op_definition
class LogicalNotOp(UnaryOp):
    """Not a.

    Example: %1 = nn.logical_not %0 : (tensor<4xi1>) -> tensor<4xi1>
    """

    name = "nn.logical_not"

    def result_element(self) -> Attribute:
        """I1, which the operand must have."""
        return _need_booleans(self.operands)


@irdl_op_definition
class SelectOp(ElementwiseOp):
    """a where the condition holds, b elsewhere.

    Example: %3 = nn.select %c, %0, %1 : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>)
    -> tensor<4xf32>

    Attributes:
        condition: of i1; it broadcasts with the others.
        lhs: a.
        rhs: b, of a's element type.
    """

    name = "nn.select"
    condition = operand_def(TensorType)
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    assembly_format = "$condition `,` $lhs `,` $rhs" + CHAIN

    def __init__(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue):
        super().__init__([condition, lhs, rhs])

    def result_element(self) -> Attribute:
        """The element type of a and b; the condition must be i1."""
        _need_booleans([self.condition])
        return same_element(self.lhs, self.rhs)


@irdl_op_definition
class CastOp(PureTensorOp, Structured):
    """The same values as elements of another type.

    Example: %1 = nn.cast %0 : (tensor<4xf32>) -> tensor<4xf16>

    Attributes:
        operand: of any shape and elements. result: of the operand's shape.
    """

    name = "nn.cast"
    operand = operand_def(TensorType)
    assembly_format = "$operand attr-dict `:` functional-type(operands, results)"

    def __init__(self, operand: SSAValue, element: Attribute):
        super().__init__([operand])
        self.result._type = tensor(shape_of(operand), element)  # pyright: ignore[reportPrivateUsage]

    def infer(self) -> TensorType[Attribute]:
        """The operand's shape; any element type."""
        return tensor(shape_of(self.operand), element_of(self.result))

    def structure(self) -> Structure:
        """One dimension per result axis; the body is the identity."""
        shape = shape_of(self.result)
        return Structure(broadcast_space((shape,), shape), Body("identity"))


@irdl_op_definition
class BitCastOp(PureTensorOp, Structured):
    """The same bits as elements of another type that takes as many bytes.

    Example: %1 = nn.bitcast %0 : (tensor<4xf32>) -> tensor<4xi32>

    Attributes:
        operand: of any shape, with elements of whole bytes. result: of the operand's shape.
    """

    name = "nn.bitcast"
    operand = operand_def(TensorType)
    assembly_format = "$operand attr-dict `:` functional-type(operands, results)"

    def __init__(self, operand: SSAValue, element: Attribute):
        super().__init__([operand])
        self.result._type = tensor(shape_of(operand), element)  # pyright: ignore[reportPrivateUsage]
        self._check_bits()

    def infer(self) -> TensorType[Attribute]:
        """The operand's shape; any element type of as many bits."""
        return tensor(shape_of(self.operand), element_of(self.result))

    def verify_(self) -> None:
        """Check also that both types have the same number of bits."""
        super().verify_()
        self._check_bits()

    def _check_bits(self) -> None:
        source, target = element_of(self.operand), element_of(self.result)
        bits = [bit_width(numpy_dtype(each)) for each in (source, target)]
        if bits[0] != bits[1] or bits[0] % 8:
            raise Unmet(
                f"elements {source} as {target}; need types of as many bits, 8 or more",
                f"elements {source} {target}",
            )

    def structure(self) -> Structure:
        """One dimension per result axis; the body keeps the bits."""
        shape = shape_of(self.result)
        return Structure(broadcast_space((shape,), shape), Body("bitcast"))


class ParametrisedOp(ElementwiseOp, ABC):
    """A scalar function of one operand and of constants.

    Attributes:
        operand: a in the formula. result: of the operand's type.
    """

    operand = operand_def(TensorType)

    def __init__(self, operand: SSAValue, properties: dict[str, Attribute]):
        super().__init__([operand], properties)

    def verify_(self) -> None:
        """Check also that no constant is NaN."""
        super().verify_()
        if any(p != p for p in self.parameters):
            raise VerifyException(f"parameters {list(self.parameters)}; need numbers")


@irdl_op_definition
class LeakyReluOp(ParametrisedOp):
    """a where a is positive, alpha * a elsewhere.

    Example: %1 = nn.leaky_relu %0 slope 0.01 : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        alpha: the slope below 0.
    """

    name = "nn.leaky_relu"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("alpha",)
    alpha = prop_def(NUMBER)
    assembly_format = "$operand `slope` custom<Number>($alpha)" + CHAIN

    def __init__(self, operand: SSAValue, alpha: float):
        super().__init__(operand, {"alpha": number(alpha)})


@irdl_op_definition
class ClipOp(ParametrisedOp):
    """a, limited to at least low and at most high.

    Example: %1 = nn.clip %0 to 0.0, 6.0 : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        low: the least result; -inf for no bound.
        high: the largest result; inf for no bound.
    """

    name = "nn.clip"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("low", "high")
    low = prop_def(NUMBER)
    high = prop_def(NUMBER)
    assembly_format = "$operand `to` custom<Number>($low) `,` custom<Number>($high)" + CHAIN

    def __init__(self, operand: SSAValue, low: float, high: float):
        super().__init__(operand, {"low": number(low), "high": number(high)})


@irdl_op_definition
class ScaleOp(ParametrisedOp):
    """a times a constant.

    Example: %1 = nn.scale %0 by 0.5 : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        factor: the constant.
    """

    name = "nn.scale"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("factor",)
    factor = prop_def(NUMBER)
    assembly_format = "$operand `by` custom<Number>($factor)" + CHAIN

    def __init__(self, operand: SSAValue, factor: float):
        super().__init__(operand, {"factor": number(factor)})


@irdl_op_definition
class ShiftOp(ParametrisedOp):
    """a plus a constant.

    Example: %1 = nn.shift %0 by 1.0 : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        amount: the constant.
    """

    name = "nn.shift"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("amount",)
    amount = prop_def(NUMBER)
    assembly_format = "$operand `by` custom<Number>($amount)" + CHAIN

    def __init__(self, operand: SSAValue, amount: float):
        super().__init__(operand, {"amount": number(amount)})


@irdl_op_definition
class PowerOp(ParametrisedOp):
    """a to a constant power.

    Example: %1 = nn.power %0 to -0.75 : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        exponent: the power.
    """

    name = "nn.power"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("exponent",)
    exponent = prop_def(NUMBER)
    assembly_format = "$operand `to` custom<Number>($exponent)" + CHAIN

    def __init__(self, operand: SSAValue, exponent: float):
        super().__init__(operand, {"exponent": number(exponent)})


@irdl_op_definition
class SoftplusOp(UnaryOp):
    """log(1 + exp(a)).

    Example: %1 = nn.softplus %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.softplus"


@irdl_op_definition
class FloorOp(UnaryOp):
    """The largest whole number that is not above a; a itself if it is infinite or NaN.

    Example: %1 = nn.floor %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.floor"


@irdl_op_definition
class SignOp(UnaryOp):
    """1 where a is positive, -1 where it is negative, 0 where it is 0 or -0.0.

    It is NaN where a is.

    Example: %1 = nn.sign %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.sign"


@irdl_op_definition
class CeilOp(UnaryOp):
    """The smallest whole number that is not below a; a itself if it is infinite or NaN.

    Example: %1 = nn.ceil %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.ceil"


@irdl_op_definition
class RoundOp(UnaryOp):
    """The whole number nearest to a. Halfway between two, it is the even one.

    Example: %1 = nn.round %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.round"


@irdl_op_definition
class ErfOp(UnaryOp):
    """The error function of a: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to a.

    Example: %1 = nn.erf %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.erf"


@irdl_op_definition
class SinOp(UnaryOp):
    """The sine of a, in radians.

    Example: %1 = nn.sin %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.sin"


@irdl_op_definition
class CosOp(UnaryOp):
    """The cosine of a, in radians.

    Example: %1 = nn.cos %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.cos"


@irdl_op_definition
class TanOp(UnaryOp):
    """The tangent of a, in radians.

    Example: %1 = nn.tan %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.tan"


@irdl_op_definition
class AsinOp(UnaryOp):
    """The angle in -pi/2..pi/2 whose sine is a; NaN if a is outside of -1..1.

    Example: %1 = nn.asin %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.asin"


@irdl_op_definition
class AcosOp(UnaryOp):
    """The angle in 0..pi whose cosine is a; NaN if a is outside of -1..1.

    Example: %1 = nn.acos %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.acos"


@irdl_op_definition
class AtanOp(UnaryOp):
    """The angle in -pi/2..pi/2 whose tangent is a.

    Example: %1 = nn.atan %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.atan"


@irdl_op_definition
class SinhOp(UnaryOp):
    """The hyperbolic sine of a.

    Example: %1 = nn.sinh %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.sinh"


@irdl_op_definition
class CoshOp(UnaryOp):
    """The hyperbolic cosine of a.

    Example: %1 = nn.cosh %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.cosh"


@irdl_op_definition
class AsinhOp(UnaryOp):
    """The number whose hyperbolic sine is a.

    Example: %1 = nn.asinh %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.asinh"


@irdl_op_definition
class AcoshOp(UnaryOp):
    """The number whose hyperbolic cosine is a, at least 0; NaN if a is below 1.

    Example: %1 = nn.acosh %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.acosh"


@irdl_op_definition
class AtanhOp(UnaryOp):
    """The number whose hyperbolic tangent is a; NaN if a is outside of -1..1.

    Example: %1 = nn.atanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.atanh"


@irdl_op_definition
class ModOp(BinaryOp):
    """The remainder of a / b, with the sign of b; of integers, 0 where b is 0.

    Example: %2 = nn.mod %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.mod"


@irdl_op_definition
class FmodOp(BinaryOp):
    """The remainder of a / b, with the sign of a; of integers, 0 where b is 0.

    Example: %2 = nn.fmod %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.fmod"


class PredicateOp(UnaryOp, ABC):
    """A test of each element: the result's elements are i1."""

    def result_element(self) -> Attribute:
        """I1, for operands of any type."""
        return i1


@irdl_op_definition
class IsNaNOp(PredicateOp):
    """Whether a is NaN.

    Example: %1 = nn.is_nan %0 : (tensor<4xf32>) -> tensor<4xi1>
    """

    name = "nn.is_nan"


@irdl_op_definition
class IsInfOp(PredicateOp):
    """Whether a is infinity or -infinity.

    Example: %1 = nn.is_inf %0 : (tensor<4xf32>) -> tensor<4xi1>
    """

    name = "nn.is_inf"


def _need_integers(values: Sequence[SSAValue]) -> Attribute:
    for i, value in enumerate(values):
        if element_of(value) == i1 or not isinstance(element_of(value), IntegerType):
            raise Unmet(
                f"operand {i} has elements {element_of(value)}; need integers of 8 bits or more",
                f"operand {i}",
            )
    return same_element(*values)


class BitsOp(BinaryOp, ABC):
    """A function of the bits of two tensors of integers."""

    def result_element(self) -> Attribute:
        """The element type of the operands, which must be integers of one type."""
        return _need_integers(self.operands)


@irdl_op_definition
class BitwiseAndOp(BitsOp):
    """The bits that are set in both a and b.

    Example: %2 = nn.bitwise_and %0, %1 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    """

    name = "nn.bitwise_and"
    traits = traits_def(Commutative())


@irdl_op_definition
class BitwiseOrOp(BitsOp):
    """The bits that are set in a or b.

    Example: %2 = nn.bitwise_or %0, %1 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    """

    name = "nn.bitwise_or"
    traits = traits_def(Commutative())


@irdl_op_definition
class BitwiseXorOp(BitsOp):
    """The bits that are set in either a or b, but not in both.

    Example: %2 = nn.bitwise_xor %0, %1 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    """

    name = "nn.bitwise_xor"
    traits = traits_def(Commutative())


@irdl_op_definition
class ShiftLeftOp(BitsOp):
    """The bits of a, moved b places towards the highest; zeros move in.

    If b is negative, or not below the number of bits, all bits are moved out.

    Example: %2 = nn.shift_left %0, %1 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    """

    name = "nn.shift_left"


@irdl_op_definition
class ShiftRightOp(BitsOp):
    """The bits of a, moved b places towards the lowest.

    Copies of the sign move in; zeros if a is unsigned. If b is negative, or not below the number of
    bits, all bits are moved out.

    Example: %2 = nn.shift_right %0, %1 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    """

    name = "nn.shift_right"


@irdl_op_definition
class BitwiseNotOp(UnaryOp):
    """The bits that are not set in a.

    Example: %1 = nn.bitwise_not %0 : (tensor<4xi32>) -> tensor<4xi32>
    """

    name = "nn.bitwise_not"

    def result_element(self) -> Attribute:
        """The element type of the operand, which must be an integer."""
        return _need_integers(self.operands)


@irdl_op_definition
class GateOp(BinaryOp):
    """b where a is positive, 0 elsewhere, whatever b is there; also 0 where a is NaN.

    Gradients of rectifiers and limits are of this kind, and so is what avoids a pole.

    Example: %2 = nn.gate %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """

    name = "nn.gate"

    def result_element(self) -> Attribute:
        """The element type of the operands, which must be numbers."""
        return _need_numbers(self.operands)


@irdl_op_definition
class MatchOp(ElementwiseOp):
    """c where a equals b, 0 elsewhere, whatever c is there.

    The gradient of a maximum is of this kind: it goes to the elements that equal the maximum.

    Example: %3 = nn.match %0, %1, %2 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    -> tensor<4xf32>

    Attributes:
        a: numbers.
        b: numbers of a's element type.
        c: numbers of a's element type, some of which are the result. They broadcast, as in NumPy.
    """

    name = "nn.match"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = operand_def(TensorType)
    assembly_format = "$a `,` $b `,` $c" + CHAIN

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue):
        super().__init__([a, b, c])

    def result_element(self) -> Attribute:
        """The element type of the operands, which must be numbers."""
        return _need_numbers(self.operands)


@irdl_op_definition
class RandomBitsOp(ElementwiseOp):
    """32 random bits for each element, which depend on the operands and the key alone.

    They are the first word of Philox-4x32-10 (Salmon and others, 2011) for the counter [index, 0,
    step, 0] and the key [seed, key]. So they are the same however the operation is split, and in
    every run with the same operands.

    Example: %3 = nn.random_bits %index, %step, %seed key 0.0 : (tensor<4xui32>, tensor<ui32>,
    tensor<ui32>) -> tensor<4xui32>

    Attributes:
        index: of ui32 or i32, different for each element that shall have bits of its own.
        step: of the same type, such as the number of the run; it broadcasts with the others.
        seed: of the same type.
        key: tells this operation from others with the same operands, 0 to 2^32 - 1. Copies of the
            operation have the same key, and so the same bits.
    """

    name = "nn.random_bits"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("key",)
    index = operand_def(TensorType)
    step = operand_def(TensorType)
    seed = operand_def(TensorType)
    key = prop_def(NUMBER)
    assembly_format = "$index `,` $step `,` $seed `key` custom<Number>($key)" + CHAIN

    def __init__(self, index: SSAValue, step: SSAValue, seed: SSAValue, key: float):
        super().__init__([index, step, seed], {"key": number(key)})

    def result_element(self) -> Attribute:
        """The element type of all operands, which must be integers of 32 bits."""
        for i, value in enumerate(self.operands):
            if element_of(value) not in (UINT32, i32):
                raise Unmet(
                    f"operand {i} has elements {element_of(value)}; need ui32 or i32",
                    f"operand {i}",
                )
        return same_element(*self.operands)

    def verify_(self) -> None:
        """Check also that the key is an integer of 32 bits."""
        super().verify_()
        _check_key(self.parameters[0])


FORMAT = ("digits", "least", "largest", "overflow")
"""The properties that describe a narrower type and its rule of overflow."""


class FormatOp(ElementwiseOp, ABC):
    """A function of float32 values and of a narrower type.

    Attributes:
        digits: the digits of a significand of the narrower type, 11 for f16.
        least: the exponent of its smallest normal number, -14 for f16.
    """

    digits = prop_def(NUMBER)
    least = prop_def(NUMBER)

    def result_element(self) -> Attribute:
        """The element type of the operands, f32."""
        for i, value in enumerate(self.operands):
            if element_of(value) != f32:
                raise Unmet(f"operand {i} has elements {element_of(value)}; need f32", f"{i}")
        return f32

    def verify_(self) -> None:
        """Check also that float32 may contain the narrower type."""
        super().verify_()
        digits, least = number_of(self.digits), number_of(self.least)
        if digits not in range(2, 25) or least not in range(-126, 127):
            raise VerifyException(
                f"digits {digits:g}, least {least:g}; need 2 to 24, and -126 to 126"
            )

    @classmethod
    def sample(cls, wanted: Wanted) -> Self:
        """A random operation. Its numbers are those of an existing type."""
        random, sizes, first = wanted.random, wanted.sizes, wanted.first
        if first is None:
            shape = [
                random.choice(sizes or (1, 2, 3, 5)) for _ in range(random.choice((0, 1, 2, 3)))
            ]
            elements = wanted.elements
            first = tensor(shape, f32 if f32 in elements else random.choice(elements or (f32,)))
        known = FUNCTIONS[cls.name.partition(".")[2]]
        types = [_broadcast_to(first, random) for _ in range(known.arity)]
        types[random.choice((0, 0, random.randrange(known.arity)))] = first
        numbers = zip(cls.PARAMETERS, map(number, random.choice(known.samples)), strict=True)
        op = cls.create(
            operands=Block(arg_types=types).args,
            result_types=[first],
            properties=dict(numbers),
            location=UNKNOWN_LOC,
        )
        op.results[0]._type = op.infer()  # pyright: ignore[reportPrivateUsage]
        return op


class RoundingOp(FormatOp, ABC):
    """A float32 value as one of the two numbers of a narrower type around it, still as float32.

    A cast to the narrower type that reads the result changes nothing.

    Attributes:
        largest: its largest finite number.
        overflow: what a larger number becomes: 0 an infinity, 1 the largest number, 2 NaN.
    """

    largest = prop_def(NUMBER)
    overflow = prop_def(NUMBER)

    @property
    def result_numbers(self) -> tuple[str, ...]:
        """None: the largest number is that of the narrower type."""
        return ()

    def verify_(self) -> None:
        """Check also the largest number and the rule of overflow."""
        super().verify_()
        least, largest, overflow = (number_of(self.properties[each]) for each in FORMAT[1:])
        if not 2.0**least <= largest < float("inf"):
            raise VerifyException(f"largest {largest:g}; need a normal number")
        if overflow not in tuple(Overflow):
            raise VerifyException(f"overflow {overflow:g}; need one of 0, 1 and 2")


def _broadcast_to(type_: TensorType[Attribute], random: Random) -> TensorType[Attribute]:
    """A random type that broadcasts with another."""
    shape = [random.choice((1, n)) for n in type_.get_shape()]
    return tensor(shape[random.randint(0, len(shape)) :], type_.element_type)


def format_numbers(element: Attribute | NumberFormat, overflow: Overflow) -> dict[str, Attribute]:
    """The properties of a rounding to a format, or to that of an element type.

    Raises ValueError for a type of no format.
    """
    format_ = format_of(numpy_dtype(element)) if isinstance(element, Attribute) else element
    given = format_.digits, format_.least, format_.largest, overflow
    return {name: number(float(value)) for name, value in zip(FORMAT, given, strict=True)}


class PlainRoundingOp(RoundingOp, ABC):
    """A rounding that reads nothing but the value.

    Attributes:
        value: of f32.
    """

    PARAMETERS: ClassVar[tuple[str, ...]] = FORMAT
    value = operand_def(TensorType)
    assembly_format = (
        "$value `digits` custom<Number>($digits) `least` custom<Number>($least) `largest`"
        " custom<Number>($largest) `overflow` custom<Number>($overflow)" + CHAIN
    )

    def __init__(self, value: SSAValue, element: Attribute | NumberFormat, overflow: Overflow):
        super().__init__([value], format_numbers(element, overflow))


@irdl_op_definition
class ToNearestOp(PlainRoundingOp):
    """The nearest number of a narrower type; of two that are equally near, the even one.

    Example: %1 = nn.to_nearest %0 digits 11.0 least -14.0 largest 65504.0 overflow 1.0 :
    (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        value: of f32.
    """

    name = "nn.to_nearest"


@irdl_op_definition
class DrawnOp(PlainRoundingOp):
    """One of the two numbers of a narrower type around each value, chosen by the machine.

    Each worker of a tile has a generator of random numbers, and uses them up in the order in which
    it writes. So the result depends on the plan, and a copy of the operation has another result.
    Where a level has no generators, the result is the nearest number. Error bounds allow both.

    Example: %1 = nn.drawn %0 digits 11.0 least -14.0 largest 65504.0 overflow 1.0 :
    (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        value: of f32.
    """

    name = "nn.drawn"


@irdl_op_definition
class StochasticOp(RoundingOp):
    """One of the two numbers of a narrower type around each value, chosen by a random word.

    The mean over all words is the value. The word is the first of Philox-4x32-10 (Salmon and
    others, 2011) for the counter [column, row, low, 1] and the key [high, key]. So it is the same
    however the operation is split or grouped, and in every copy of the operation. A machine has
    words of its own, at no cost (see nn.drawn); abele prices those.

    Example: %5 = nn.stochastic %x, %column, %row, %low, %high key 3.0 digits 11.0 least -14.0
    largest 65504.0 overflow 1.0 : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>,
    tensor<f32>) -> tensor<4xf32>

    Attributes:
        value: of f32.
        column, row: whole numbers, of f32 as all operands: the place of an element.
        low, high: two random words of the step, from 0 to 2^24 - 1. They broadcast with the others.
        key: tells this operation from others of the step, 0 to 2^32 - 1.
    """

    name = "nn.stochastic"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("key", *FORMAT)
    value = operand_def(TensorType)
    column = operand_def(TensorType)
    row = operand_def(TensorType)
    low = operand_def(TensorType)
    high = operand_def(TensorType)
    key = prop_def(NUMBER)
    assembly_format = (
        "$value `,` $column `,` $row `,` $low `,` $high `key` custom<Number>($key)"
        " `digits` custom<Number>($digits) `least` custom<Number>($least)"
        " `largest` custom<Number>($largest) `overflow` custom<Number>($overflow)" + CHAIN
    )

    def __init__(
        self,
        value: SSAValue,
        place: tuple[SSAValue, SSAValue],
        words: tuple[SSAValue, SSAValue],
        key: float,
        element: Attribute,
        overflow: Overflow,
    ):
        numbers = format_numbers(element, overflow)
        super().__init__([value, *place, *words], {"key": number(key), **numbers})

    def verify_(self) -> None:
        """Check also that the key is an integer of 32 bits."""
        super().verify_()
        _check_key(self.parameters[0])


class CodeOp(FormatOp, ABC):
    """A function between the numbers of a format and their places in order.

    Attributes:
        value: of f32.
    """

    PARAMETERS: ClassVar[tuple[str, ...]] = FORMAT[:2]
    value = operand_def(TensorType)
    assembly_format = (
        "$value `digits` custom<Number>($digits) `least` custom<Number>($least)" + CHAIN
    )

    def __init__(self, value: SSAValue, format_: NumberFormat):
        numbers = zip(FORMAT, map(float, (format_.digits, format_.least)), strict=False)
        super().__init__([value], {name: number(each) for name, each in numbers})


@irdl_op_definition
class ToCodeOp(CodeOp):
    """The place of each value in the order of the numbers of a format; 0 is at 0.

    The n-th number above 0 is at n, and the n-th below at -n: the code of a number without its sign
    bit, with the sign of the number. So 8-bit floats can be kept as integers where no type holds
    them. Values between two numbers are between their places; nn.to_nearest rounds before.

    Example: %1 = nn.to_code %0 digits 5.0 least 1.0 : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        value: of f32.
    """

    name = "nn.to_code"


@irdl_op_definition
class FromCodeOp(CodeOp):
    """The value at each place in the order of the numbers of a format: the inverse of nn.to_code.

    Example: %1 = nn.from_code %0 digits 5.0 least 1.0 : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        value: of f32.
    """

    name = "nn.from_code"


def _check_key(key: float) -> None:
    if not (0 <= key < 2**32 and key.is_integer()):
        raise VerifyException(f"key {key:g}; need a whole number from 0 to 2^32 - 1")


ELEMENTWISE: tuple[type[PureTensorOp], ...] = tuple(
    each
    for each in tuple(globals().values())
    if isinstance(each, type) and issubclass(each, PureTensorOp) and "name" in vars(each)
)
"""The operations of this file, in its order."""
