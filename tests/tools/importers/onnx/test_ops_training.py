"""Steps of optimisers."""

import numpy as np
import pytest

from abele.ir.errors import InputError

from .one_node import agree_with_onnx, computed, one_node

TRAINING = "ai.onnx.preview.training"
OPTIMISERS = {
    "Momentum": (1, {"alpha": 0.9, "beta": 0.5, "norm_coefficient": 0.01, "mode": "nesterov"}),
    "Adagrad": (1, {"decay_factor": 0.1, "norm_coefficient": 0.01, "epsilon": 1e-3}),
    "Adam": (
        2,
        {
            "alpha": 0.9,
            "beta": 0.99,
            "norm_coefficient": 0.01,
            "norm_coefficient_post": 0.02,
            "epsilon": 1e-3,
        },
    ),
}


@pytest.mark.parametrize("operator", OPTIMISERS)
@pytest.mark.parametrize("count", [0, 3])
def test_weights_and_their_states_move_one_step(operator: str, count: int):
    states, attributes = OPTIMISERS[operator]
    random = np.random.default_rng(0)
    tensors = [
        np.abs(random.standard_normal(shape)).astype(np.float32)
        for _ in range(states + 2)
        for shape in ((2, 3), (4,))
    ]
    rate, steps = np.array(0.1, np.float32), np.array(count)
    results = 2 * (states + 1)
    agree_with_onnx(
        *one_node(operator, rate, steps, *tensors, domain=TRAINING, results=results, **attributes)
    )


def test_tensors_that_are_missing_are_counted():
    scalar = np.array(1, np.float32)
    with pytest.raises(InputError, match="4 operands; need a rate, a count, and 3 per weight"):
        computed(*one_node("Adagrad", scalar, np.array(1), scalar, scalar, domain=TRAINING))
