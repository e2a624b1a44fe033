"""The operations of arith and math as scalar functions of nn: one row for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import nn
from ...dialects.dense import array_of_dense
from ...dialects.dtypes import numpy_dtype
from ...ir.blob import repeated_element
from ...ir.refusals import Uncovered
from ...ir.support.number_kinds import bit_width
from .conversion import ToNn, element_in_nn, type_in_nn
from .scope import Operand, Read, Scope

Scalar = Callable[[Scope, Any, Sequence[Operand]], Operand]
"""What makes the value of an operation from those of its operands."""


def _function(name: str) -> Scalar:
    return lambda scope, _, given: scope.apply(name, *given)


def _is_truth(scope: Scope, operand: Operand) -> bool:
    return scope.element(operand) == i1


# Whole numbers


def _affine(name: str, of_index: Callable[[nn.Index, nn.Index], nn.Index | None]) -> Scalar:
    """A function of integers; of indices it stays an index if it is affine."""
    of_truth = {"add": "xor", "sub": "xor", "mul": "and"}[name]

    def make(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
        left, right = given
        if isinstance(left, nn.Index) and isinstance(right, nn.Index):
            found = of_index(left, right)
            if found is not None:
                return found
        return (
            _logic(of_truth, scope, given) if _is_truth(scope, left) else scope.apply(name, *given)
        )

    return make


def _times(left: nn.Index, right: nn.Index) -> nn.Index | None:
    if not right.terms:
        return left * right.offset
    return None if left.terms else right * left.offset


def _logic(name: str, scope: Scope, given: Sequence[Operand]) -> Read:
    if name != "xor":
        return scope.apply(f"logical_{name}", *given)
    return scope.apply("logical_not", scope.apply("equal", *given))


def _bitwise(name: str) -> Scalar:
    def make(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
        if _is_truth(scope, given[0]):
            return _logic(name, scope, given)
        return scope.apply(f"bitwise_{name}", *given)

    return make


def unsigned(element: Attribute) -> IntegerType:
    """The unsigned type of as many bits."""
    width = cast("IntegerType", element).width.data
    return IntegerType(width, Signedness.UNSIGNED)


def _unsigned(name: str, *, back: bool = True) -> Scalar:
    """A function of the same bits without a sign.

    Args:
        back: whether the result is a number of the old type.
    """

    def make(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
        element = scope.element(given[0])
        if element == i1:
            raise Uncovered("truth values as numbers without a sign")
        made = scope.apply(name, *(scope.bits(each, unsigned(element)) for each in given))
        return scope.bits(made, element) if back else made

    return make


def _floor_divided(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    left, right = given
    if (
        isinstance(left, nn.Index)
        and isinstance(right, nn.Index)
        and not right.terms
        and right.offset > 0
        and left.divisor == 1
    ):
        return left // right.offset
    return _rounded(scope, left, right, up=False)


def _ceil_divided(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    return _rounded(scope, *given, up=True)


def _rounded(scope: Scope, left: Operand, right: Operand, *, up: bool) -> Read:
    """A quotient of integers, rounded up or down: that towards zero, moved by one if need be."""
    quotient = scope.apply("div", left, right)
    rest = scope.apply("fmod", left, right)
    none = scope.like(0, rest)
    signs = scope.apply("equal", scope.apply("less", rest, none), scope.apply("less", right, none))
    moves = signs if up else scope.apply("logical_not", signs)
    moves = scope.apply("logical_and", moves, _compared("not equal", scope, (rest, none)))
    moved = scope.apply("add", quotient, scope.like(1 if up else -1, quotient))
    return scope.apply("select", moves, moved, quotient)


# Comparisons

WHOLE = ("equal", "not equal", "less", "less_equal", "greater", "greater_equal")
"""The comparisons of integers with a sign in MLIR's order; those without a sign follow."""


def _compared(name: str, scope: Scope, given: Sequence[Operand]) -> Read:
    if name.startswith("not "):
        return scope.apply("logical_not", scope.apply(name.removeprefix("not "), *given))
    return scope.apply(name, *given)


def _compare_integers(scope: Scope, op: arith.CmpiOp, given: Sequence[Operand]) -> Operand:
    number = op.predicate.value.data
    if number < len(WHOLE) and not (number > 1 and _is_truth(scope, given[0])):
        return _compared(WHOLE[number], scope, given)
    if number < len(WHOLE):
        raise Uncovered("truth values as numbers with a sign")
    name = WHOLE[number - 4]
    if _is_truth(scope, given[0]):
        wide = [scope.cast(each, IntegerType(8)) for each in given]
        return _compared(name, scope, wide)
    element = unsigned(scope.element(given[0]))
    return _compared(name, scope, [scope.bits(each, element) for each in given])


FLOATS = (
    *("false", "equal", "greater", "greater_equal", "less", "less_equal", "not equal", "ordered"),
    *("equal", "greater", "greater_equal", "less", "less_equal", "not equal", "not ordered"),
    "true",
)
"""The comparisons of floats in MLIR's order. From the ninth on, NaN makes them true."""


def _compare_floats(scope: Scope, op: arith.CmpfOp, given: Sequence[Operand]) -> Operand:
    number = op.predicate.value.data
    name = FLOATS[number]
    if name in ("false", "true"):
        return scope.number(name == "true", i1)
    lost = scope.apply("logical_or", *(scope.apply("is_nan", each) for each in given))
    if name.endswith("ordered"):
        return lost if name.startswith("not") else scope.apply("logical_not", lost)
    found = _compared(name, scope, given)
    # Comparisons with NaN are false, and so "not equal" is true.
    if number == 6:
        return scope.apply("logical_and", found, scope.apply("logical_not", lost))
    if number < 8 or number == 13:
        return found
    return scope.apply("logical_or", found, lost)


# Casts


def _cast(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    return scope.cast(given[0], result_element(op))


def _cast_signed(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    """A cast of an integer with a sign. One bit is 0 or -1."""
    (operand,) = given
    element = result_element(op)
    if not _is_truth(scope, operand):
        return scope.cast(operand, element)
    return scope.apply("neg", scope.read(scope.cast(operand, element)))


def _cast_unsigned(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    """A cast of the bits of an integer without a sign."""
    (operand,) = given
    element = scope.element(operand)
    if element == i1:
        return scope.cast(operand, result_element(op))
    return scope.cast(scope.bits(operand, unsigned(element)), result_element(op))


def _cast_to_unsigned(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    element = result_element(op)
    if element == i1:
        raise Uncovered("a cast of floats to i1")
    return scope.bits(scope.cast(given[0], unsigned(element)), element)


def _truncated(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    element = result_element(op)
    if element != i1:
        return scope.cast(given[0], element)
    lowest = scope.apply("bitwise_and", given[0], scope.like(1, given[0]))
    return scope.cast(lowest, i1)


def _cast_index(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    """A cast between an index and an integer."""
    (operand,) = given
    if isinstance(operand, nn.Index) and result_element(op) == scope.element(operand):
        return operand
    return _cast_signed(scope, op, given)


def _bitcast(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    return scope.bits(given[0], result_element(op))


def result_element(op: Operation) -> Attribute:
    """The element type of nn that the result of an operation has."""
    return type_in_nn(op.results[0].type).element_type


# Floats


def _number_wins(name: str) -> Scalar:
    """The larger or smaller of two numbers; a number if the other is NaN."""

    def make(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
        left, right = map(scope.read, given)
        found = scope.apply(name, left, right)
        found = scope.apply("select", scope.apply("is_nan", left), right, found)
        return scope.apply("select", scope.apply("is_nan", right), left, found)

    return make


def _chosen(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    return scope.apply("select", *map(scope.read, given))


def _after(*names: str) -> Scalar:
    """Functions of one operand, one after another."""

    def make(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
        found = given[0]
        for name in names:
            found = scope.apply(name, found)
        return found

    return make


def _scaled(name: str, *, before: float = 1.0, after: float = 1.0) -> Scalar:
    """A function of a multiple of the operand, or a multiple of a function."""

    def make(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
        found = given[0]
        if before != 1.0:
            found = scope.apply("scale", found, parameters=(before,))
        found = scope.apply(name, found)
        return found if after == 1.0 else scope.apply("scale", found, parameters=(after,))

    return make


LN2, LN10 = 0.6931471805599453, 2.302585092994046


def _log1p(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    """log(1 + x), as 2 artanh(x / (2 + x)), which keeps the digits of small x.

    For x of infinity this would be NaN: there, and from 1 on, it is the logarithm itself.
    """
    (x,) = given
    ratio = scope.apply("div", x, scope.apply("shift", x, parameters=(2.0,)))
    small = scope.apply("scale", scope.apply("atanh", ratio), parameters=(2.0,))
    large = scope.apply("log", scope.apply("shift", x, parameters=(1.0,)))
    return scope.apply("select", scope.apply("less", x, scope.like(1.0, x)), small, large)


def _expm1(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    """exp(x) - 1, as 2 sinh(x / 2) exp(x / 2), which keeps the digits of small x.

    From 40 on, both factors may overflow before the product does, and the 1 does not count.
    """
    (x,) = given
    half = scope.apply("scale", x, parameters=(0.5,))
    small = scope.apply("mul", scope.apply("sinh", half), scope.apply("exp", half))
    small = scope.apply("scale", small, parameters=(2.0,))
    large = scope.apply("shift", scope.apply("exp", x), parameters=(-1.0,))
    near = scope.apply("less", scope.apply("abs", x), scope.like(40.0, x))
    return scope.apply("select", near, small, large)


def _truncated_float(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    (x,) = given
    whole = scope.apply("floor", scope.apply("abs", x))
    negative = scope.apply("less", x, scope.like(0.0, x))
    return scope.apply("select", negative, scope.apply("neg", whole), whole)


def _rounded_away(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    """The nearest whole number; halves away from zero."""
    (x,) = given
    size = scope.apply("abs", x)
    whole = scope.apply("floor", size)
    half = scope.apply("greater_equal", scope.apply("sub", size, whole), scope.like(0.5, x))
    up = scope.apply("select", half, scope.apply("shift", whole, parameters=(1.0,)), whole)
    negative = scope.apply("less", x, scope.like(0.0, x))
    return scope.apply("select", negative, scope.apply("neg", up), up)


def _copied_sign(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    x, sign = given
    if not isinstance(element := scope.element(x), AnyFloat):
        raise Uncovered(f"elements {element}")
    whole = IntegerType(element.bitwidth)
    negative = scope.apply("less", scope.bits(sign, whole), scope.number(0, whole))
    size = scope.apply("abs", x)
    return scope.apply("select", negative, scope.apply("neg", size), size)


def _multiplied_added(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    return scope.apply("add", scope.apply("mul", given[0], given[1]), given[2])


def _powered(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    """A power with whole exponents."""
    base, exponent = given
    return scope.apply("pow", base, scope.cast(exponent, scope.element(base)))


def _angle(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    """atan2, in float32 for narrower floats."""
    element = result_element(op)
    wide = [scope.cast(each, nn.wide_element(element)) for each in given]
    return scope.cast(scope.built(nn.angle, wide), element)


def _cube_root(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
    (x,) = given
    size = scope.apply("power", scope.apply("abs", x), parameters=(1 / 3,))
    return _copied_sign(scope, op, (size, x))


def _counted(count: Callable[..., SSAValue]) -> Scalar:
    """A count of the bits of integers."""

    def make(scope: Scope, op: Operation, given: Sequence[Operand]) -> Operand:
        element = result_element(op)
        if bit_width(numpy_dtype(element)) < 8:
            raise Uncovered(f"bits of {element}; need integers of 8 bits or more")
        bits = scope.bits(given[0], unsigned(element))
        return scope.bits(scope.built(count, [bits]), element)

    return make


SCALARS: Mapping[type[Operation], Scalar] = {
    arith.AddiOp: _affine("add", lambda a, b: None if a.divisor + b.divisor > 2 else a + b),
    arith.SubiOp: _affine("sub", lambda a, b: None if a.divisor + b.divisor > 2 else a - b),
    arith.MuliOp: _affine("mul", lambda a, b: None if a.divisor + b.divisor > 2 else _times(a, b)),
    arith.DivSIOp: _function("div"),
    arith.RemSIOp: _function("fmod"),
    arith.DivUIOp: _unsigned("div"),
    arith.RemUIOp: _unsigned("fmod"),
    arith.FloorDivSIOp: _floor_divided,
    arith.CeilDivSIOp: _ceil_divided,
    arith.MinSIOp: _function("min"),
    arith.MaxSIOp: _function("max"),
    arith.MinUIOp: _unsigned("min"),
    arith.MaxUIOp: _unsigned("max"),
    arith.AndIOp: _bitwise("and"),
    arith.OrIOp: _bitwise("or"),
    arith.XOrIOp: _bitwise("xor"),
    arith.ShLIOp: _function("shift_left"),
    arith.ShRSIOp: _function("shift_right"),
    arith.ShRUIOp: _unsigned("shift_right"),
    arith.CmpiOp: _compare_integers,
    arith.CmpfOp: _compare_floats,
    arith.SelectOp: _chosen,
    arith.AddfOp: _function("add"),
    arith.SubfOp: _function("sub"),
    arith.MulfOp: _function("mul"),
    arith.DivfOp: _function("div"),
    arith.NegfOp: _function("neg"),
    arith.MaximumfOp: _function("max"),
    arith.MinimumfOp: _function("min"),
    arith.MaxnumfOp: _number_wins("max"),
    arith.MinnumfOp: _number_wins("min"),
    arith.BitcastOp: _bitcast,
    arith.IndexCastOp: _cast_index,
    arith.FPToSIOp: _cast,
    arith.FPToUIOp: _cast_to_unsigned,
    arith.SIToFPOp: _cast_signed,
    arith.UIToFPOp: _cast_unsigned,
    arith.ExtFOp: _cast,
    arith.TruncFOp: _cast,
    arith.TruncIOp: _truncated,
    arith.ExtSIOp: _cast_signed,
    arith.ExtUIOp: _cast_unsigned,
    math.AbsFOp: _function("abs"),
    math.AbsIOp: _function("abs"),
    math.AcosOp: _function("acos"),
    math.AcoshOp: _function("acosh"),
    math.AsinOp: _function("asin"),
    math.AsinhOp: _function("asinh"),
    math.AtanOp: _function("atan"),
    math.AtanhOp: _function("atanh"),
    math.CeilOp: _function("ceil"),
    math.CosOp: _function("cos"),
    math.CoshOp: _function("cosh"),
    math.ErfOp: _function("erf"),
    math.ExpOp: _function("exp"),
    math.Exp2Op: _scaled("exp", before=LN2),
    math.ExpM1Op: _expm1,
    math.FloorOp: _function("floor"),
    math.FmaOp: _multiplied_added,
    math.FPowIOp: _powered,
    math.IPowIOp: _function("pow"),
    math.LogOp: _function("log"),
    math.Log2Op: _scaled("log", after=1 / LN2),
    math.Log10Op: _scaled("log", after=1 / LN10),
    math.Log1pOp: _log1p,
    math.PowFOp: _function("pow"),
    math.RoundEvenOp: _function("round"),
    math.RoundOp: _rounded_away,
    math.RsqrtOp: _after("sqrt", "reciprocal"),
    math.SinOp: _function("sin"),
    math.SinhOp: _function("sinh"),
    math.SqrtOp: _function("sqrt"),
    math.TanOp: _function("tan"),
    math.TanhOp: _function("tanh"),
    math.TruncOp: _truncated_float,
    math.CopySignOp: _copied_sign,
    math.Atan2Op: _angle,
    math.CbrtOp: _cube_root,
    math.CtPopOp: _counted(nn.ones_counted),
    math.CountLeadingZerosOp: _counted(nn.leading_zeros),
    math.CountTrailingZerosOp: _counted(nn.trailing_zeros),
}
"""What each operation of arith and math computes."""


def constant(op: arith.ConstantOp, new: ToNn) -> None:
    """Convert a constant; that of an index is also known while the program is converted.

    before: %0 = arith.constant dense<0xFF800000> : tensor<2xf32>
    after:  %0 = nn.constant <...> : tensor<f32>
            %1 = nn.expand %0 to [2] : (tensor<f32>) -> tensor<2xf32>
    """
    value = op.value
    if isinstance(value, DenseIntOrFPElementsAttr):
        array = array_of_dense(value)
        one = repeated_element(array) if array.ndim else None
        new.values[op.result] = (
            new.emit(nn.ConstantOp(array))
            if one is None
            else new.emit(nn.ExpandOp(new.emit(nn.ConstantOp(one)), array.shape))
        )
        return
    if isinstance(value, IntegerAttr):
        number, element = value.value.data, element_in_nn(op.result.type)
        if element == i1:
            number = number & 1
        new.whole[op.result] = number
        new.values[op.result] = new.number(number, element)
        return
    if isinstance(value, FloatAttr):
        new.values[op.result] = new.number(value.value.data, element_in_nn(op.result.type))
        return
    raise Uncovered("a constant in a resource; need its numbers in the text")


def scalar(op: Operation, new: ToNn) -> None:
    """Convert an operation of arith or math outside bodies, on tensors or on numbers.

    before: %2 = arith.addf %0, %1 : tensor<4xf32>
    after:  %2 = nn.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    """
    given = [new.value(each) for each in op.operands]
    shape = type_in_nn(op.results[0].type).get_shape()
    scope = Scope(new, [nn.dim(f"d{i}", n).dim for i, n in enumerate(shape)])
    made = SCALARS[type(op)](scope, op, [scope.whole(each) for each in given])
    new.values[op.results[0]] = scope.arranged(made, scope.dims)
    _fold(op, new)


_FOLDED: Mapping[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
}


def _fold(op: Operation, new: ToNn) -> None:
    """Note the integer that an operation of known integers makes."""
    known = [new.whole.get(each) for each in op.operands]
    if None in known:
        return
    if isinstance(op, arith.IndexCastOp):
        new.whole[op.results[0]] = new.whole[op.operands[0]]
    elif type(op) in _FOLDED:
        left, right = (new.whole[each] for each in op.operands)
        new.whole[op.results[0]] = _FOLDED[type(op)](left, right)
