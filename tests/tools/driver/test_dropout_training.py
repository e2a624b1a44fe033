"""Dropout drops in training only, other elements in each step, and the same ones again."""

from functools import cache

import numpy as np
import onnx
import pytest
from some_models import model, node, random

from abele.tools import Executable, Training, compile_model

INPUTS = {"x": random((6, 5), 1), "target": np.array([0, 2, 1, 1, 0, 2], np.int32)}


def network() -> onnx.ModelProto:
    """Two layers, with dropout in between, as a model that was written to be run."""
    nodes = [
        node("Gemm", "x w0", "h", transB=1),
        node("Relu", "h", "r"),
        node("Dropout", "r ratio", "d"),
        node("Gemm", "d w1", "y", transB=1),
    ]
    weights = {
        "w0": random((32, 5), 2),
        "w1": random((3, 32), 3, 0.3),
        "ratio": np.array(0.25, np.float32),
    }
    return model(nodes, {"x": [6, 5]}, ["y"], weights)


@cache
def compiled(**options: object) -> Executable:
    return compile_model(network(), "tiny:8", train=Training(outputs=True, **options))


def test_a_program_that_is_run_drops_nothing():
    w = {each.name: onnx.numpy_helper.to_array(each) for each in network().graph.initializer}
    expected = np.maximum(INPUTS["x"] @ w["w0"].T, 0) @ w["w1"].T
    found = compile_model(network(), "tiny:8").run({"x": INPUTS["x"]})["y"]
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)
    judged = compile_model(network(), "tiny:8", train=Training(outputs=True, update=False))
    assert judged.run(INPUTS)["y"] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("parts", [1, 2])
def test_each_step_drops_other_elements_and_the_same_ones_after_a_reset(parts: int):
    exe = compiled(learning_rate=0.0, micro_batches=parts)
    batch = {name: np.concatenate([array] * parts) for name, array in INPUTS.items()}
    exe.reset()
    first = [exe.step(batch)["y"] for _ in range(3)]
    assert len({array.tobytes() for array in first}) == 3
    if parts == 2:
        assert not np.array_equal(*np.split(first[0], 2))
    exe.reset()
    assert [exe.step(batch)["y"].tobytes() for _ in range(3)] == [a.tobytes() for a in first]


def test_a_step_drops_the_elements_of_its_number():
    """The number of the step is a state, so training goes on to the same bits."""
    exe = compiled(momentum=0.9)
    exe.reset()
    exe.step(INPUTS)
    kept = {name: array.copy() for name, array in exe.states.items()}
    losses = [float(exe.step(INPUTS)["loss"]) for _ in range(3)]
    exe.reset()
    exe.set_states(kept)
    assert [float(exe.step(INPUTS)["loss"]) for _ in range(3)] == losses
    exe.set_states(kept, at="nn")
    again = [float(exe.step(INPUTS, at="nn")["loss"]) for _ in range(3)]
    assert losses == pytest.approx(again, rel=1e-5)


def test_as_many_elements_are_dropped_as_the_ratio_says():
    nodes = [node("Mul", "x w", "h"), node("Dropout", "h", "y", ratio=0.25)]
    made = model(nodes, {"x": [40, 50]}, ["y"], {"w": np.ones(50, np.float32)}, opset=11)
    training = Training(loss="mean_square", outputs=True, learning_rate=0.0)
    exe = compile_model(made, "tiny:8", train=training)
    ones = np.ones((40, 50), np.float32)
    found = exe.step({"x": ones, "target": ones})["y"]
    assert set(np.unique(found)) == {0, np.float32(1 / 0.75)}
    assert (found == 0).mean() == pytest.approx(0.25, abs=0.04)
