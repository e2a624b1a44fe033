"""ATen operators on elements."""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i1
from xdsl.ir import SSAValue

from ....backends.codelets.conversion import float_limits
from ....dialects import nn
from ....ir.support.number_kinds import is_floating
from ..building import dtype_of, is_float, shape_of
from .aten_node import F32, AtenNode, Importer, Results, only
from .ops_indexed import positions
from .promotion import DEFAULTS, promoted

Unary = Callable[[SSAValue], nn.PureTensorOp]
Binary = Callable[[SSAValue, SSAValue], nn.PureTensorOp]


def _of_floats(make: Unary) -> Importer:
    """A function of floats; integers become float32."""
    return lambda node: node.add(make(node.floats("self")))


def _of_any(make: Unary) -> Importer:
    return lambda node: node.add(make(node["self"]))


def _onnx(operator: str, **renamed: str) -> Importer:
    """An operator of ONNX on floats.

    Args:
        renamed: the attributes of the operator, each with the argument that holds its value.
    """

    def importer(node: AtenNode) -> Results:
        given = {name: node.number(own) for name, own in renamed.items() if node.has(own)}
        return node.apply(operator, node.floats("self"), **given)

    return importer


def _of_numbers(make: Unary) -> Importer:
    """A rounding, which leaves integers as they are."""

    def importer(node: AtenNode) -> Results:
        return node.add(make(node["self"])) if is_float(node["self"]) else node.value("self")

    return importer


# Functions that nn composes


def _in_wide(function: Callable[[AtenNode, SSAValue], SSAValue]) -> Importer:
    """A function of floats that is computed in float32 at least."""

    def importer(node: AtenNode) -> Results:
        value = node.floats("self")
        return node.cast(function(node, node.wide(value)), nn.element_of(value))

    return importer


def _rsqrt(node: AtenNode, x: SSAValue) -> SSAValue:
    return node.add(nn.ReciprocalOp(node.add(nn.SqrtOp(x))))


def _log_of(base: float) -> Callable[[AtenNode, SSAValue], SSAValue]:
    return lambda node, x: node.scaled(node.add(nn.LogOp(x)), 1.0 / log(base))


def _exp2(node: AtenNode, x: SSAValue) -> SSAValue:
    return node.add(nn.ExpOp(node.scaled(x, log(2.0))))


def _expm1(node: AtenNode, x: SSAValue) -> SSAValue:
    """exp(x) - 1 as tanh(x / 2) * (exp(x) + 1), which loses no digits near 0."""
    half = node.add(nn.TanhOp(node.scaled(x, 0.5)))
    grown = node.add(nn.MulOp(half, node.shifted(node.add(nn.ExpOp(x)), 1.0)))
    # Far from 0, exp may be infinite while tanh is 1, and the difference is exact enough.
    far = node.add(nn.GreaterOp(node.add(nn.AbsOp(x)), node.constant(1.0, x)))
    plain = node.shifted(node.add(nn.ExpOp(x)), -1.0)
    return node.add(nn.SelectOp(far, plain, grown))


def _log1p(node: AtenNode, x: SSAValue) -> SSAValue:
    """log(1 + x), which loses no digits near 0: log(u) * x / (u - 1) for the rounded u = 1 + x."""
    above = node.shifted(x, 1.0)
    lost = node.shifted(above, -1.0)
    is_one = node.add(nn.EqualOp(lost, node.constant(0.0, lost)))
    divisor = node.add(nn.SelectOp(is_one, node.constant(1.0, lost), lost))
    ratio = node.add(nn.DivOp(x, divisor))
    near = node.add(nn.MulOp(node.add(nn.LogOp(above)), ratio))
    small = node.add(nn.LessOp(node.add(nn.AbsOp(x)), node.constant(1.0, x)))
    found = node.add(nn.SelectOp(small, near, node.add(nn.LogOp(above))))
    return node.add(nn.SelectOp(is_one, x, found))


def _silu(node: AtenNode, x: SSAValue) -> SSAValue:
    return node.add(nn.MulOp(x, node.add(nn.SigmoidOp(x))))


def _log_sigmoid(node: AtenNode, x: SSAValue) -> SSAValue:
    return node.add(nn.NegOp(node.add(nn.SoftplusOp(node.add(nn.NegOp(x))))))


def _tanhshrink(node: AtenNode, x: SSAValue) -> SSAValue:
    return node.add(nn.SubOp(x, node.add(nn.TanhOp(x))))


def _erfc(node: AtenNode, x: SSAValue) -> SSAValue:
    return node.shifted(node.add(nn.NegOp(node.add(nn.ErfOp(x)))), 1.0)


def _frac(node: AtenNode, x: SSAValue) -> SSAValue:
    return node.add(nn.SubOp(x, _truncated(node, x)))


def _truncated(node: AtenNode, x: SSAValue) -> SSAValue:
    """A number rounded towards 0."""
    below = node.add(nn.LessOp(x, node.constant(0, x)))
    return node.add(nn.SelectOp(below, node.add(nn.CeilOp(x)), node.add(nn.FloorOp(x))))


def _trunc(node: AtenNode) -> Results:
    value = node["self"]
    return _truncated(node, value) if is_float(value) else value


def _round(node: AtenNode) -> Results:
    value, digits = node["self"], node.integer("decimals", 0)
    if not is_float(value):
        return value
    if not digits:
        return node.add(nn.RoundOp(value))
    if abs(digits) > 30:
        raise node.bad(f"argument decimals is {digits}; need -30 to 30")
    rounded = node.add(nn.RoundOp(node.scaled(value, 10.0**digits)))
    return node.scaled(rounded, 10.0**-digits)


def _gelu(node: AtenNode) -> Results:
    form = node.text("approximate", "none")
    if form not in ("none", "tanh"):
        raise node.bad(f"approximate {form!r}; need none or tanh")
    return node.apply("Gelu", node["self"], approximate=form)


def _softplus(node: AtenNode) -> Results:
    """log(1 + exp(beta * x)) / beta; x itself above a threshold, where the two are equal."""
    value, beta, threshold = node["self"], node.number("beta", 1.0), node.number("threshold", 20.0)
    if beta == 1.0 and threshold >= 20.0:
        return node.add(nn.SoftplusOp(value))
    if not beta:
        raise node.bad("argument beta is 0; need another number")
    scaled = node.scaled(value, beta)
    curve = node.scaled(node.add(nn.SoftplusOp(scaled)), 1.0 / beta)
    far = node.add(nn.GreaterOp(scaled, node.constant(threshold, scaled)))
    return node.add(nn.SelectOp(far, value, curve))


def _elu(node: AtenNode) -> Results:
    """Scale * x above 0, and scale * alpha * (exp(input_scale * x) - 1) below."""
    value = node["self"]
    alpha, scale = node.number("alpha", 1.0), node.number("scale", 1.0)
    inner = node.number("input_scale", 1.0)
    if scale == inner == 1.0:
        return node.apply("Elu", value, alpha=alpha)
    grown = node.add(nn.ExpOp(node.scaled(value, inner)))
    below = node.scaled(node.shifted(grown, -1.0), alpha * scale)
    negative = node.add(nn.LessOp(value, node.constant(0, value)))
    return node.add(nn.SelectOp(negative, below, node.scaled(value, scale)))


def _hardtanh(low: float, high: float) -> Importer:
    def importer(node: AtenNode) -> Results:
        least, most = node.number("min_val", low), node.number("max_val", high)
        return node.apply("Clip", node["self"], *_bounds(node, least, most))

    return importer


def _bounds(node: AtenNode, low: float, high: float) -> list[Any]:
    dtype = node.dtype("self")
    return [node.known(np.array(each, dtype)) for each in (low, high)]


def _threshold(node: AtenNode) -> Results:
    value = node["self"]
    above = node.add(nn.GreaterOp(value, node.constant(node.number("threshold"), value)))
    return node.add(nn.SelectOp(above, value, node.constant(node.number("value"), value)))


def _softshrink(node: AtenNode) -> Results:
    by = node.number("lambd", 0.5)
    return node.apply("Shrink", node["self"], lambd=by, bias=by)


def _hardshrink(node: AtenNode) -> Results:
    return node.apply("Shrink", node["self"], lambd=node.number("lambd", 0.5), bias=0.0)


def _glu(node: AtenNode) -> Results:
    shape = node.shape("self")
    axis = node.along(node.integer("dim", -1), len(shape))
    half = shape[axis] // 2
    if shape[axis] % 2:
        raise node.bad(f"axis {axis} of shape {list(shape)}; need an even size")
    left, right = (node.sliced(node.value("self"), axis, i * half, half) for i in (0, 1))
    return node.add(nn.MulOp(left, node.add(nn.SigmoidOp(right))))


def _prelu(node: AtenNode) -> Results:
    rank, slope = len(node.shape("self")), node["weight"]
    count = nn.shape_of(slope)
    along = (*count, *[1] * (rank - 2)) if count and count[0] != 1 and rank > 1 else count
    return node.apply("PRelu", node["self"], node.reshape(slope, along))


def _logit(node: AtenNode) -> Results:
    value = node.floats("self")
    if node.has("eps"):
        eps = node.number("eps")
        value = node.add(nn.ClipOp(value, eps, 1.0 - eps))
    rest = node.shifted(node.add(nn.NegOp(value)), 1.0)
    return node.add(nn.LogOp(node.add(nn.DivOp(value, rest))))


def _nan_to_num(node: AtenNode) -> Results:
    value = node["self"]
    if not is_float(value):
        return value
    most = float(float_limits(dtype_of(value)).largest)
    high, low = node.number("posinf", most), node.number("neginf", -most)
    infinite = node.add(nn.IsInfOp(value))
    positive = node.add(nn.GreaterOp(value, node.constant(0, value)))
    bound = node.add(nn.SelectOp(positive, node.constant(high, value), node.constant(low, value)))
    finite = node.add(nn.SelectOp(infinite, bound, value))
    empty = node.add(nn.IsNaNOp(value))
    return node.add(nn.SelectOp(empty, node.constant(node.number("nan", 0.0), value), finite))


def _is_finite(node: AtenNode) -> Results:
    value = node["self"]
    if not is_float(value):
        return node.filled(np.ones((), np.bool_), node.shape("self"))
    wrong = node.add(nn.LogicalOrOp(node.add(nn.IsInfOp(value)), node.add(nn.IsNaNOp(value))))
    return node.add(nn.LogicalNotOp(wrong))


def _about_floats(make: Unary) -> Importer:
    """A question about floats, which is false for integers."""

    def importer(node: AtenNode) -> Results:
        value = node["self"]
        if not is_float(value):
            return node.filled(np.zeros((), np.bool_), node.shape("self"))
        return node.add(make(value))

    return importer


def _truth(node: AtenNode, name: str) -> SSAValue:
    return node.converted(node.value(name), DEFAULTS[0])


def _not(node: AtenNode) -> Results:
    return node.add(nn.LogicalNotOp(_truth(node, "self")))


def _bitwise_not(node: AtenNode) -> Results:
    value = node["self"]
    return node.add((nn.LogicalNotOp if nn.element_of(value) == i1 else nn.BitwiseNotOp)(value))


# Two operands


def _operands(node: AtenNode, *names: str) -> list[SSAValue]:
    """Operands in the type to which torch promotes them."""
    return node.alike(*(_given(node, name) for name in names))


def _given(node: AtenNode, name: str) -> Any:
    given = node.get(name)
    return given if isinstance(given, bool | int | float) else node.value(name)


def _binary(make: Binary, first: str = "self", second: str = "other") -> Importer:
    return lambda node: node.add(make(*_operands(node, first, second)))


def _sum_of(make: Binary, first: str, second: str) -> Importer:
    """A sum or difference, whose second term has a factor alpha. Truth values become integers."""

    def importer(node: AtenNode) -> Results:
        left, right = _operands(node, first, second)
        alpha = node.get("alpha", 1)
        if nn.element_of(left) == i1:
            return node.add(nn.LogicalOrOp(left, right))
        if alpha != 1:
            right = node.add(nn.MulOp(right, node.as_dtype(alpha, dtype_of(right))))
        return node.add(make(left, right))

    return importer


def _mul(node: AtenNode) -> Results:
    left, right = _operands(node, "self", "other")
    make = nn.LogicalAndOp if nn.element_of(left) == i1 else nn.MulOp
    return node.add(make(left, right))


def _div(node: AtenNode) -> Results:
    mode = node.text("rounding_mode", "")
    left, right = _operands(node, "self", "other")
    if mode and not is_float(left):
        return _floor_of_integers(node, left, right) if mode == "floor" else _cut(node, left, right)
    if not is_float(left):
        left, right = (node.converted(each, F32) for each in (left, right))
    ratio = node.add(nn.DivOp(left, right))
    if not mode:
        return ratio
    if mode not in ROUNDINGS:
        raise node.bad(f"rounding_mode {mode!r}; need floor or trunc")
    return ROUNDINGS[mode](node, ratio)


def _floor(node: AtenNode, value: SSAValue) -> SSAValue:
    return node.add(nn.FloorOp(value))


ROUNDINGS = {"floor": _floor, "trunc": _truncated}


def _cut(node: AtenNode, left: SSAValue, right: SSAValue) -> SSAValue:
    """The quotient of integers, rounded towards 0."""
    return node.add(nn.DivOp(left, right))


def _floor_of_integers(node: AtenNode, left: SSAValue, right: SSAValue) -> SSAValue:
    """The quotient of integers, rounded down: (a - a mod b) / b, where mod has the sign of b."""
    rest = node.add(nn.ModOp(left, right))
    return node.add(nn.DivOp(node.add(nn.SubOp(left, rest)), right))


def _floor_divide(node: AtenNode) -> Results:
    left, right = _operands(node, "self", "other")
    if is_float(left):
        return _floor(node, node.add(nn.DivOp(left, right)))
    return _floor_of_integers(node, left, right)


def _remainder(node: AtenNode) -> Results:
    """What remains of a division that is rounded down: it has the divisor's sign."""
    left, right = _operands(node, "self", "other")
    if not is_float(left):
        return node.add(nn.ModOp(left, right))
    rest = node.add(nn.FmodOp(left, right))
    zero = node.constant(0, rest)
    signs = [node.add(nn.LessOp(each, zero)) for each in (rest, right)]
    differ = node.add(nn.LogicalNotOp(node.add(nn.EqualOp(*(node.cast(s, f32) for s in signs)))))
    nonzero = node.add(nn.LogicalNotOp(node.add(nn.EqualOp(rest, zero))))
    moved = node.add(nn.AddOp(rest, right))
    return node.add(nn.SelectOp(node.add(nn.LogicalAndOp(differ, nonzero)), moved, rest))


def _pow(node: AtenNode) -> Results:
    base, exponent = _given(node, "self"), _given(node, "exponent")
    if not isinstance(exponent, int | float) or isinstance(base, int | float):
        left, right = node.alike(base, exponent)
        return node.apply("Pow", left, right)
    dtype = promoted([(dtype_of(base), bool(shape_of(base))), exponent])
    left = node.converted(base, dtype)
    return node.apply("Pow", left, node.known(np.array(exponent, dtype)))


def _where(node: AtenNode) -> Results:
    if not node.has("self"):
        return positions(node, node.value("condition"))
    left, right = _operands(node, "self", "other")
    return node.add(nn.SelectOp(_truth(node, "condition"), left, right))


def _clamp(low: str, high: str) -> Importer:
    """A value between bounds; each bound is a number, a tensor, or left out."""

    def importer(node: AtenNode) -> Results:
        given = {name: _given(node, name) for name in (low, high) if name and node.has(name)}
        if all(isinstance(each, int | float) for each in given.values()):
            dtype = promoted([(node.dtype("self"), True), *given.values()])
            value = node.converted(node.value("self"), dtype)
            bounds = [
                node.known(np.array(given[name]).astype(dtype)) if name in given else None
                for name in (low, high)
            ]
            return node.apply("Clip", value, *_one_sided(node, bounds, dtype))
        value, *rest = node.alike(node.value("self"), *given.values())
        for name, bound in zip(given, rest, strict=True):
            value = node.add((nn.MaxOp if name == low else nn.MinOp)(value, bound))
        return value

    return importer


def _one_sided(node: AtenNode, bounds: list[Any], dtype: np.dtype[Any]) -> list[Any]:
    """Bounds for floats: a missing one is infinite, as ONNX would take the largest finite one."""
    if not is_floating(dtype):
        return bounds
    infinite = (-np.inf, np.inf)
    return [
        node.known(np.array(edge, dtype)) if each is None else each
        for each, edge in zip(bounds, infinite, strict=True)
    ]


def _masked_fill(node: AtenNode) -> Results:
    value, other = _given(node, "self"), node.get("value")
    fill = node.as_dtype(other, dtype_of(value))
    return node.add(nn.SelectOp(_truth(node, "mask"), fill, node.ssa(value)))


def _lerp(node: AtenNode) -> Results:
    start, end, weight = node.alike(node.value("self"), node.value("end"), _given(node, "weight"))
    return node.add(nn.AddOp(start, node.add(nn.MulOp(weight, node.add(nn.SubOp(end, start))))))


def _with_third(make: Binary) -> Importer:
    """Self + value * tensor1 (* or /) tensor2."""

    def importer(node: AtenNode) -> Results:
        base, first, second = _operands(node, "self", "tensor1", "tensor2")
        found = node.add(make(first, second))
        factor = node.get("value", 1)
        if factor != 1:
            found = node.add(nn.MulOp(found, node.as_dtype(factor, dtype_of(found))))
        return node.add(nn.AddOp(base, found))

    return importer


def _logical(make: Binary) -> Importer:
    return lambda node: node.add(make(_truth(node, "self"), _truth(node, "other")))


def _logical_xor(node: AtenNode) -> Results:
    return node.apply("Xor", _truth(node, "self"), _truth(node, "other"))


def _bitwise(whole: Binary, truth: Binary | None) -> Importer:
    """An operation on bits; on truth values, the one of logic."""

    def importer(node: AtenNode) -> Results:
        left, right = _operands(node, "self", "other")
        if nn.element_of(left) != i1:
            return node.add(whole(left, right))
        return node.apply("Xor", left, right) if truth is None else node.add(truth(left, right))

    return importer


def _hypot(node: AtenNode) -> Results:
    left, right = _operands(node, "self", "other")
    squares = [node.add(nn.SquareOp(each)) for each in (left, right)]
    return node.add(nn.SqrtOp(node.add(nn.AddOp(*squares))))


def _atan2(node: AtenNode) -> Results:
    y, x = (node.wide(each) for each in _operands(node, "self", "other"))
    return nn.angle(y, x, node.add, node.constant)


def _xlogy(node: AtenNode) -> Results:
    x, y = _operands(node, "self", "other")
    zero = node.constant(0, x)
    is_zero = node.add(nn.EqualOp(x, zero))
    safe = node.add(nn.SelectOp(is_zero, node.constant(1, y), y))
    return node.add(nn.MulOp(x, node.add(nn.LogOp(safe))))


# Conversions


def _same(node: AtenNode) -> Results:
    return node.value("self")


def _to(node: AtenNode) -> Results:
    """A value with another element type. Devices and orders of axes in memory mean nothing here."""
    value = node.value("self") if node.has("self") else node.value("input")
    if node.has("other"):
        return node.converted(value, node.dtype("other"))
    dtype = node.wanted_dtype(dtype_of(value))
    return value if dtype == dtype_of(value) else node.converted(value, dtype)


def _type_as(node: AtenNode) -> Results:
    return node.converted(node.value("self"), node.dtype("other"))


def _dropout(node: AtenNode) -> Results:
    """Random elements are dropped where the module was exported in training, or is trained here."""
    value, training = node.value("input"), node.flag("train", True) or node.graph.training
    ratio = node.known(np.array(node.number("p", 0.5), np.float32))
    if not training:
        return [value, None]
    found = node.apply_all("Dropout", value, ratio, node.known(np.array(True)), results=2)
    return [*found]


ELEMENTWISE: dict[str, Importer] = {
    **{
        name: _of_floats(make)
        for name, make in {
            "acos": nn.AcosOp,
            "acosh": nn.AcoshOp,
            "asin": nn.AsinOp,
            "asinh": nn.AsinhOp,
            "atan": nn.AtanOp,
            "atanh": nn.AtanhOp,
            "cos": nn.CosOp,
            "cosh": nn.CoshOp,
            "erf": nn.ErfOp,
            "exp": nn.ExpOp,
            "log": nn.LogOp,
            "reciprocal": nn.ReciprocalOp,
            "sigmoid": nn.SigmoidOp,
            "sin": nn.SinOp,
            "sinh": nn.SinhOp,
            "sqrt": nn.SqrtOp,
            "tan": nn.TanOp,
            "tanh": nn.TanhOp,
        }.items()
    },
    **{
        name: _of_any(make)
        for name, make in {
            "abs": nn.AbsOp,
            "neg": nn.NegOp,
            "relu": nn.ReluOp,
            "sign": nn.SignOp,
            "sgn": nn.SignOp,
        }.items()
    },
    "ceil": _of_numbers(nn.CeilOp),
    "floor": _of_numbers(nn.FloorOp),
    "round": _round,
    "trunc": _trunc,
    "fix": _trunc,
    "square": lambda node: node.add(nn.SquareOp(node["self"])),
    "positive": _same,
    "rsqrt": _in_wide(_rsqrt),
    "exp2": _in_wide(_exp2),
    "expm1": _in_wide(_expm1),
    "log1p": _in_wide(_log1p),
    "log2": _in_wide(_log_of(2.0)),
    "log10": _in_wide(_log_of(10.0)),
    "erfc": _in_wide(_erfc),
    "frac": _in_wide(_frac),
    "deg2rad": _in_wide(lambda node, x: node.scaled(x, pi / 180)),
    "rad2deg": _in_wide(lambda node, x: node.scaled(x, 180 / pi)),
    "silu": _in_wide(_silu),
    "log_sigmoid": _in_wide(_log_sigmoid),
    "log_sigmoid_forward": _in_wide(_log_sigmoid),
    "tanhshrink": _in_wide(_tanhshrink),
    "gelu": _gelu,
    "mish": _onnx("Mish"),
    "softsign": _onnx("Softsign"),
    "hardswish": _onnx("HardSwish"),
    "hardsigmoid": lambda node: node.apply("HardSigmoid", node["self"], alpha=1 / 6, beta=0.5),
    "leaky_relu": lambda node: node.apply(
        "LeakyRelu", node["self"], alpha=node.number("negative_slope", 0.01)
    ),
    "rrelu": lambda node: node.apply(
        "LeakyRelu",
        node["self"],
        alpha=(node.number("lower", 0.125) + node.number("upper", 1 / 3)) / 2,
    ),
    "hardtanh": _hardtanh(-1.0, 1.0),
    "relu6": _hardtanh(0.0, 6.0),
    "elu": _elu,
    "selu": _onnx("Selu"),
    "celu": _onnx("Celu", alpha="alpha"),
    "softplus": _softplus,
    "threshold": _threshold,
    "softshrink": _softshrink,
    "hardshrink": _hardshrink,
    "glu": _glu,
    "prelu": _prelu,
    "_prelu_kernel": _prelu,
    "logit": _logit,
    "nan_to_num": _nan_to_num,
    "isfinite": _is_finite,
    "isnan": _about_floats(nn.IsNaNOp),
    "isinf": _about_floats(nn.IsInfOp),
    "logical_not": _not,
    "bitwise_not": _bitwise_not,
    "add": _sum_of(nn.AddOp, "self", "other"),
    "sub": _sum_of(nn.SubOp, "self", "other"),
    "subtract": _sum_of(nn.SubOp, "self", "other"),
    "rsub": lambda node: _rsub(node),
    "mul": _mul,
    "multiply": _mul,
    "div": _div,
    "divide": _div,
    "true_divide": _div,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _binary(nn.FmodOp),
    "pow": _pow,
    "maximum": _binary(nn.MaxOp),
    "minimum": _binary(nn.MinOp),
    "fmax": _binary(nn.MaxOp),
    "fmin": _binary(nn.MinOp),
    "max.other": _binary(nn.MaxOp),
    "min.other": _binary(nn.MinOp),
    "eq": _binary(nn.EqualOp),
    "ne": lambda node: node.add(
        nn.LogicalNotOp(node.add(nn.EqualOp(*_operands(node, "self", "other"))))
    ),
    "lt": _binary(nn.LessOp),
    "le": _binary(nn.LessEqualOp),
    "gt": _binary(nn.GreaterOp),
    "ge": _binary(nn.GreaterEqualOp),
    "where": _where,
    "clamp": _clamp("min", "max"),
    "clip": _clamp("min", "max"),
    "clamp_min": _clamp("min", ""),
    "clamp_max": _clamp("", "max"),
    "masked_fill": _masked_fill,
    "lerp": _lerp,
    "addcmul": _with_third(nn.MulOp),
    "addcdiv": _with_third(nn.DivOp),
    "logical_and": _logical(nn.LogicalAndOp),
    "logical_or": _logical(nn.LogicalOrOp),
    "logical_xor": _logical_xor,
    "bitwise_and": _bitwise(nn.BitwiseAndOp, nn.LogicalAndOp),
    "bitwise_or": _bitwise(nn.BitwiseOrOp, nn.LogicalOrOp),
    "bitwise_xor": _bitwise(nn.BitwiseXorOp, None),
    "__and__": _bitwise(nn.BitwiseAndOp, nn.LogicalAndOp),
    "__or__": _bitwise(nn.BitwiseOrOp, nn.LogicalOrOp),
    "__xor__": _bitwise(nn.BitwiseXorOp, None),
    "bitwise_left_shift": _binary(nn.ShiftLeftOp),
    "bitwise_right_shift": _binary(nn.ShiftRightOp),
    "__lshift__": _binary(nn.ShiftLeftOp),
    "__rshift__": _binary(nn.ShiftRightOp),
    "hypot": _hypot,
    "atan2": _atan2,
    "xlogy": _xlogy,
    "to": _to,
    "_to_copy": _to,
    "type_as": _type_as,
    **dict.fromkeys(
        ("contiguous", "clone", "detach", "alias", "lift_fresh_copy", "lift_fresh", "detach_"),
        _same,
    ),
    "dropout": lambda node: only(_dropout(node)),
    "feature_dropout": lambda node: only(_dropout(node)),
    "native_dropout": _dropout,
}
"""The importers of operators on elements."""


def _rsub(node: AtenNode) -> Results:
    """Other - alpha * self."""
    left, right = _operands(node, "other", "self")
    alpha = node.get("alpha", 1)
    if alpha != 1:
        right = node.add(nn.MulOp(right, node.as_dtype(alpha, dtype_of(right))))
    return node.add(nn.SubOp(left, right))
