"""Every scalar function of nn, in the other dialects."""

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from abele.backends.reference import run_reference
from abele.backends.stablehlo import run_stablehlo
from abele.dialects import nn
from abele.dialects.dtypes import element_type
from abele.dialects.scalar_functions import FUNCTIONS
from abele.ir.errors import InputError
from abele.ir.text import parse_module, print_module
from abele.ir.unmet import Unmet
from abele.passes.convert_linalg_to_nn import ConvertLinalgToNn
from abele.passes.convert_nn_to_linalg import ConvertNnToLinalg
from abele.passes.convert_nn_to_stablehlo import ConvertNnToStablehlo
from abele.tools.driver.context import new_context

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, 7e4, 1e9, np.inf, -np.inf, np.nan]
"""Floats at which functions differ most."""

NEEDS_SAME_WIDTH = ("bitcast",)


def operands(known, dtype):
    """One array for each operand: all pairs of numbers, or some."""
    numbers = np.array(SPECIAL if dtype.kind == "f" else [0, 1, 2, 3, 5, -1, -2, 100, -128])
    if dtype == np.bool_:
        numbers = np.array([False, True])
    columns = np.meshgrid(*[numbers] * min(known.arity, 2), indexing="ij")
    columns = [each.reshape(-1).astype(dtype) for each in columns]
    arrays = (columns * known.arity)[: known.arity]
    return [a != 0 if i < known.values else a for i, a in enumerate(arrays)]


def program(known, arrays, parameters=None):
    """A program of one function."""
    types = [nn.tensor(a.shape, element_type(a.dtype)) for a in arrays]
    body = Block(arg_types=types)
    d = nn.dim("d", arrays[0].size)
    if parameters is None:
        parameters = (known.samples or ((1.5,) * known.parameters,))[0]
    made = nn.compute(known.name, [nn.at(v, d) for v in body.args], [d], parameters=parameters)
    body.add_ops([made, func.ReturnOp(made.results[0])])
    main = func.FuncOp("main", (types, [made.results[0].type]), Region(body))
    return ModuleOp([main])


def equal(found, expected):
    """Whether results are those expected, as far as two libraries of floats agree."""
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(expected, np.float64), rtol=3e-6, atol=1e-37
    )


def check(name, module, arrays):
    """Check what a function computes in the other dialects."""
    module.verify()
    given = {f"arg{i}": a for i, a in enumerate(arrays)}
    (expected,) = run_reference(module, given).outputs.values()
    there = module.clone()
    ConvertNnToStablehlo().apply(new_context(), there)
    there = parse_module(print_module(there), new_context())
    equal(next(iter(run_stablehlo(there, given).outputs.values())), expected)
    back = module.clone()
    try:
        ConvertNnToLinalg().apply(new_context(), back)
    except InputError as error:
        assert name in ("mod", "fmod"), error
        assert arrays[0].dtype.kind == "f", error
        return
    back = parse_module(print_module(back), new_context())
    ConvertLinalgToNn().apply(new_context(), back)
    # Integers have no sign in the types of linalg.
    signed = {n: a.view(f"i{a.itemsize}") if a.dtype.kind == "u" else a for n, a in given.items()}
    (found,) = run_reference(back, signed).outputs.values()
    equal(found.view(expected.dtype), expected)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
@pytest.mark.parametrize("name", [each for each in FUNCTIONS if each not in NEEDS_SAME_WIDTH])
def test_a_function_computes_the_same_in_other_dialects(name, dtype):
    known = FUNCTIONS[name]
    arrays = operands(known, np.dtype(dtype))
    try:
        module = program(known, arrays)
    except Unmet:
        return
    check(name, module, arrays)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *((n, (p,)) for n in ("scale", "shift") for p in (2.0**32 + 3, -(2.0**70), np.inf, 0.75)),
        *(("power", (p,)) for p in (0.0, 64.0, 1e300, -3.0, -np.inf, np.inf, 0.5)),
        *(("leaky_relu", (p,)) for p in (2.0**33 + 1, -np.inf, 0.5)),
        *(("clip", each) for each in ((-np.inf, np.inf), (-1.5, 2.5), (3.0, -3.0), (1e300, 1e300))),
        ("scaled_mul", (0.5,)),
        ("scaled_mul", (2.0**32 + 3,)),
    ],
)
def test_constants_of_whole_numbers_wrap_or_are_limited_as_in_nn(name, parameters, dtype):
    known = FUNCTIONS[name]
    arrays = operands(known, np.dtype(dtype))
    with np.errstate(all="ignore"):
        check(name, program(known, arrays, parameters), arrays)
