"""How far outputs may be from their reference."""

import subprocess
import sys
from concurrent.futures import CancelledError
from unittest import mock

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from some_tensors import context, module_of
from xdsl.dialects.builtin import ModuleOp

from abele.backends.host.threads import using
from abele.backends.reference import run_reference, unrounded_outputs
from abele.dialects.levels import LEVELS, NN
from abele.ir.pass_manager import PassManager, parse_pipeline
from abele.ir.text import parse_module, write_module
from abele.passes.pipelines import PASSES, pipeline
from abele.tools import compile_model
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.debug.made_not_finite import traced_reference
from abele.tools.debug.run_check import (
    TOLERANCE,
    check_run,
    relative_error,
    rounding_error,
    tolerance,
)
from abele.tools.driver.arrays import seeded
from abele.tools.driver.context import new_context
from abele.tools.driver.request import Request
from abele.tools.driver.stages import CHECK

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
    outputs = exe.run(inputs)
    verdict = check_run(exe, inputs, outputs, "exchange")
    rounded = run_reference(exe.module_at("nn"), inputs).outputs
    assert relative_error(outputs["y"], rounded["y"]) > TOLERANCE
    assert verdict.passed, verdict.problem
    assert bisect(Request(str(path), target="tiny:8"), inputs=inputs).passed


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
    assert bisect(Request(str(path), target="tiny:8", passes=NARROWED), inputs=inputs).passed
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


OVERFLOWS = """
func.func @main(%x: tensor<4x8xf16>) -> tensor<4x8xf16>
    attributes {arg_names = ["x"], result_names = ["y"]} {
  %0 = nn.add %x, %x : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %1 = nn.sub %0, %x : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  func.return %1 : tensor<4x8xf16>
}
"""
"""Twice x is too large for float16, but a fused program does not round it."""


def test_results_that_overflow_only_in_the_reference_that_rounds_are_right(tmp_path):
    path = tmp_path / "large.mlir"
    path.write_text(OVERFLOWS)
    exe = compile_model(str(path), target="tiny:8")
    inputs = {"x": np.full((4, 8), 6e4, np.float16)}
    outputs = exe.run(inputs)
    verdict = check_run(exe, inputs, outputs, "exchange")
    assert verdict.passed
    assert verdict.error == 0
    wrong = {"y": outputs["y"] / np.float16(2)}
    verdict = check_run(exe, inputs, wrong, "exchange")
    assert verdict.problem.endswith(
        "output 'y': 32 of 32 elements are finite, but infinite or NaN in the reference that "
        "rounds after every operation; off by 0.5 from exact arithmetic"
    )


def test_outputs_are_compared_with_exact_arithmetic_and_operations_with_their_bounds(tmp_path):
    path = tmp_path / "wide.mlir"
    path.write_text(NARROW.replace("ELEMENT", "f32"))
    exe = compile_model(str(path), target="tiny:8")
    inputs = seeded(exe.inputs)
    outputs = exe.run(inputs)
    verdict = check_run(exe, inputs, outputs, "exchange")
    exact = unrounded_outputs(exe.module_at("nn"), inputs)
    assert verdict.error == relative_error(outputs["y"], exact["y"])
    assert 0 < verdict.error < 1e-6
    assert verdict.rows == [
        (
            "largest error",
            f"{verdict.error:.1e} of the largest value, against exact arithmetic (float64)",
        ),
        (
            "operations checked",
            f"{verdict.checked}; the worst error is {100 * verdict.ratio:.1f} % of its bound",
        ),
        ("addresses proved", str(exe.addresses)),
    ]


CANCELS_NARROW = CANCELS.replace("f32", "f16")


def test_a_program_whose_own_rounding_moves_it_is_right_if_the_rounding_reference_agrees(tmp_path):
    path = tmp_path / "cancels.mlir"
    path.write_text(CANCELS_NARROW)
    exe = compile_model(str(path), target="tiny:8", passes="partition,tile,exchange")
    inputs = {name: array.astype(np.float16) for name, array in RAMP.items()}
    outputs = exe.run(inputs)
    verdict = check_run(exe, inputs, outputs, "exchange")
    assert verdict.passed, verdict.problem
    assert verdict.error is not None
    assert verdict.rounded is not None
    assert verdict.error > TOLERANCE > verdict.rounded
    name, value = verdict.rows[0]
    assert name == "largest error"
    assert value.startswith(f"{verdict.error:.1e} of the largest value, against exact arithmetic")
    assert value.endswith("of the largest value, against float64 rounded per operation")
    wrong = {name: array + np.float16(0.5) for name, array in outputs.items()}
    assert not check_run(exe, inputs, wrong, "exchange").passed


PARITY = """
func.func @main(%x: tensor<8xf16>) -> (tensor<8xi32>, tensor<8xf16>)
    attributes {arg_names = ["x"], result_names = ["y", "shifted"]} {
  %0 = nn.shift %x by 2048.0 : (tensor<8xf16>) -> tensor<8xf16>
  %1 = nn.cast %0 : (tensor<8xf16>) -> tensor<8xi32>
  func.return %1, %0 : tensor<8xi32>, tensor<8xf16>
}
"""
"""Rounding to float16 decides the integers: its numbers above 2048 are 2 apart."""


def test_integers_that_rounding_decides_are_right_if_the_rounding_reference_agrees(tmp_path):
    path = tmp_path / "parity.mlir"
    path.write_text(PARITY)
    exe = compile_model(str(path), target="tiny:2")
    inputs = {"x": np.arange(1, 9).astype(np.float16)}
    outputs = exe.run(inputs)
    verdict = check_run(exe, inputs, outputs, "exchange")
    assert verdict.passed, verdict.problem
    assert (verdict.error, verdict.rounded) == (float("inf"), 0)
    assert verdict.rows[0][1].startswith(
        "integers, infinities or NaN differ, against exact arithmetic (float64); 0.0e+00"
    )
    wrong = outputs | {"y": outputs["y"] + 1}
    assert not check_run(exe, inputs, wrong, "exchange").passed


BOTH = """
func.func @main(%x: tensor<8xf16>, %z: tensor<8xf16>)
    -> (tensor<8xf16>, tensor<8xf16>, tensor<8xi32>)
    attributes {arg_names = ["x", "z"], result_names = ["y", "shifted", "whole"]} {
  %0 = nn.scale %x by 2.0 : (tensor<8xf16>) -> tensor<8xf16>
  %1 = nn.scale %0 by 0.5 : (tensor<8xf16>) -> tensor<8xf16>
  %2 = nn.shift %z by 2048.0 : (tensor<8xf16>) -> tensor<8xf16>
  %3 = nn.cast %2 : (tensor<8xf16>) -> tensor<8xi32>
  func.return %1, %2, %3 : tensor<8xf16>, tensor<8xf16>, tensor<8xi32>
}
"""
"""One output overflows only where every operation rounds, the other is decided by rounding."""


def test_each_element_is_right_if_it_is_near_one_of_the_two_references(tmp_path):
    path = tmp_path / "both.mlir"
    path.write_text(BOTH)
    exe = compile_model(str(path), target="tiny:2")
    inputs = {"x": np.full(8, 6e4, np.float16), "z": np.arange(1, 9).astype(np.float16)}
    outputs = exe.run(inputs)
    verdict = check_run(exe, inputs, outputs, "exchange")
    assert verdict.passed, verdict.problem
    assert (verdict.error, verdict.rounded) == (float("inf"), float("inf"))
    for name in ("y", "whole"):
        wrong = outputs | {name: outputs[name] - outputs[name].dtype.type(2048)}
        assert not check_run(exe, inputs, wrong, "exchange").passed


LOST = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32>
    attributes {arg_names = ["x"], result_names = ["y"]} {
  %0 = nn.add %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = nn.sub %0, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %1 : tensor<8xf32>
}
"""


def test_what_an_overflow_becomes_is_not_called_wrong(tmp_path):
    path = tmp_path / "lost.mlir"
    path.write_text(LOST)
    exe = compile_model(str(path), target="tiny:2")
    inputs = {"x": np.r_[np.full(4, -1e30), np.ones(4)].astype(np.float32)}
    right = exe.run(inputs)["y"]
    verdict = check_run(exe, inputs, {"y": right}, "nn")
    assert verdict.passed, verdict.problem
    inputs["x"][:4] = -3e38
    # Twice as much overflows where it is rounded; what has overflowed is no number either way.
    for lost in (-np.inf, np.nan):
        verdict = check_run(exe, inputs, {"y": np.r_[np.full(4, lost), right[4:]]}, "nn")
        assert verdict.passed, verdict.problem
        assert "your model overflows float32 at" in verdict.not_finite
    verdict = check_run(exe, inputs, {"y": np.r_[np.full(4, np.nan), right[4:] + 1]}, "nn")
    assert "is allowed" in verdict.problem


GROWS = """
func.func @main(%x: tensor<2x64xf32>) -> tensor<2x64xf32>
    attributes {arg_names = ["x"], result_names = ["y"]} {
  %s = nn.scan "sum" %x axis 1 : (tensor<2x64xf32>) -> tensor<2x64xf32> loc("sums")
  %n = nn.neg %s : (tensor<2x64xf32>) -> tensor<2x64xf32> loc("negative")
  %e = nn.exp %s : (tensor<2x64xf32>) -> tensor<2x64xf32> loc("grow")
  %d = nn.exp %n : (tensor<2x64xf32>) -> tensor<2x64xf32> loc("decay")
  %y = nn.mul %e, %d : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32> loc("whole")
  func.return %y : tensor<2x64xf32>
}
"""
"""In exact arithmetic 1; in float32, infinity times 0 where a sum is large, as in models of states
that decay."""

STEADY = {"x": np.linspace(1, 4, 128, dtype=np.float32).reshape(2, 64)}


@pytest.fixture
def grows(tmp_path):
    path = tmp_path / "grows.mlir"
    path.write_text(GROWS)
    return path


def test_a_model_that_overflows_by_itself_is_told_so_and_passes(grows):
    exe = compile_model(str(grows), target="tiny:4")
    outputs = exe.run(STEADY)
    lost = ~np.isfinite(outputs["y"])
    assert 0 < lost.sum() < 128
    verdict = check_run(exe, STEADY, outputs, "exchange")
    assert verdict.passed, verdict.problem
    name, text = verdict.rows[1]
    assert name == "not finite"
    assert text.startswith(f"{lost.sum()} of 128 elements are not finite: ")
    assert "your model overflows float32 at grow: " in text
    assert "of nn.exp, whose operands are at most 2" in text
    assert bisect(Request(str(grows), target="tiny:4"), inputs=STEADY).passed


def test_a_nan_that_the_model_does_not_make_is_wrong(grows):
    exe = compile_model(str(grows), target="tiny:4")
    outputs = exe.run(STEADY)
    finite = np.flatnonzero(np.isfinite(outputs["y"]).ravel())
    for lost in (np.nan, np.inf):
        wrong = outputs["y"].copy()
        wrong.flat[finite[:3]] = lost
        problem = check_run(exe, STEADY, {"y": wrong}, "exchange").problem
        assert "output 'y': 3 of 128 elements are infinite or NaN, but finite in the ref" in problem


def test_a_finite_number_where_the_model_makes_none_is_wrong(grows):
    exe = compile_model(str(grows), target="tiny:4")
    outputs = exe.run(STEADY)
    wrong = np.where(np.isfinite(outputs["y"]), outputs["y"], np.float32(0.5))
    problem = check_run(exe, STEADY, {"y": wrong}, "exchange").problem
    assert "elements are finite, but infinite or NaN in the reference" in problem


CONSTANTS = {
    "divides by zero": (
        '%0 = nn.div %c, %z : (T, T) -> T loc("ratio")',
        "your model makes infinities or NaN at ratio: 1 of 4 elements of nn.div",
    ),
    "holds infinity": (
        '%0 = nn.add %i, %c : (T, T) -> T loc("ratio")',
        "your model has a weight or constant that is not finite: 1 of 4 elements of what nn.add at "
        "ratio reads",
    ),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_that_are_not_finite_are_the_models_own(name: str, tmp_path):
    line, said = CONSTANTS[name]
    constants = {"c": [1, 1, 1, 1], "z": [0, 1, 1, 1], "i": [np.inf, 1, 1, 1]}
    text = "".join(f"  %{each} = nn.constant {{{each}}} : T\n" for each in constants)
    module = module_of(
        f"""
func.func @main(%x: T) -> T attributes {{arg_names = ["x"], result_names = ["y"]}} {{
{text}  {line}
  %1 = nn.add %x, %0 : (T, T) -> T loc("sum")
  func.return %1 : T
}}""".replace("T", "tensor<4xf32>"),
        context(),
        **{each: np.array(array, np.float32) for each, array in constants.items()},
    )
    write_module(module, tmp_path / "constant.mlir")
    exe = compile_model(str(tmp_path / "constant.mlir"), target="tiny:2")
    inputs = seeded(exe.inputs)
    verdict = check_run(exe, inputs, exe.run(inputs), "exchange")
    assert verdict.passed, verdict.problem
    assert verdict.not_finite.startswith(f"1 of 4 elements are not finite: {said}")


def test_without_a_reference_the_operations_of_the_machine_are_the_model(grows, tmp_path):
    write_module(
        compile_model(str(grows), target="tiny:4").module_at("exchange"), tmp_path / "low.mlir"
    )
    exe = compile_model(str(tmp_path / "low.mlir"))
    verdict = check_run(exe, STEADY, exe.run(STEADY), "exchange")
    assert verdict.passed, verdict.problem
    assert "in superstep @grow+whole is the first" in verdict.not_finite


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_a_recurrent_layer_of_an_empty_batch_can_be_checked(kind: str, gates: int):
    weights = {name: np.ones((1, 2 * gates, 2), np.float32) for name in ("w", "r")}
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", "w", "r"], ["y"], hidden_size=2)],
        "empty",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 0, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 1, 0, 2])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    exe = compile_model(helper.make_model(graph), target="tiny:4")
    inputs = seeded(exe.inputs)
    outputs = exe.run(inputs)
    assert outputs["y"].shape == (3, 1, 0, 2)
    verdict = check_run(exe, inputs, outputs, "exchange")
    assert verdict.passed, verdict.problem


def test_a_loop_that_only_rounding_ends_is_compared_with_the_rounding_reference(tmp_path):
    path = tmp_path / "counts.mlir"
    path.write_text("""
func.func @main(%x: tensor<f16>) -> tensor<f16>
    attributes {arg_names = ["x"], result_names = ["y"]} {
  %0 = control.while (%x) : (tensor<f16>) -> tensor<f16> {
  ^bb0(%y: tensor<f16>):
    %one = nn.shift %y by 1.0 : (tensor<f16>) -> tensor<f16>
    %p = nn.less %y, %one : (tensor<f16>, tensor<f16>) -> tensor<i1>
    control.condition %p : tensor<i1>
  } do {
  ^bb0(%y: tensor<f16>):
    %z = nn.shift %y by 512.0 : (tensor<f16>) -> tensor<f16>
    control.yield %z : tensor<f16>
  }
  func.return %0 : tensor<f16>
}
""")
    exe = compile_model(str(path), target="tiny:1")
    inputs = {"x": np.array(1, np.float16)}
    outputs = exe.run(inputs, at="nn")
    assert outputs["y"] == 2048
    verdict = check_run(exe, inputs, outputs, "nn")
    assert verdict.passed
    assert (verdict.error, verdict.rounded) == (None, 0)
    assert verdict.rows == [
        ("largest error", "0.0e+00 of the largest value, against float64 rounded per operation"),
        ("addresses proved", str(exe.addresses)),
    ]
    assert not check_run(exe, inputs, {"y": outputs["y"] + np.float16(64)}, "nn").passed


def test_a_program_of_states_is_checked_with_what_they_hold_at_the_start(tmp_path):
    tensor = "tensor<4xf16>"
    module = module_of(
        f"""
nn.state @n : {tensor} = {{n}}
func.func @main(%x: {tensor}) -> {tensor} attributes {{result_names = ["y"]}} {{
  %0 = nn.load @n : {tensor}
  %1 = nn.add %0, %x : ({tensor}, {tensor}) -> {tensor}
  nn.store %1, @n : {tensor}
  func.return %1 : {tensor}
}}""",
        context(),
        n=np.full(4, 0.1, np.float16),
    )
    write_module(module, tmp_path / "counter.mlir")
    exe = compile_model(str(tmp_path / "counter.mlir"), target="tiny:2")
    inputs = seeded(exe.inputs)
    verdict = check_run(exe, inputs, exe.run(inputs), "exchange")
    assert verdict.passed
    assert verdict.error is not None
    assert 0 < verdict.error < 1e-3


@pytest.mark.parametrize(("dtype", "error"), [("int8", 0.0), ("uint16", 0.0), ("int32", np.inf)])
def test_quantised_outputs_may_be_one_step_apart(dtype, error):
    right = np.array([1, 2, 100], dtype)
    assert relative_error(right, right) == 0
    assert relative_error(right + np.array([0, 1, 0], dtype), right) == error
    assert relative_error(right + np.array([0, 2, 0], dtype), right) == np.inf


@pytest.fixture
def wide(tmp_path):
    """A program, its inputs and its outputs."""
    path = tmp_path / "wide.mlir"
    path.write_text(NARROW.replace("ELEMENT", "f32"))
    exe = compile_model(str(path), target="tiny:8")
    inputs = seeded(exe.inputs)
    return exe, inputs, exe.run(inputs)


@pytest.mark.parametrize("factor", [1, 2])
def test_threads_come_to_the_same_verdict(wide, factor: int):
    exe, inputs, outputs = wide
    given = {name: factor * x for name, x in outputs.items()}
    verdicts = []
    for threads in (1, 3):
        with using(threads):
            verdicts.append(check_run(exe, inputs, given, "exchange"))
    assert verdicts[0] == verdicts[1]
    assert verdicts[0].passed == (factor == 1)


def test_a_check_tells_every_superstep_of_its_run(wide):
    told: list[str] = []
    check_run(*wide, "exchange", told.append)
    count = wide[0].profile["supersteps"]
    assert count > 0
    supersteps = [f"{CHECK} (superstep {n} of {count})" for n in range(1, count + 1)]
    assert told == [*supersteps, f"{CHECK} (outputs)", f"{CHECK} (bits of a plain run)"]


def test_an_error_in_a_thread_reaches_the_caller(wide):
    with (
        using(3),
        mock.patch("abele.backends.op_check.overflow_of", side_effect=ValueError("planted")),
        pytest.raises(ValueError, match="planted"),
    ):
        check_run(*wide, "exchange")


def test_an_interrupt_ends_what_other_threads_compute(wide):
    asked = []

    def reference(module, inputs, on_operation):
        asked.append(on_operation)
        while True:
            on_operation()

    with (
        using(3),
        mock.patch("abele.tools.debug.run_check.unrounded_outputs", reference),
        mock.patch("abele.tools.debug.run_check.Machine", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        check_run(*wide, "exchange")
    with pytest.raises(CancelledError):
        asked[0]()


def test_an_interrupt_ends_the_reference_that_rounds_too(wide):
    exe, inputs, _ = wide
    done = []

    def first(*_: object) -> None:
        done.append(None)
        raise CancelledError

    with pytest.raises(CancelledError):
        traced_reference(exe.module_at("nn"), inputs, first)
    assert len(done) == 1


RELEASES = """
import gc, sys
from unittest import mock
from weakref import ref
from abele.backends.host.threads import using
from abele.backends.machine import Machine
from abele.tools import compile_model
from abele.tools.debug.run_check import check_run
from abele.tools.driver.arrays import seeded

machines = []

class Watched(Machine):
    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        machines.append(ref(self))

gc.disable()
exe = compile_model(sys.argv[1], target="tiny:8", cache=False)
inputs = seeded(exe.inputs)
outputs = exe.run(inputs)
for threads in (1, 3):
    for error in (None, ValueError, MemoryError):
        with using(threads), mock.patch("abele.tools.debug.run_check.Machine", Watched):
            if error is None:
                assert check_run(exe, inputs, outputs, "exchange").passed
                continue
            with mock.patch("abele.backends.op_check.overflow_of", side_effect=error):
                try:
                    check_run(exe, inputs, outputs, "exchange")
                except error:
                    pass
assert [each() for each in machines] == 6 * [None], machines
"""


def test_a_check_releases_its_machines_at_once(tmp_path):
    path = tmp_path / "wide.mlir"
    path.write_text(NARROW.replace("ELEMENT", "f32"))
    subprocess.run([sys.executable, "-c", RELEASES, str(path)], check=True)
