"""Arguments of StableHLO programs that become states, because a user gives their values."""

from pathlib import Path

import numpy as np
import pytest

from abele.ir.support.errors import InputError
from abele.tools import compile_model
from abele.tools.importers.stablehlo.front_end import STABLEHLO
from abele.tools.importers.stablehlo.in_memory import StableHloModel

STEP = """
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>),
      res_attrs = [{jax.result_info = "result[0]['w']"}, {jax.result_info = "result[1]"}],
      sym_name = "main"}> ({
  ^bb0(%arg0: tensor<2xf32> loc("p['w']"), %arg1: tensor<2xf32> loc("x")):
    %0 = "stablehlo.add"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %1 = "stablehlo.multiply"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""

W = {"p['w']": np.array([3, 4], np.float32)}
X = {"x": np.array([1, 2], np.float32)}


def test_a_given_weight_is_no_input_any_more():
    exe = compile_model(StableHloModel(STEP, W), target="tiny:2", cache=False)
    assert [each.name for each in exe.inputs] == ["x"]
    assert exe.run(X)["result[1]"].tolist() == [3, 8]


def test_the_weights_of_a_model_in_memory_are_part_of_its_key():
    assert STABLEHLO.serialized is not None
    same = STABLEHLO.serialized(StableHloModel(STEP, {"p['w']": W["p['w']"].copy()}))
    assert STABLEHLO.serialized(StableHloModel(STEP, W)) == same
    assert STABLEHLO.serialized(StableHloModel(STEP, {"p['w']": W["p['w']"] + 1})) != same


def test_a_kept_weight_changes_from_run_to_run():
    keep = {"p": "result[0]"}
    exe = compile_model(StableHloModel(STEP, W), target="tiny:2", keep=keep, cache=False)
    assert [each.name for each in exe.outputs] == ["result[1]"]
    assert [exe.run(X)["result[1]"].tolist() for _ in range(2)] == [[3, 8], [4, 12]]
    assert exe.states["p['w']"].tolist() == [5, 8]
    exe.set_states(W)
    assert exe.run(X)["result[1]"].tolist() == [3, 8]


def test_a_saved_model_is_two_files_that_commands_take(tmp_path: Path):
    StableHloModel(STEP, W).save(tmp_path / "step.mlir")
    weights = tmp_path / "step.safetensors"
    exe = compile_model(tmp_path / "step.mlir", target="tiny:2", weights=weights, cache=False)
    assert exe.run(X)["result[1]"].tolist() == [3, 8]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"p['w']": np.ones(3, np.float32)}, r"float32\[3\], and the model's float32\[2\]"),
        ({"q": np.ones(2, np.float32)}, "the model has no weights"),
        ({**W, "q": np.ones(2, np.float32)}, "1 of its 2 tensors are not in the model: 'q'"),
    ],
)
def test_weights_that_do_not_belong_to_the_program_are_refused(given, message, tmp_path: Path):
    path = tmp_path / "step.mlir"
    path.write_text(STEP)
    with pytest.raises(InputError, match=message):
        compile_model(path, target="tiny:2", weights=given, cache=False)


def test_a_model_in_memory_has_no_weight_of_another_type():
    model = StableHloModel(STEP, {"p['w']": np.ones(2, np.float16)})
    with pytest.raises(InputError, match=r"is float16\[2\], and its argument float32\[2\]"):
        compile_model(model, target="tiny:2", cache=False)
