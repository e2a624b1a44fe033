"""Operations that make complex numbers of their parts, take them apart, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ComplexType,
    DenseArrayBase,
    Float32Type,
    Float64Type,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from ...ir.upstream import VerifyException
from ..source_types import element_of, is_complex, part_type, shape_of, tensor
from .base import INTEGERS, PureOp, integers_of, need_same_element, need_shape
from .elementwise import ElementwiseOp, UnaryOp
from .enums import FftTypeAttr


class PartOp(UnaryOp):
    """A part of each element.

    Attributes:
        operand: of any floats or complex numbers.
        result: of the operand's shape.
    """

    @classmethod
    def made_of(cls, operand: SSAValue) -> Attribute:
        """The type of the parts of complex numbers; that of floats itself."""
        return part_type(operand) if is_complex(operand) else operand.type


@irdl_op_definition
class RealOp(PartOp):
    """The real part of a.

    Example: %1 = "stablehlo.real"(%0) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    """

    name = "stablehlo.real"


@irdl_op_definition
class ImagOp(PartOp):
    """The imaginary part of a; 0 if a is a float.

    Example: %1 = "stablehlo.imag"(%0) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    """

    name = "stablehlo.imag"


@irdl_op_definition
class ComplexOp(ElementwiseOp):
    """The complex number a + bi.

    Example: %2 = "stablehlo.complex"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) ->
    tensor<4xcomplex<f32>>

    Attributes:
        lhs: a, of f32 or f64.
        rhs: b, of a's type.
    """

    name = "stablehlo.complex"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], result_types=[complex_type(lhs)])

    def verify_(self) -> None:
        """Check also the element types."""
        super().verify_()
        need_same_element("rhs", self.rhs, self.lhs)
        if not isinstance(element_of(self.lhs), Float32Type | Float64Type):
            raise VerifyException(f"lhs has elements {element_of(self.lhs)}; need f32 or f64")
        if element_of(self.result) != element_of(complex_type(self.lhs)):
            raise VerifyException(
                f"the result is {self.result.type}; need {complex_type(self.lhs)}"
            )


def complex_type(part: SSAValue | Attribute) -> TensorType[Attribute]:
    """The type of complex numbers whose parts have a type."""
    element = element_of(part)
    assert isinstance(element, Float32Type | Float64Type)
    return tensor(shape_of(part), ComplexType(element))


@irdl_op_definition
class FftOp(PureOp):
    """The Fourier transform along the last axes, or its inverse.

    RFFT transforms floats. Its result has the first n // 2 + 1 of the n frequencies of the last
    axis, because the others are conjugates of these. IRFFT is its inverse.

    Example: %1 = "stablehlo.fft"(%0) <{fft_type = #stablehlo<fft_type RFFT>, fft_length =
    array<i64: 4>}> : (tensor<4xf32>) -> tensor<3xcomplex<f32>>

    Attributes:
        operand: complex numbers; floats for RFFT.
        fft_type: the kind.
        fft_length: the sizes of the axes that are transformed; for IRFFT, those of the result.
        result: complex numbers; floats for IRFFT.
    """

    name = "stablehlo.fft"
    operand = operand_def(TensorType)
    fft_type = prop_def(FftTypeAttr)
    fft_length = prop_def(INTEGERS)
    result = result_def(TensorType)

    def __init__(self, operand: SSAValue, kind: str, lengths: Sequence[int]):
        properties = {
            "fft_type": FftTypeAttr(kind),
            "fft_length": DenseArrayBase.from_list(i64, list(lengths)),
        }
        shape = list(shape_of(operand))
        if kind == "RFFT":
            shape[-1] = lengths[-1] // 2 + 1
            type_ = tensor(shape, element_of(complex_type(operand)))
        elif kind == "IRFFT":
            shape[-1] = lengths[-1]
            type_ = tensor(shape, element_of(part_type(operand)))
        else:
            type_ = tensor(shape, element_of(operand))
        super().__init__(operands=[operand], properties=dict(properties), result_types=[type_])

    @property
    def lengths(self) -> tuple[int, ...]:
        """The sizes of the axes that are transformed."""
        return integers_of(self.fft_length, ())

    def verify_(self) -> None:
        """Check also the shapes and the element types."""
        super().verify_()
        kind, lengths, shape = self.fft_type.data, self.lengths, shape_of(self.operand)
        if not 1 <= len(lengths) <= min(3, len(shape)) or min(lengths) < 0:
            raise VerifyException(
                f"fft_length {list(lengths)}; need 1 to 3 sizes, for the last axes of {list(shape)}"
            )
        halved = {"RFFT": (False, True), "IRFFT": (True, False)}.get(kind, (False, False))
        for what, value, is_half, is_real in (
            ("operand", self.operand, halved[0], kind == "RFFT"),
            ("the result", self.result, halved[1], kind == "IRFFT"),
        ):
            last = lengths[-1] // 2 + 1 if is_half and lengths[-1] else lengths[-1]
            need_shape(what, value, (*shape[: -len(lengths)], *lengths[:-1], last))
            if is_complex(value) == is_real:
                raise VerifyException(f"{what} is {value.type}; {kind} has the other kind there")
        parts = [part_type(v) if is_complex(v) else v.type for v in (self.operand, self.result)]
        if element_of(parts[0]) != element_of(parts[1]):
            raise VerifyException(
                f"the result is {self.result.type}, the operand {self.operand.type}"
            )
        if not isinstance(element_of(parts[0]), Float32Type | Float64Type):
            raise VerifyException(f"operand is {self.operand.type}; need f32 or f64")


COMPLEX = (RealOp, ImagOp, ComplexOp, FftOp)
"""All of them."""
