"""How far outputs may be from their reference."""

import ml_dtypes
import numpy as np
import pytest
import users_dialects
from xdsl.dialects.builtin import ModuleOp

from abele.backends.reference import run_reference
from abele.dialects.levels import LEVELS, NN
from abele.ir.pass_manager import PassManager, parse_pipeline
from abele.ir.text import parse_module
from abele.passes.pipelines import PASSES, pipeline
from abele.tools import compile_model
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.debug.check import TOLERANCE, check_run, rounding_error, tolerance
from abele.tools.driver.arrays import seeded
from abele.tools.driver.context import new_context

NARROW = """
func.func @main(%x: tensor<4x64xELEMENT>, %b: tensor<64xELEMENT>) -> tensor<4x64xELEMENT>
    attributes {arg_names = ["x", "b"], result_names = ["y"]} {
  %0 = nn.scale %x by 0.3 : (tensor<4x64xELEMENT>) -> tensor<4x64xELEMENT>
  %1 = nn.add %0, %b : (tensor<4x64xELEMENT>, tensor<64xELEMENT>) -> tensor<4x64xELEMENT>
  %2 = nn.sub %1, %x : (tensor<4x64xELEMENT>, tensor<4x64xELEMENT>) -> tensor<4x64xELEMENT>
  %3 = nn.relu %2 : (tensor<4x64xELEMENT>) -> tensor<4x64xELEMENT>
  func.return %3 : tensor<4x64xELEMENT>
}
"""


def narrow(element: str) -> ModuleOp:
    return parse_module(NARROW.replace("ELEMENT", element), new_context())


def test_the_tolerance_is_two_steps_of_the_narrowest_dtype():
    assert tolerance(narrow("f32")) == tolerance(narrow("f16")) == TOLERANCE
    assert tolerance(narrow("bf16")) == 2 * 2.0**-7
    assert tolerance(ModuleOp([])) == TOLERANCE


def test_every_level_of_a_program_has_the_same_tolerance():
    for level in LEVELS[1:]:
        module = narrow("bf16")
        passes = parse_pipeline(pipeline(NN, level, "tiny:8"), PASSES)
        PassManager(passes).run(new_context(), module)
        assert tolerance(module) == 2 * 2.0**-7


@pytest.mark.parametrize("seed", range(3))
def test_bfloat16_that_is_rounded_less_often_than_the_reference_is_right(tmp_path, seed: int):
    path = tmp_path / "narrow.mlir"
    path.write_text(NARROW.replace("ELEMENT", "bf16"))
    exe = compile_model(str(path), target="tiny:8")
    rng = np.random.default_rng(seed)
    inputs = {
        "x": rng.normal(size=(4, 64)).astype(ml_dtypes.bfloat16),
        "b": rng.normal(size=64).astype(ml_dtypes.bfloat16),
    }
    verdict = check_run(exe, inputs, exe.run(inputs), "exchange")
    assert verdict.error is not None
    assert verdict.error > TOLERANCE
    assert verdict.passed, verdict.problem
    assert bisect(str(path), target="tiny:8", inputs=inputs).passed


NARROWED = "narrow-floats{to=bf16},nn,partition,tile,exchange"


def test_a_program_that_a_pass_has_narrowed_is_held_to_its_narrower_dtype(tmp_path):
    path = tmp_path / "wide.mlir"
    path.write_text(NARROW.replace("ELEMENT", "f32"))
    exe = compile_model(str(path), target="tiny:8", passes=NARROWED)
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=n).astype("f") for name, n in (("x", (4, 64)), ("b", 64))}
    verdict = check_run(exe, inputs, exe.run(inputs), "exchange")
    assert verdict.error is not None
    assert verdict.error > TOLERANCE
    assert verdict.passed, verdict.problem
    assert bisect(str(path), target="tiny:8", passes=NARROWED, inputs=inputs).passed
    wrong = {name: array + 1 for name, array in exe.run(inputs).items()}
    assert not check_run(exe, inputs, wrong, "exchange").passed


CANCELS = """
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32>
    attributes {arg_names = ["x"], result_names = ["y"]} {
  %0 = nn.shift %x by 100.0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = nn.transpose %0 [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.shift %1 by -100.0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %2 : tensor<8x8xf32>
}
"""
"""What comes back of x: in float16, steps of a sixteenth."""

RAMP = {"x": np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)}


def test_the_effect_of_rounding_is_measured_on_the_program_itself():
    module = parse_module(CANCELS, new_context())
    reference = run_reference(module, RAMP).outputs
    moved = rounding_error(module, RAMP, reference, np.dtype(np.float16))
    assert 0.01 < moved < 0.2
    assert rounding_error(module, RAMP, reference, np.dtype(np.float32)) < 1e-4


def test_a_program_that_rounding_changes_much_is_reported_with_the_change(tmp_path):
    path = tmp_path / "cancels.mlir"
    path.write_text(CANCELS)
    exe = compile_model(
        str(path), target="tiny:8", passes="narrow-floats,nn,partition,tile,exchange"
    )
    verdict = check_run(exe, RAMP, exe.run(RAMP), "exchange")
    assert not verdict.passed
    assert verdict.ratio <= 1
    assert "0.002 is allowed; rounding to float16 alone moves outputs by 0.0" in verdict.problem
    plain = compile_model(str(path), target="tiny:8")
    wrong = {"y": plain.run(RAMP)["y"] + np.float32(0.05)}
    assert check_run(plain, RAMP, wrong, "exchange").problem.endswith("0.002 is allowed")


def test_results_that_overflow_only_in_the_reference_cannot_be_compared(tmp_path):
    path = tmp_path / "large.mlir"
    path.write_text("""
func.func @main(%x: tensor<4x8xf16>) -> tensor<4x8xf16>
    attributes {arg_names = ["x"], result_names = ["y"]} {
  %0 = nn.add %x, %x : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %1 = nn.sub %0, %x : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  func.return %1 : tensor<4x8xf16>
}
""")
    exe = compile_model(str(path), target="tiny:8")
    inputs = {"x": np.full((4, 8), 6e4, np.float16)}
    verdict = check_run(exe, inputs, exe.run(inputs), "exchange")
    assert verdict.problem.startswith(
        "output 'y': 32 of 32 elements are finite, but infinite or NaN in the ref"
    )


GROWING = """
func.func @main(%x: tensor<4x8xf16>, %w: tensor<8x8xf16>, %v: tensor<8x8xf16>) -> tensor<4x8xf16>
    attributes {arg_names = ["x", "w", "v"], result_names = ["y"]} {
  %0 = nn.matmul %x, %w : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf16> loc("first")
  %1 = nn.matmul %0, %w : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf16> loc("second")
  %2 = nn.matmul %1, %v : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf16> loc("third")
  func.return %2 : tensor<4x8xf16>
}
"""


def test_the_first_operation_that_overflows_is_named(tmp_path):
    path = tmp_path / "growing.mlir"
    path.write_text(GROWING)
    exe = compile_model(str(path), target="tiny:4")
    inputs = {
        "x": np.full((4, 8), 1, np.float16),
        "w": np.full((8, 8), 100, np.float16),
        "v": np.full((8, 8), 1, np.float16),
    }
    verdict = check_run(exe, inputs, exe.run(inputs), "exchange")
    assert not verdict.passed
    assert verdict.problem.startswith("32 of 32 elements are not finite, but the inputs are")
    assert "second in superstep @second" in verdict.problem
    assert "is the first: 32 of 32 elements" in verdict.problem
    assert "of operands up to 800; float16 ends at 65504" in verdict.problem


def test_infinite_inputs_are_not_reported_as_an_overflow(tmp_path):
    path = tmp_path / "growing.mlir"
    path.write_text(GROWING)
    exe = compile_model(str(path), target="tiny:4")
    inputs = {
        "x": np.full((4, 8), np.inf, np.float16),
        "w": np.full((8, 8), 1, np.float16),
        "v": np.full((8, 8), 1, np.float16),
    }
    verdict = check_run(exe, inputs, exe.run(inputs), "exchange")
    assert "is the first" not in verdict.problem


def test_the_reference_begins_after_the_pass_that_lowers_a_users_operations(tmp_path):
    with users_dialects.written(tmp_path) as (program, load):
        exe = compile_model(program, "tiny:4", passes=users_dialects.PASSES, load=load)
        inputs = seeded(exe.inputs)
        outputs = exe.run(inputs)
        verdict = check_run(exe, inputs, outputs, "exchange")
        assert verdict.passed
        assert verdict.error is not None
        assert verdict.text.partition("; ")[2].startswith("compared with the program after to-nn; ")
        wrong = {name: array + 1 for name, array in outputs.items()}
        assert not check_run(exe, inputs, wrong, "exchange").passed
