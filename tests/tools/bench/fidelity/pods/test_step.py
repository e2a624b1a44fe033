"""Steps of training on one chip."""

import pytest

from abele.tools import Training, compile_model
from abele.tools.bench.fidelity.pods.step import update_cycles


def test_an_update_counts_apart_unless_a_gradient_is_computed_with_it():
    def update(optimizer: str) -> tuple[int, int]:
        training = Training(optimizer=optimizer)
        exe = compile_model("examples/digits.onnx", "tiny:4", batch=4, train=training, cache=False)
        return update_cycles(exe), exe.profile["phases"]["update"]["cycles"]

    # sgd computes most updates together with their gradients. Adam reads each gradient twice.
    own, whole = update("sgd")
    assert 0 < own < 0.5 * whole
    own, whole = update("adam")
    assert own == pytest.approx(whole, rel=0.1)
