"""Operations that compute each result element from one element of every operand.

Operands are broadcast as in NumPy. Each class is named after the scalar function it applies.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.traits import Commutative

from ...ir.geometry.space import AccessMap, AxisMap, Dim, Space
from ...ir.unmet import Unmet
from ...ir.upstream import VerifyException
from ..scalar_functions import FUNCTIONS, chain_operands
from ..structured import Body, Stage, Structure, Structured
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
from .chain import CHAIN, ChainableOp, can_chain

__all__ = [
    "AbsOp",
    "AddOp",
    "BinaryOp",
    "CastOp",
    "ClipOp",
    "CompareOp",
    "DivOp",
    "ELEMENTWISE",
    "ElementwiseOp",
    "EqualOp",
    "ExpOp",
    "FloorOp",
    "GreaterEqualOp",
    "GreaterOp",
    "LeakyReluOp",
    "LessEqualOp",
    "LessOp",
    "LogOp",
    "LogicalAndOp",
    "LogicalNotOp",
    "LogicalOp",
    "LogicalOrOp",
    "MaxOp",
    "MinOp",
    "MulOp",
    "NegOp",
    "ParametrisedOp",
    "PowOp",
    "PowerOp",
    "ReciprocalOp",
    "ReluOp",
    "ScaleOp",
    "SelectOp",
    "ShiftOp",
    "SigmoidOp",
    "SignOp",
    "SoftplusOp",
    "SqrtOp",
    "SquareOp",
    "SubOp",
    "TanhOp",
    "UnaryOp",
    "stage_of",
]
"""What abele.dialects.nn exports."""


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
        return same_element(*self.core_operands)

    def infer(self) -> TensorType[Attribute]:
        """The shape that the operands broadcast to."""
        return tensor(broadcast([shape_of(v) for v in self.core_operands]), self.result_element())

    def core_structure(self) -> Structure:
        """One dimension per result axis."""
        shapes = tuple([shape_of(v) for v in self.core_operands])
        space = broadcast_space(shapes, shape_of(self.result))
        return Structure(space, Body(self.function, None, self.parameters))


def stage_of(op: Operation, at: int) -> Stage | None:
    """The stage that an operation is in a chain whose value so far is its operand number at.

    The stage's extras are the other operands, in order. None if it cannot be a stage: its function
    may not follow, or it has a chain itself, has other element types, enlarges the value, or reads
    it twice.
    """
    if not isinstance(op, ElementwiseOp) or op.stages or not can_chain(op):
        return None
    value = op.operands[at]
    if value.type != op.result.type or list(op.operands).count(value) > 1:
        return None
    allowed = chain_operands(op.function)
    # Swapping the operands of a commutative function changes no bit.
    place = 0 if op.has_trait(Commutative) and 0 in allowed else at
    if place not in allowed:
        return None
    return Stage(op.function, op.parameters, place)


class UnaryOp(ElementwiseOp, ABC):
    """A scalar function of one operand.

    operand: a in the formula. result: of the operand's type.
    """

    operand = operand_def(TensorType)
    assembly_format = "$operand" + CHAIN

    def __init__(self, operand: SSAValue):
        super().__init__([operand])


class BinaryOp(ElementwiseOp, ABC):
    """A scalar function of two operands.

    lhs: a in the formula. rhs: b in the formula, of a's element type; they broadcast, as in NumPy.
    """

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    assembly_format = "$lhs `,` $rhs" + CHAIN

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__([lhs, rhs])


class CompareOp(BinaryOp, ABC):
    """A comparison: the result's elements are i1."""

    def result_element(self) -> Attribute:
        """The operands agree; the result is i1."""
        same_element(self.lhs, self.rhs)
        return i1


def _need_booleans(values: Sequence[SSAValue]) -> Attribute:
    for i, value in enumerate(values):
        if element_of(value) != i1:
            raise Unmet(f"operand {i} has elements {element_of(value)}; need i1", f"operand {i}")
    return i1


class LogicalOp(BinaryOp, ABC):
    """A truth function of two tensors of i1."""

    def result_element(self) -> Attribute:
        """All are i1."""
        return _need_booleans(self.core_operands)


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
        """All are i1."""
        return _need_booleans(self.core_operands)


@irdl_op_definition
class SelectOp(ElementwiseOp):
    """a where the condition holds, b elsewhere.

    condition: of i1; it broadcasts with the others. lhs: a. rhs: b, of a's element type.

    Example: %3 = nn.select %c, %0, %1 : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>)
    -> tensor<4xf32>
    """

    name = "nn.select"
    condition = operand_def(TensorType)
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    assembly_format = "$condition `,` $lhs `,` $rhs" + CHAIN

    def __init__(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue):
        super().__init__([condition, lhs, rhs])

    def result_element(self) -> Attribute:
        """That of a and b; the condition is i1."""
        _need_booleans([self.condition])
        return same_element(self.lhs, self.rhs)


@irdl_op_definition
class CastOp(PureTensorOp, Structured):
    """The same values as elements of another type.

    operand: of any shape and elements. result: of the operand's shape.

    Example: %1 = nn.cast %0 : (tensor<4xf32>) -> tensor<4xf16>
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


class ParametrisedOp(ElementwiseOp, ABC):
    """A scalar function of one operand and of constants.

    operand: a in the formula. result: of the operand's type.
    """

    operand = operand_def(TensorType)

    def __init__(self, operand: SSAValue, properties: dict[str, Attribute]):
        super().__init__([operand], properties)

    def verify_(self) -> None:
        """As for all tensor operations; also, no constant is NaN."""
        super().verify_()
        if any(p != p for p in self.parameters):
            raise VerifyException(f"parameters {list(self.parameters)}; need numbers")


@irdl_op_definition
class LeakyReluOp(ParametrisedOp):
    """a where a is positive, alpha * a elsewhere.

    alpha: the slope below 0.

    Example: %1 = nn.leaky_relu %0 slope 0.01 : (tensor<4xf32>) -> tensor<4xf32>
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

    low: the least result; -inf for no bound. high: the largest result; inf for no bound.

    Example: %1 = nn.clip %0 to 0.0, 6.0 : (tensor<4xf32>) -> tensor<4xf32>
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

    factor: the constant.

    Example: %1 = nn.scale %0 by 0.5 : (tensor<4xf32>) -> tensor<4xf32>
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

    amount: the constant.

    Example: %1 = nn.shift %0 by 1.0 : (tensor<4xf32>) -> tensor<4xf32>
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

    exponent: the power.

    Example: %1 = nn.power %0 to -0.75 : (tensor<4xf32>) -> tensor<4xf32>
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


ELEMENTWISE: tuple[type[PureTensorOp], ...] = tuple(
    each
    for each in tuple(globals().values())
    if isinstance(each, type) and issubclass(each, PureTensorOp) and "name" in vars(each)
)
"""The operations of this file, in its order."""
