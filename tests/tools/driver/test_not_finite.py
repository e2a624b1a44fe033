from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from abele.tools import Training, compile_model
from abele.tools.driver.samples import samples_of
from abele.tools.driver.trainer import Trainer
from abele.tools.driver.training import LossIsNotFinite

MODEL = """
builtin.module {
  nn.state @w : tensor<4x2xf32> = <DIGEST>
  func.func @main(%x: tensor<2x4xf32>) -> tensor<2x2xf32> attributes {arg_names = ["x"]} {
    %w = nn.load @w : tensor<4x2xf32> loc("w")
    %0 = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32> loc("product")
    %1 = nn.tanh %0 : (tensor<2x2xf32>) -> tensor<2x2xf32> loc("tanh")
    %2 = nn.scale %1 by 6.0e4 : (tensor<2x2xf32>) -> tensor<2x2xf32> loc("large")
    func.return %2 : tensor<2x2xf32>
  }
}"""


BAD = 6
"""The first sample whose numbers are too large. The batch with it is that of the last step."""


def trainer(
    tmp_path: Path,
    target: str,
    steps: int = 1,
    text: str = MODEL,
    precision: str | None = "pure-float16",
    **options: object,
) -> Trainer:
    path = tmp_path / "m.mlir"
    ones = ", ".join(["1.0"] * 8)
    path.write_text(text.replace("DIGEST", f"[{ones}] : tensor<4x2xf32>"))
    options = {"loss": "mean_square", "learning_rate": 0.0, "steps": steps, **options}
    exe = compile_model(
        path,
        target,
        precision=precision,  # pyright: ignore[reportArgumentType]
        rounding="stochastic" if precision else None,
        train=Training(**options),  # pyright: ignore[reportArgumentType]
        cache=False,
    )
    x = np.full((8, 4), 0.0, np.float32)
    x[BAD:] = 1.0
    inputs = [replace(each, shape=each.shape[steps > 1 :]) for each in exe.inputs]
    data = {"x": x, "target": np.zeros((8, 2), np.float32)}
    return Trainer(exe, samples_of(data, inputs, "data"))


def test_an_overflow_of_float16_names_the_operation_and_its_step(tmp_path: Path):
    """In float32, nothing overflows: the square of 6e4 is 3.6e9."""
    run = trainer(tmp_path, "tiny:2")
    with pytest.raises(LossIsNotFinite, match=r"step \d: .*; the operation at .* makes inf of f16"):
        for _ in range(4):
            run.step()


def test_an_overflow_names_the_batch_of_a_run_of_several_steps(tmp_path: Path):
    run = trainer(tmp_path, "tiny:2", steps=4)
    with pytest.raises(LossIsNotFinite, match=r"makes inf of f16 in batch \d of 4 of the run"):
        run.step()


def test_where_halves_clip_nothing_overflows(tmp_path: Path):
    run = trainer(tmp_path, "mk2:2")
    assert np.isfinite([run.step() for _ in range(4)]).all()


def refusal(run: Trainer) -> str:
    with pytest.raises(LossIsNotFinite) as refused:
        for _ in range(8):
            run.step()
    return str(refused.value)


def step_of(run: Trainer) -> int:
    """The number of the first step whose batch has a bad sample."""
    return 1 + next(i for i in range(8) if run.samples.at(i, 0)["x"].any())


@pytest.mark.parametrize("precision", ["float16", "pure-float16"])
@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("rule", [0, 2])
def test_an_overflow_names_operation_step_and_what_may_help(
    tmp_path: Path, precision: str, steps: int, rule: int
):
    run = trainer(tmp_path, f"tiny:2,rounding.overflow={rule}", steps, precision=precision)
    said = refusal(run)
    assert f": step {step_of(run)}: the loss is" in said
    assert f"makes {'nan' if rule else 'inf'} of f16" in said or "makes -inf of f16" in said
    assert "f16 holds numbers up to 65504: bfloat16 (--precision bfloat16)" in said
    assert 'narrow-floats{keep="' in said
    assert "loss_scale" not in said


def test_an_overflow_in_the_part_of_a_batch_has_its_step(tmp_path: Path):
    run = trainer(tmp_path, "tiny:2", micro_batches=2)
    said = refusal(run)
    assert f": step {step_of(run)}: " in said
    assert "of f16" in said


def test_gradients_that_the_loss_scale_makes_too_large_ask_for_a_smaller_one(tmp_path: Path):
    text = MODEL.replace("6.0e4", "1.0e2")
    run = trainer(tmp_path, "tiny:2", text=text, precision="float16", loss_scale=32768.0)
    said = refusal(run)
    assert f": step {step_of(run)}: " in said
    assert "a loss_scale below 32768, or automatic scaling" in said
    assert "/backward" in said


def test_what_float32_does_not_hold_either_needs_no_wider_type(tmp_path: Path):
    text = MODEL.replace("6.0e4", "1.0e30")
    said = refusal(trainer(tmp_path, "tiny:2", text=text, precision=None))
    assert "A smaller learning rate or clip_norm may help" in said


FUNCTION = """
builtin.module {
  nn.state @w : tensor<4x2xf32> = <DIGEST>
  func.func @body(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = nn.scale %x by 1.0e4 : (tensor<2x2xf32>) -> tensor<2x2xf32> loc("grow")
    func.return %0 : tensor<2x2xf32>
  }
  func.func @main(%x: tensor<2x4xf32>) -> tensor<2x2xf32> attributes {arg_names = ["x"]} {
    %w = nn.load @w : tensor<4x2xf32> loc("w")
    %0 = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32> loc("product")
    %1 = control.repeat 3 (%0) : (tensor<2x2xf32>) -> tensor<2x2xf32> {
    ^bb0(%y: tensor<2x2xf32>):
      %2 = func.call @body(%y) : (tensor<2x2xf32>) -> tensor<2x2xf32>
      control.yield %2 : tensor<2x2xf32>
    }
    func.return %1 : tensor<2x2xf32>
  }
}"""


def test_an_overflow_in_a_function_that_a_loop_calls_is_named(tmp_path: Path):
    run = trainer(tmp_path, "tiny:2", text=FUNCTION, precision="float16")
    said = refusal(run)
    assert f": step {step_of(run)}: " in said
    assert "the operation at grow" in said
