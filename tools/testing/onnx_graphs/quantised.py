"""Valid shapes and parameters of operators on quantised tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .draw import Draw, Form, Parameter, Shape
from .pool import DTYPES

AXES_SINCE = 13
"""The first opset in which scales may differ along an axis."""
BLOCKS_SINCE = 21
"""The first opset in which scales may differ from block to block."""


def _scales(draw: Draw, shape: Shape) -> Parameter:
    """Positive scales, some of them powers of two.

    With these, quotients fall halfway between integers.
    """
    random = np.random.default_rng(draw.random.randrange(1 << 30))
    plain = random.uniform(0.01, 2.0, shape)
    return np.where(random.random(shape) < 0.5, plain, 2.0 ** random.integers(-4, 2, shape))


def _zeros(draw: Draw, variable: str, shape: Shape, *, only: bool = False) -> Parameter:
    """Zero points with the bound type of a variable.

    Args:
        only: all are 0, as for int32.
    """
    dtype = DTYPES[draw.types[variable]]
    if only or dtype.itemsize > 2 or dtype.kind not in "iu":
        return np.zeros(shape, dtype)
    random = np.random.default_rng(draw.random.randrange(1 << 30))
    low, high = (0, 9) if dtype.kind == "u" else (-4, 5)
    return random.integers(low, high, shape).astype(dtype)


def _spread(draw: Draw) -> tuple[Shape, dict[str, Parameter]]:
    """The shape of the scales, and the attributes that choose the granularity."""
    rank = draw.rank
    if draw.opset < AXES_SINCE or not rank or draw.chance(0.4):
        return (), {"axis": None, "block_size": None}
    axis = draw.random.randrange(rank)
    n = draw.shape[axis]
    if draw.opset >= BLOCKS_SINCE and n and draw.chance(0.5):
        size = draw.random.randint(1, n)
        shape = tuple(-(-n // size) if i == axis else m for i, m in enumerate(draw.shape))
        return shape, {"axis": draw.signed(axis), "block_size": size}
    return (n,), {"axis": draw.signed(axis), "block_size": None}


def _quantize(draw: Draw) -> Form:
    shape, parameters = _spread(draw)
    variable = draw.schema.inputs[2].type_str
    zero: Parameter = None
    if draw.chance(0.7):
        allowed = ["tensor(uint8)", "tensor(int8)"]
        draw.types[variable] = draw.one_of(*allowed)
        zero = _zeros(draw, variable, shape)
    else:
        draw.types[variable] = "tensor(uint8)"
    parameters |= {"y_scale": _scales(draw, shape), "y_zero_point": zero}
    return Form(parameters={**parameters, "precision": None, "output_dtype": None})


def _dequantize(draw: Draw) -> Form:
    shape, parameters = _spread(draw)
    zero: Parameter = None
    if draw.chance(0.7):
        zero = _zeros(draw, draw.schema.inputs[0].type_str, shape)
    parameters |= {"x_scale": _scales(draw, shape), "x_zero_point": zero}
    return Form(parameters={**parameters, "output_dtype": None})


def _weights_type(draw: Draw) -> None:
    """Bind the type of the second factor to a type that onnxruntime multiplies with the first."""
    signed = draw.types["T1"] == "tensor(int8)"
    draw.types["T2"] = "tensor(int8)" if signed else draw.one_of("tensor(int8)", "tensor(uint8)")


def quantised_forms(
    conv: Callable[[Draw], Form], matmul: Callable[[Draw], Form]
) -> dict[str, Callable[[Draw], Form]]:
    """The forms of all operators on quantised tensors, made from those of Conv and MatMul."""

    def conv_integer(draw: Draw) -> Form:
        _weights_type(draw)
        form = conv(draw)
        zeros = {"x_zero_point": _zeros(draw, "T1", ()), "w_zero_point": _zeros(draw, "T2", ())}
        return Form(form.others[:1], {**form.parameters, **zeros})

    def matmul_integer(draw: Draw) -> Form:
        _weights_type(draw)
        form = matmul(draw)
        shape = form.others[0] or ()
        is_plain = len(shape) == draw.rank == 2
        columns = shape[-1:] if is_plain and draw.chance(0.4) else ()
        zeros = {
            "a_zero_point": _zeros(draw, "T1", ()) if draw.chance(0.7) else None,
            "b_zero_point": _zeros(draw, "T2", columns) if draw.chance(0.7) else None,
        }
        return Form(form.others, {**form.parameters, **zeros})

    def qlinear_conv(draw: Draw) -> Form:
        _weights_type(draw)
        draw.types["T3"] = draw.types["T1"]
        form = conv(draw)
        weights = form.others[0]
        assert weights is not None
        each = weights[:1] if draw.chance(0.5) else ()
        parameters: dict[str, Parameter] = {
            "x_scale": _scales(draw, ()),
            "x_zero_point": _zeros(draw, "T1", ()),
            "w_scale": _scales(draw, each),
            "w_zero_point": _zeros(draw, "T2", each, only=bool(each)),
            "y_scale": 4.0 * _scales(draw, ()),
            "y_zero_point": _zeros(draw, "T3", ()),
        }
        # Operands after the first: the parameters, the weights at 2, and a bias at the end.
        others = [(), (), weights, (), (), (), (), weights[:1]]
        return Form(others, {**form.parameters, **parameters})

    def qlinear_matmul(draw: Draw) -> Form:
        _weights_type(draw)
        draw.types["T3"] = draw.types["T1"]
        form = matmul(draw)
        parameters: dict[str, Parameter] = {
            "a_scale": _scales(draw, ()),
            "a_zero_point": _zeros(draw, "T1", ()),
            "b_scale": _scales(draw, ()),
            "b_zero_point": _zeros(draw, "T2", ()),
            "y_scale": 4.0 * _scales(draw, ()),
            "y_zero_point": _zeros(draw, "T3", ()),
        }
        if "TS" in {each.type_param_str for each in draw.schema.type_constraints}:
            draw.types["TS"] = "tensor(float)"
        return Form([(), (), form.others[0]], {**form.parameters, **parameters})

    return {
        "QuantizeLinear": _quantize,
        "DequantizeLinear": _dequantize,
        "ConvInteger": conv_integer,
        "MatMulInteger": matmul_integer,
        "QLinearConv": qlinear_conv,
        "QLinearMatMul": qlinear_matmul,
        "DynamicQuantizeLinear": lambda draw: Form(results=3),
    }
