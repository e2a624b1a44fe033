"""Every operation of stablehlo computes the same before and after it becomes operations of nn."""

from random import Random

import numpy as np
import pytest

from abele.backends.stablehlo import run_stablehlo
from abele.dialects.levels import STABLEHLO
from abele.ir.text import parse_module
from abele.passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from abele.passes.stablehlo_to_nn.conversion import Unsupported
from abele.tools.driver.context import new_context
from abele.tools.testing.generators.stablehlo_programs.program import random_program
from abele.tools.testing.generators.stablehlo_programs.table import FAMILIES
from abele.tools.testing.oracle.oracles import bounded_run, difference, run


@pytest.mark.parametrize("family", FAMILIES)
def test_each_operation_computes_the_same_as_its_lowering(family: str):
    for seed, name in enumerate(FAMILIES[family]):
        program = random_program(Random(seed), [name])
        if program.level != STABLEHLO:
            continue
        lowered = program.clone()
        try:
            ConvertStablehloToNn().apply(lowered.context, lowered.module)
        except Unsupported:
            continue
        assert difference(bounded_run(program), run(lowered)) is None, program


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
