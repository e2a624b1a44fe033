"""Every operation of stablehlo computes the same before and after it becomes operations of nn."""

from collections.abc import Mapping
from random import Random

import numpy as np
import pytest

from abele.backends.reference import run_reference
from abele.backends.stablehlo import is_interpreted, run_stablehlo
from abele.dialects import nn
from abele.dialects.dtypes import numpy_dtype
from abele.dialects.stablehlo import STABLEHLO
from abele.ir.support.number_kinds import is_floating
from abele.ir.text import parse_module
from abele.passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from abele.tools.driver.context import new_context
from abele.tools.testing.generators.stablehlo import KINDS, random_program

TOLERANCE = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 2e-5}


def values(random: Random, shape: tuple[int, ...], dtype: np.dtype, name: str) -> np.ndarray:
    draw = np.random.default_rng(random.randrange(1 << 32))
    if dtype == np.bool_:
        return draw.random(shape) < 0.5
    if not is_floating(dtype):
        low = 0 if dtype.kind == "u" else -3
        return draw.integers(low, 6, shape).astype(dtype)
    # Equal numbers and zeros are common, so that ties are.
    found = np.where(draw.random(shape) < 0.3, draw.integers(-2, 3, shape), draw.normal(size=shape))
    positive = name.startswith("batch_norm") or name in ("rsqrt", "sqrt", "log", "power")
    return (np.abs(found) + 0.5 if positive else found).astype(dtype)


def neutral(name: str, dtype: np.dtype) -> object:
    """The number that an operation merges without effect."""
    if name in ("add", "multiply"):
        return name == "multiply"
    if dtype == np.bool_:
        return name == "minimum"
    if is_floating(dtype):
        return np.inf if name == "minimum" else -np.inf
    return np.iinfo(dtype).max if name == "minimum" else np.iinfo(dtype).min


def both(seed: int, kind) -> tuple[str, Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
    random = Random(seed)
    drawn = kind(random)
    context = new_context()
    module = parse_module(drawn.text(), context)
    module.verify()
    main = next(iter(module.body.block.ops))
    inputs = {
        f"arg{i}": values(random, nn.shape_of(a), numpy_dtype(nn.element_of(a)), drawn.name)
        for i, a in enumerate(main.body.block.args)
    }
    for i, name in enumerate(drawn.firsts, len(inputs) - len(drawn.firsts)):
        kind_of = inputs[f"arg{i}"].dtype
        inputs[f"arg{i}"] = np.array(neutral(name, kind_of), kind_of)
    before = run_stablehlo(module, inputs).outputs
    ConvertStablehloToNn().apply(context, module)
    module.verify()
    return drawn.text(), before, run_reference(module, inputs).outputs


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_operation_computes_the_same_as_its_lowering(kind):
    for seed in range(8):
        text, before, after = both(seed, kind)
        for name, wanted in before.items():
            found = after[name]
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), text
            bound = TOLERANCE.get(wanted.dtype.name, 0)
            np.testing.assert_allclose(
                found.astype(np.float64), wanted.astype(np.float64), bound, bound, err_msg=text
            )


def test_programs_of_all_operations_are_drawn():
    drawn = {f"stablehlo.{random_program(Random(seed)).name}" for seed in range(4000)}
    # Their programs need more than one operation, or what no run repeats.
    apart = {"constant", "map", "gather", "scatter", "if", "case", "while", "custom_call"}
    apart |= {"composite", "optimization_barrier", "return", "rng", "rng_bit_generator", "dot"}
    apart |= {"bitcast_convert", "broadcast", "reshape", "is_finite"}
    names = {op.name for op in STABLEHLO.operations if op.name.partition(".")[2] not in apart}
    assert drawn >= {name for name in names if is_interpreted(name)}
    assert all(map(is_interpreted, drawn))


def test_a_window_that_fits_nowhere_selects_nothing():
    text = """builtin.module { func.func @main(%x: tensor<1xf32>, %s: tensor<0xf32>)
        -> (tensor<1xf32>) {
      %c = "stablehlo.constant"() <{value = dense<3.0> : tensor<f32>}> : () -> tensor<f32>
      %0 = "stablehlo.select_and_scatter"(%x, %s, %c) <{window_dimensions = array<i64: 2>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %p = "stablehlo.compare"(%a, %b) <{comparison_direction =
            #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
        "stablehlo.return"(%p) : (tensor<i1>) -> ()
      }, {
      ^bb1(%d: tensor<f32>, %e: tensor<f32>):
        %f = "stablehlo.add"(%d, %e) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%f) : (tensor<f32>) -> ()
      }) : (tensor<1xf32>, tensor<0xf32>, tensor<f32>) -> tensor<1xf32>
      func.return %0 : tensor<1xf32> } }"""
    module = parse_module(text, new_context())
    inputs = {"arg0": np.ones(1, np.float32), "arg1": np.zeros(0, np.float32)}
    (found,) = run_stablehlo(module, inputs).outputs.values()
    np.testing.assert_array_equal(found, [3])
