"""ONNX's elementwise operators."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import ceil, floor, pi, sqrt

import numpy as np
import onnx.defs
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from ....backends.codelets.conversion import float_limits
from ....dialects import nn
from ....dialects.dtypes import element_type, numpy_dtype
from ....ir.support.number_kinds import is_unsigned
from ..building import dtype_of, is_float
from .conversions import SMALL, converted, ui8
from .node import Importer, Node, Results
from .ops_random import uniform

Binary = Callable[[SSAValue, SSAValue], nn.PureTensorOp]
Unary = Callable[[SSAValue], nn.PureTensorOp]


def _pair(node: Node) -> tuple[SSAValue, SSAValue]:
    """Both operands. Before opset 7, the second operand's axes begin at the attribute axis."""
    lhs, rhs = node[0], node[1]
    if node.opset < 7 and node.flag("broadcast") and node.has_attribute("axis"):
        rank, inner = len(nn.shape_of(lhs)), nn.shape_of(rhs)
        axis = node.axis(node.integer("axis"), rank)
        rhs = node.reshape(rhs, (*inner, *([1] * (rank - axis - len(inner)))))
    return lhs, rhs


def _binary(make: Binary) -> Importer:
    return lambda node: node.add(make(*_pair(node)))


def _unary(make: Unary) -> Importer:
    return lambda node: node.add(make(node[0]))


def _variadic(make: Binary) -> Importer:
    return lambda node: reduce(lambda a, b: node.add(make(a, b)), node.all())


def _total(node: Node, terms: list[SSAValue]) -> SSAValue:
    return reduce(lambda a, b: node.add(nn.AddOp(a, b)), terms)


def _sum(node: Node) -> Results:
    terms = node.all()
    if len(terms) <= 2:
        return _total(node, terms)
    total = _total(node, [node.wide(term) for term in terms])
    return node.cast(total, nn.element_of(terms[0]))


def _mean(node: Node) -> Results:
    terms = node.all()
    total = _total(node, [node.wide(term) for term in terms])
    average = node.add(nn.ScaleOp(total, 1.0 / len(terms)))
    return node.cast(average, nn.element_of(terms[0]))


def _pow(node: Node) -> Results:
    base, exponent = _pair(node)
    known = node.graph.known(node.value(1))
    element = nn.element_of(base)
    power = float(known) if known is not None and known.ndim == 0 else np.nan
    if is_float(base) and not np.isnan(power):
        simple: dict[float, Unary] = {2.0: nn.SquareOp, 0.5: nn.SqrtOp, -1.0: nn.ReciprocalOp}
        make = simple.get(power, lambda x: nn.PowerOp(x, power))
        return node.add(make(base))
    if is_float(exponent) and not is_float(base):
        exponent = node.wide(exponent)
        wide = nn.element_of(exponent)
        return node.cast(node.add(nn.PowOp(node.cast(base, wide), exponent)), element)
    return node.add(nn.PowOp(base, node.cast(exponent, element)))


def _clip(node: Node) -> Results:
    """A missing bound is the largest or smallest finite number, so that infinities are limited."""
    value = node[0]
    most = float(float_limits(dtype_of(value)).largest) if is_float(value) else np.inf
    if node.opset < 11:
        return _clipped(node, value, node.number("min", -most), node.number("max", most))
    bounds = [node.graph.known(node.value(i)) if node.has(i) else None for i in (1, 2)]
    missing = [node.has(i) and bounds[i - 1] is None for i in (1, 2)]
    if is_float(value) and not any(missing):
        low = -most if bounds[0] is None else node.array_scalar(1, "min")
        high = most if bounds[1] is None else node.array_scalar(2, "max")
        if not np.isnan((low, high)).any():
            return _clipped(node, value, low, high)
    value = node.add(nn.MaxOp(value, node[1])) if node.has(1) else value
    if is_float(value) and not (node.has(1) and node.has(2)):
        low, high = -np.inf if node.has(1) else -most, np.inf if node.has(2) else most
        value = node.add(nn.ClipOp(value, low, high))
    return node.add(nn.MinOp(value, node[2])) if node.has(2) else value


def _clipped(node: Node, value: SSAValue, low: float, high: float) -> SSAValue:
    if low > high:
        high_first = node.add(nn.MaxOp(value, node.constant(low, value)))
        return node.add(nn.MinOp(high_first, node.constant(high, value)))
    return node.add(nn.ClipOp(value, low, high))


def _cast(node: Node) -> Results:
    return converted(node, node[0], node.element(node.integer("to")))


def _cast_like(node: Node) -> Results:
    return converted(node, node[0], nn.element_of(node[1]))


def _bit_cast(node: Node) -> Results:
    value, element = node[0], node.element(node.integer("to"))
    if nn.element_of(value) == element:
        return node.value(0)
    if i1 in (nn.element_of(value), element):
        # A truth value is a byte that is 0 or 1.
        seen = node.cast(value, ui8) if nn.element_of(value) == i1 else value
        return node.cast(seen, i1) if element == i1 else _seen_as(node, seen, element)
    if {nn.element_of(value), element} <= SMALL:
        return node.cast(value, element)
    return _seen_as(node, value, element)


def _seen_as(node: Node, value: SSAValue, element: Attribute) -> SSAValue:
    return value if nn.element_of(value) == element else node.add(nn.BitCastOp(value, element))


def _where(node: Node) -> Results:
    return node.add(nn.SelectOp(node[0], node[1], node[2]))


def _xor(node: Node) -> Results:
    lhs, rhs = _pair(node)
    both = node.add(nn.LogicalNotOp(node.add(nn.LogicalAndOp(lhs, rhs))))
    return node.add(nn.LogicalAndOp(node.add(nn.LogicalOrOp(lhs, rhs)), both))


def _leaky_relu(node: Node) -> Results:
    return node.add(nn.LeakyReluOp(node[0], node.number("alpha", 0.01)))


def _negative_part(node: Node, other: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """The operand where it is not negative, and a function of it elsewhere."""
    value = node[0]
    negative = node.add(nn.LessOp(value, node.constant(0, value)))
    return node.add(nn.SelectOp(negative, other(value), value))


def _prelu(node: Node) -> Results:
    slope = node[1]
    shape, inner = nn.shape_of(node[0]), nn.shape_of(slope)
    if node.opset < 7 and len(inner) == 1 and len(shape) > 2 and inner[0] != 1:
        slope = node.reshape(slope, (*inner, *([1] * (len(shape) - 2))))
    return _negative_part(node, lambda x: node.add(nn.MulOp(x, slope)))


def _exp_minus_one(node: Node, value: SSAValue, factor: float) -> SSAValue:
    grown = node.add(nn.ShiftOp(node.add(nn.ExpOp(value)), -1.0))
    return grown if factor == 1.0 else node.add(nn.ScaleOp(grown, factor))


def _elu(node: Node) -> Results:
    alpha = node.number("alpha", 1.0)
    return _negative_part(node, lambda x: _exp_minus_one(node, x, alpha))


def _selu(node: Node) -> Results:
    alpha = node.number("alpha", 1.67326319217681884765625)
    gamma = node.number("gamma", 1.05070102214813232421875)
    curve = _negative_part(node, lambda x: _exp_minus_one(node, x, alpha))
    return node.add(nn.ScaleOp(curve, gamma))


def _celu(node: Node) -> Results:
    alpha = node.number("alpha", 1.0)

    def curve(x: SSAValue) -> SSAValue:
        return _exp_minus_one(node, node.add(nn.ScaleOp(x, 1.0 / alpha)), alpha)

    if alpha == 0:
        raise node.bad("alpha 0; need another number, because the operand is divided by it")
    return _negative_part(node, curve)


def _gelu(node: Node) -> Results:
    kind = node.text("approximate", "none")
    if kind not in GELU_CURVES:
        raise node.bad(f"approximate {kind!r}; need none or tanh")
    return gelu(node, node[0], kind)


def _normal_curve(node: Node, value: SSAValue) -> SSAValue:
    return node.add(nn.ErfOp(node.add(nn.ScaleOp(value, sqrt(0.5)))))


def _normal_curve_by_tanh(node: Node, value: SSAValue) -> SSAValue:
    square = node.add(nn.ScaleOp(node.add(nn.SquareOp(value)), 0.044715))
    cubic = node.add(nn.MulOp(value, node.add(nn.ShiftOp(square, 1.0))))
    return node.add(nn.TanhOp(node.add(nn.ScaleOp(cubic, sqrt(2.0 / pi)))))


GELU_CURVES = {"none": _normal_curve, "tanh": _normal_curve_by_tanh}
"""2 P(X < a) - 1 for a normal variable X: exact, or approximated by tanh."""


def gelu(node: Node, operand: SSAValue, kind: str = "none") -> SSAValue:
    """A value times the probability that a normal variable is below it.

    Args:
        kind: of GELU_CURVES.
    """
    value = node.wide(operand)
    curve = GELU_CURVES[kind](node, value)
    half = node.add(nn.ScaleOp(node.add(nn.ShiftOp(curve, 1.0)), 0.5))
    return node.cast(node.add(nn.MulOp(value, half)), nn.element_of(operand))


def _mish(node: Node) -> Results:
    value = node.wide(node[0])
    curve = node.add(nn.TanhOp(node.add(nn.SoftplusOp(value))))
    return node.cast(node.add(nn.MulOp(value, curve)), nn.element_of(node[0]))


def _swish(node: Node) -> Results:
    alpha, value = node.number("alpha", 1.0), node[0]
    scaled = value if alpha == 1.0 else node.add(nn.ScaleOp(value, alpha))
    return node.add(nn.MulOp(value, node.add(nn.SigmoidOp(scaled))))


def _shrink(node: Node) -> Results:
    """The operand moved towards 0 by a bias; 0 where it is near 0."""
    value = node[0]
    near, bias = node.number("lambd", 0.5), node.number("bias", 0.0)
    if not is_float(value):
        return _shrink_integers(node, value, near, bias)
    below = node.add(nn.LessOp(value, node.constant(-near, value)))
    above = node.add(nn.GreaterOp(value, node.constant(near, value)))
    up, down = (node.add(nn.ShiftOp(value, by)) if bias else value for by in (bias, -bias))
    rest = node.add(nn.SelectOp(above, down, node.constant(0, value)))
    return node.add(nn.SelectOp(below, up, rest))


def _shrink_integers(node: Node, value: SSAValue, near: float, bias: float) -> SSAValue:
    """The same for integers. Fractions that the bias leaves are dropped, as in onnxruntime."""
    low, high = floor(bias), ceil(bias)

    def moved(by: int) -> SSAValue:
        return node.add(nn.ShiftOp(value, float(by))) if by else value

    # Towards 0: a difference is rounded down if it is not negative, and up otherwise.
    unsigned = is_unsigned(dtype_of(value))
    down = moved(-high)
    if low < high and not (unsigned and high <= 0):
        enough = node.add(nn.GreaterEqualOp(value, node.constant(high, value)))
        down = node.add(nn.SelectOp(enough, down, moved(-low)))
    above = node.add(nn.GreaterOp(value, node.constant(floor(near), value)))
    rest = node.add(nn.SelectOp(above, down, node.constant(0, value)))
    least = ceil(-near)
    if unsigned and least <= 0:
        return rest
    up = moved(high)
    if low < high:
        enough = node.add(nn.LessEqualOp(value, node.constant(-high, value)))
        up = node.add(nn.SelectOp(enough, up, moved(low)))
    below = node.add(nn.LessOp(value, node.constant(least, value)))
    return node.add(nn.SelectOp(below, up, rest))


def _mod(node: Node) -> Results:
    make = nn.FmodOp if node.flag("fmod") else nn.ModOp
    return node.add(make(node[0], node[1]))


def _is_inf(node: Node) -> Results:
    positive, negative = node.flag("detect_positive", True), node.flag("detect_negative", True)
    value = node[0]
    if positive and negative:
        return node.add(nn.IsInfOp(value))
    if positive or negative:
        infinity = node.constant(np.inf if positive else -np.inf, value)
        return node.add(nn.EqualOp(value, infinity))
    return node.filled(np.zeros((), np.bool_), node.shape(0))


def _bit_shift(node: Node) -> Results:
    directions = {"LEFT": nn.ShiftLeftOp, "RIGHT": nn.ShiftRightOp}
    direction = node.text("direction")
    if direction not in directions:
        raise node.bad(f"direction {direction!r}; need LEFT or RIGHT")
    return node.add(directions[direction](node[0], node[1]))


def _softsign(node: Node) -> Results:
    value = node[0]
    size = node.add(nn.ShiftOp(node.add(nn.AbsOp(value)), 1.0))
    return node.add(nn.DivOp(value, size))


def _hard_sigmoid(node: Node) -> Results:
    line = node.add(nn.ScaleOp(node[0], node.number("alpha", 0.2)))
    return node.add(nn.ClipOp(node.add(nn.ShiftOp(line, node.number("beta", 0.5))), 0.0, 1.0))


def _hard_swish(node: Node) -> Results:
    line = node.add(nn.ShiftOp(node.add(nn.ScaleOp(node[0], 1.0 / 6.0)), 0.5))
    return node.add(nn.MulOp(node[0], node.add(nn.ClipOp(line, 0.0, 1.0))))


def _thresholded_relu(node: Node) -> Results:
    value = node[0]
    above = node.add(nn.GreaterOp(value, node.constant(node.number("alpha", 1.0), value)))
    return node.add(nn.SelectOp(above, value, node.constant(0, value)))


def _dropout(node: Node) -> Results:
    """The operand itself in inference; in training, random elements are dropped.

    A program that is to be trained drops elements even if the model was written for inference.
    """
    ratio = node.number("ratio", 0.5) if node.opset < 12 else 0.5
    training = node.opset < 7 and not node.flag("is_test")
    if node.opset >= 12:
        training = node.has(2) and node.array_scalar(2, "training_mode") != 0
    training = training or node.graph.training
    if node.opset >= 12:
        ratio = node.array_scalar(1, "ratio") if node.has(1) and training else ratio
    value = node.value(0)
    mask = np.bool_ if node.opset >= 10 else numpy_dtype(nn.element_of(node[0]))
    if training and ratio != 0 and 0 not in node.shape(0):
        return _dropped(node, ratio, element_type(np.dtype(mask)))
    return [value, node.filled(np.ones((), mask), node.shape(0))]


def _dropped(node: Node, ratio: float, mask: Attribute) -> Results:
    """The operand with a random part of its elements set to 0, and the mask of the other elements.

    The other elements are scaled up, so that the expected mean stays the same.
    """
    if not 0 <= ratio < 1:
        raise node.bad(f"ratio {ratio:g}; need 0 or more, and less than 1")
    value = node[0]
    drawn = uniform(node, node.shape(0))
    kept = node.add(nn.GreaterEqualOp(drawn, node.constant(ratio, drawn)))
    larger = node.add(nn.ScaleOp(value, 1 / (1 - ratio)))
    result = node.add(nn.SelectOp(kept, larger, node.constant(0, value)))
    return [result, node.cast(kept, mask)]


def _of_the_same_name() -> dict[str, Importer]:
    """Importers of operators that nn has under ONNX's name and with the same operands."""
    found: dict[str, Importer] = {}
    for op in nn.ELEMENTWISE:
        name = op.__name__.removesuffix("Op")
        if onnx.defs.has(name) and issubclass(op, nn.UnaryOp):
            found[name] = _unary(op)
        elif onnx.defs.has(name) and issubclass(op, nn.BinaryOp):
            found[name] = _binary(op)
    return found


ELEMENTWISE: dict[str, Importer] = {
    **_of_the_same_name(),
    "Pow": _pow,
    "Sum": _sum,
    "Max": _variadic(nn.MaxOp),
    "Min": _variadic(nn.MinOp),
    "Mean": _mean,
    "LessOrEqual": _binary(nn.LessEqualOp),
    "GreaterOrEqual": _binary(nn.GreaterEqualOp),
    "And": _binary(nn.LogicalAndOp),
    "Or": _binary(nn.LogicalOrOp),
    "Xor": _xor,
    "Not": _unary(nn.LogicalNotOp),
    "Where": _where,
    "LeakyRelu": _leaky_relu,
    "PRelu": _prelu,
    "Elu": _elu,
    "Selu": _selu,
    "Softsign": _softsign,
    "Celu": _celu,
    "Gelu": _gelu,
    "Mish": _mish,
    "Swish": _swish,
    "Shrink": _shrink,
    "Mod": _mod,
    "IsInf": _is_inf,
    "BitShift": _bit_shift,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "ThresholdedRelu": _thresholded_relu,
    "Clip": _clip,
    "Cast": _cast,
    "CastLike": _cast_like,
    "BitCast": _bit_cast,
    "Dropout": _dropout,
}
