"""The example models compute what onnxruntime computes, and read handwritten digits."""

from pathlib import Path
from runpy import run_path

import numpy as np
import onnx
import onnxruntime

from abele.tools import compile_model

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
