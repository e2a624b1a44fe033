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


def trainer(tmp_path: Path, target: str, steps: int = 1) -> Trainer:
    path = tmp_path / "m.mlir"
    ones = ", ".join(["1.0"] * 8)
    path.write_text(MODEL.replace("DIGEST", f"[{ones}] : tensor<4x2xf32>"))
    training = Training(loss="mean_square", learning_rate=0.0, steps=steps)
    exe = compile_model(
        path,
        target,
        precision="pure-float16",
        rounding="stochastic",
        train=training,
        cache=False,
    )
    x = np.zeros((8, 4), np.float32)
    x[6:] = 1.0
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
