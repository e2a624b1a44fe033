"""The same model of Flax or Keras by StableHLO and by ONNX. Both files are kept with the tests."""

from pathlib import Path

import numpy as np
import pytest

from abele.tools import compile_model
from abele.tools.driver.executable import Executable

FOLDER = Path(__file__).parent / "forms"


def both(name: str) -> tuple[Executable, Executable]:
    path = FOLDER / name
    weights = path.with_suffix(".safetensors")
    own = compile_model(path.with_suffix(".mlir"), "tiny:16", weights=weights, cache=False)
    return own, compile_model(path.with_suffix(".onnx"), "tiny:16", cache=False)


def outputs(exe: Executable) -> np.ndarray:
    (each,) = exe.inputs
    x = np.random.default_rng(0).normal(size=each.shape).astype(np.float32)
    (found,) = exe.run({each.name: x}).values()
    return found


def test_a_perceptron_becomes_the_same_program():
    own, other = both("perceptron")
    assert np.array_equal(outputs(own), outputs(other))
    for figure in ("exchange_bytes", "supersteps", "vertices"):
        assert own.profile[figure] == other.profile[figure]


def test_a_keras_model_computes_the_same_by_jax_and_by_tensorflow():
    own, other = both("keras")
    found, wanted = outputs(own), outputs(other)
    assert found.shape == (2, 10)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
    # tf2onnx computes the factors of the normalisation itself, and transposes images.
    assert own.profile["cycles"] <= other.profile["cycles"]


@pytest.mark.parametrize("name", ["block", "residual"])
def test_modules_that_the_exporter_writes_otherwise_agree_and_are_no_slower(name: str):
    own, other = both(name)
    found, wanted = outputs(own), outputs(other)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
    # jax2onnx writes the moments of a normalisation as two sums, and transposes images.
    assert own.profile["cycles"] <= other.profile["cycles"]
    assert own.profile["vertices"] < other.profile["vertices"]
