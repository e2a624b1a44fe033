"""The counts of a run are those of the values that the machine has."""

from pathlib import Path

import numpy as np
import pytest

from abele.ir.provenance import origin_names
from abele.tools import Executable, Training, compile_model
from abele.tools.driver.health.recorder import HealthRecorder
from abele.tools.driver.health.tally import Tally
from abele.tools.driver.health.watched import WatchedProgram

MODEL = """
builtin.module {
  nn.state @w : tensor<4x2xf32> = <[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0] : tensor<4x2xf32>>
  func.func @main(%x: tensor<2x4xf32>) -> tensor<2x2xf32> attributes {arg_names = ["x"]} {
    %w = nn.load @w : tensor<4x2xf32> loc("w")
    %0 = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32> loc("product")
    %1 = nn.tanh %0 : (tensor<2x2xf32>) -> tensor<2x2xf32> loc("tanh")
    %2 = nn.scale %1 by 4.0e4 : (tensor<2x2xf32>) -> tensor<2x2xf32> loc("large")
    func.return %2 : tensor<2x2xf32>
  }
}"""

SMALL = 2.0**-18
"""An input whose gradients float16 holds; those of 1 are too large."""


def compiled(tmp_path: Path, target: str = "mk2:2", **training: object) -> Executable:
    path = tmp_path / "m.mlir"
    path.write_text(MODEL)
    options = {"loss": "mean_square", "learning_rate": 0.0, **training}
    return compile_model(
        path,
        target,
        precision="float16",
        rounding="nearest",
        train=Training(**options),  # pyright: ignore[reportArgumentType]
        cache=False,
    )


def batch(x: float, *shape: int) -> dict[str, np.ndarray]:
    return {
        "x": np.full((*shape, 2, 4), x, np.float32),
        "target": np.zeros((*shape, 2, 2), np.float32),
    }


def counts(exe: Executable, inputs: dict[str, np.ndarray], step: int = 0) -> Tally:
    """The counts of the gradients of the tanh in a step, which are the largest numbers."""
    found = Tally()
    for each in WatchedProgram(exe).run(inputs, exe.states):
        if each.step == step and "tanh/backward" in origin_names(each.location):
            found |= each.tally
    return found


def test_where_halves_clip_their_overflows_are_counted(tmp_path: Path):
    """A loss that stays finite says nothing of numbers that the machine has clipped."""
    exe = compiled(tmp_path)
    assert counts(exe, batch(SMALL)).overflows == 0
    found = counts(exe, batch(1.0), 0)
    assert found.clipped > 0
    assert found.infinities == found.nans == 0
    assert found.largest == 65504.0


@pytest.mark.parametrize(("rule", "kind"), [(0, "infinities"), (2, "nans")])
def test_other_rules_of_overflow_are_counted_by_their_kind(tmp_path: Path, rule: int, kind: str):
    found = counts(compiled(tmp_path, f"mk2:2,rounding.overflow={rule}"), batch(1.0))
    assert getattr(found, kind) > 0
    assert found.clipped == 0


def test_a_watched_run_leaves_the_program_as_it_is(tmp_path: Path):
    exe = compiled(tmp_path, learning_rate=0.1)
    before = {name: array.copy() for name, array in exe.states.items()}
    watched = WatchedProgram(exe)
    first = watched.run(batch(0.01), exe.states)
    assert all(np.array_equal(array, before[name]) for name, array in exe.states.items())
    exe.step(batch(0.01))
    assert not np.array_equal(exe.states["w"], before["w"])
    # What the second machine holds is what its last run was given, not what that run has left.
    again = watched.run(batch(0.01), before)
    assert again == first


def test_each_step_of_a_run_has_its_own_counts(tmp_path: Path):
    exe = compiled(tmp_path, steps=3)
    inputs = batch(SMALL, 3)
    inputs["x"][1] = 1.0
    clipped = [counts(exe, inputs, step).clipped for step in range(3)]
    assert [each > 0 for each in clipped] == [False, True, False]


def test_parts_of_a_batch_are_counted_together(tmp_path: Path):
    exe = compiled(tmp_path, micro_batches=2)
    inputs = {name: np.concatenate([array, array]) for name, array in batch(0.5).items()}
    inputs["x"][2:] = SMALL
    whole = compiled(tmp_path)
    parts = [counts(whole, batch(value)) for value in (0.5, SMALL)]
    assert counts(exe, inputs).clipped == sum(each.clipped for each in parts) > 0


def test_only_steps_whose_turn_it_is_are_recorded(tmp_path: Path):
    exe = compiled(tmp_path, steps=2)
    recorder = HealthRecorder(exe, every=4)
    for first in (1, 3, 5):
        recorder.record(batch(0.1, 2), exe.states, range(first, first + 2))
    assert {each.step for each in recorder.records} == {4}
    recorder.record(batch(0.1, 2), exe.states, range(9, 11), every=True)
    assert {each.step for each in recorder.records} == {4, 9, 10}


def test_a_program_that_does_not_train_has_health_too(tmp_path: Path):
    path = tmp_path / "m.mlir"
    path.write_text(MODEL)
    exe = compile_model(path, "mk2:2", precision="float16", cache=False)
    frame = exe.health({"x": np.full((2, 4), 0.5, np.float32)})
    assert set(frame["operation"]) == {"product+tanh+large"}
    assert frame["largest"].max() == pytest.approx(4e4 * np.tanh(2.0), rel=1e-3)
    assert (frame["step"] == 1).all()
