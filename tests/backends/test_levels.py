import numpy as np
import pytest

from abele.backends.levels import RUNNERS
from abele.backends.target import resolve_target
from abele.dialects.levels import LEVELS, NN
from abele.ir.level import Level
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.passes.pipelines import PASSES, pipeline

from ..strategies import context

COUNTER = """
nn.state @count : tensor<4xf32> = <"{digest}">
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = nn.load @count : tensor<4xf32>
  %1 = nn.add %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  nn.store %1, @count : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}}
"""


@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_a_loaded_program_keeps_its_state_between_runs(level: Level):
    made, target = context(), resolve_target("tiny:2")
    digest = made.blobs.add(np.zeros(4, np.float32)).digest
    module = parse_module(COUNTER.format(digest=digest), made)
    for each in parse_pipeline(pipeline(NN, level, target.spelling()), PASSES):
        each.apply(made, module)
    runner = RUNNERS[level](module, target, False)
    ones = {"arg0": np.ones(4, np.float32)}
    for iteration in range(1, 4):
        assert runner.run(ones)["out0"].tolist() == [iteration] * 4


NUMBERED = """
func.func @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  %0 = control.repeat 5 (%x) : (tensor<3xi32>) -> (tensor<3xi32>) {
  ^bb0(%sum: tensor<3xi32>, %turn: tensor<i32>):
    %1 = nn.scale %sum by 10.0 : (tensor<3xi32>) -> tensor<3xi32>
    %2 = nn.add %1, %turn : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
    control.yield %2 : tensor<3xi32>
  }
  func.return %0 : tensor<3xi32>
}
"""


@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_a_loop_passes_the_number_of_each_iteration_to_its_body(level: Level):
    made, target = context(), resolve_target("tiny:2")
    module = parse_module(NUMBERED, made)
    for each in parse_pipeline(pipeline(NN, level, target.spelling()), PASSES):
        each.apply(made, module)
    runner = RUNNERS[level](module, target, False)
    assert runner.run({"arg0": np.array([0, 1, 2], np.int32)})["out0"].tolist() == [
        1234,
        101234,
        201234,
    ]
