"""The example models compute what onnxruntime computes, and read handwritten digits."""

from pathlib import Path
from runpy import run_path

import numpy as np
import onnx
import onnxruntime
import pytest

from abele.backends.levels import initial_states
from abele.dialects.random_states import SEED, STEP
from abele.ir.well_known import ASKED, SCHEDULE
from abele.passes.gradients.factors import Factors, read_factors
from abele.tools import compile_model, from_jax
from abele.tools.driver.context import new_context
from abele.tools.importers.caffe.reader import read_caffe
from abele.tools.importers.front_end import Reading

EXAMPLES = Path(__file__).parents[1] / "examples"
IMAGES = np.load(EXAMPLES / "digits.npz")["x"]
LABELS = np.load(EXAMPLES / "digit_labels.npy")
TARGET = "tiny:64"


def of_onnxruntime(name: str, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(EXAMPLES / name, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def right(scores: np.ndarray) -> float:
    return (scores.argmax(axis=1) == LABELS[: len(scores)]).mean()


def test_the_convolutional_network_and_the_attention_block_read_digits():
    images = IMAGES[:64]
    for name, least in (("digits.onnx", 0.95), ("attention.onnx", 0.9)):
        exe = compile_model(EXAMPLES / name, target=TARGET, dims={"N": len(images)})
        scores = exe.run({"x": images})["scores"]
        np.testing.assert_allclose(scores, *of_onnxruntime(name, {"x": images}), atol=1e-4)
        assert right(scores) >= least


def test_the_recurrent_cell_reads_a_digit_row_by_row():
    exe = compile_model(EXAMPLES / "gru_cell.onnx", target=TARGET, dims={"N": len(IMAGES)})
    state, scores = np.zeros((len(IMAGES), 32), np.float32), np.zeros(0)
    for row in np.moveaxis(IMAGES[:, 0], 1, 0):
        given = {"row": np.ascontiguousarray(row), "state": state}
        results = exe.run(given)
        expected = of_onnxruntime("gru_cell.onnx", given)
        scores, state = results["scores"], results["next_state"]
        np.testing.assert_allclose(scores, expected[0], atol=1e-4)
        np.testing.assert_allclose(state, expected[1], atol=1e-5)
    assert right(scores) >= 0.95


def test_the_network_for_strain_is_what_its_script_makes_and_computes_what_onnxruntime_does():
    made = run_path(str(EXAMPLES / "make_ligo.py"))["network"]()
    assert made == onnx.load(EXAMPLES / "ligo.onnx")
    strain = np.random.default_rng(0).standard_normal((2, 1, 4096), np.float32)
    exe = compile_model(EXAMPLES / "ligo.onnx", target=TARGET, dims={"N": 2})
    expected = of_onnxruntime("ligo.onnx", {"x": strain})
    np.testing.assert_allclose(exe.run({"x": strain})["scores"], *expected, atol=1e-4)


def test_the_step_of_the_decoder_computes_what_jax_does_and_keeps_its_weights():
    for name in ("jax", "flax", "optax"):
        pytest.importorskip(name)
    made = run_path(str(EXAMPLES / "make_decoder_step.py"))["step_of"]
    step, (params, state, tokens) = made(layers=1, width=16, heads=2, length=4)
    model = from_jax(step, params, state, tokens, weights=["params", "state"])
    exe = compile_model(model, TARGET, keep={"params": "result[0]", "state": "result[1]"})
    for _ in range(2):
        params, state, loss = step(params, state, tokens)
        np.testing.assert_allclose(exe.run({"tokens": tokens})["result[2]"], loss, rtol=1e-5)


def test_the_solver_of_alexnet_trains_the_network_of_2012_as_caffe_does():
    path = EXAMPLES / "alexnet_solver.prototxt"
    module = read_caffe(path, Reading(new_context(), str(path), batch=2))
    # Dropout adds a seed and a number of the step.
    every = initial_states(module)
    states = {name: array for name, array in every.items() if name not in (SEED, STEP)}
    assert sum(array.size for array in states.values()) == 60_965_224
    assert [*states][:2] == ["conv1.weight", "conv1.bias"]
    for name, deviation in (("conv2.weight", 0.01), ("fc6.weight", 0.005)):
        assert states[name].std() == pytest.approx(deviation, rel=0.01)
    assert (states["conv2.bias"] == np.float32(0.1)).all()
    factors = read_factors(module)
    assert {*factors} == {name for name in states if name.endswith(".bias")}
    assert {*factors.values()} == {Factors(rate=2.0, decay=0.0)}
    asked = module.attributes[ASKED]
    assert str(asked) == (
        '"loss=given optimizer=sgd learning-rate=0.01 rate-in-momentum=true momentum=0.9 '
        'weight-decay=0.0005 schedule=true"'
    )
    assert str(module.attributes[SCHEDULE]) == '"step:100000:0.1"'
