"""Dropout and batch normalisation in a pipeline do what they do on one chip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from lengths import large
from onnx import TensorProto, helper, numpy_helper

from abele.tools import Executable, compile_model
from abele.tools.driver.training import Training

ROWS, WIDTH, PARTS = 4, 8, 4


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three layers with batch normalisation, and dropout between them."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights = {"ratio": np.array(0.5, np.float32), "training": np.array(True)}
    last = "x"
    for i in range(3):
        weights[f"w{i}"] = 0.4 * rng.normal(size=(WIDTH, WIDTH)).astype(np.float32)
        statistics = [f"{each}{i}" for each in ("scale", "shift", "mean", "variance")]
        for name, value in zip(statistics, (1, 0, 0, 1), strict=True):
            weights[name] = np.full(WIDTH, value, np.float32)
        steps = [
            (f"fc{i}", "MatMul", [f"w{i}"]),
            (f"norm{i}", "BatchNormalization", statistics),
            (f"drop{i}", "Dropout", ["ratio", "training"]),
        ]
        for name, operator, further in steps:
            nodes.append(helper.make_node(operator, [last, *further], [name], name=name))
            last = name
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [ROWS, WIDTH])
        for name in ("x", last)
    )
    tensors = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "network", [x], [y], tensors)
    path = tmp_path_factory.mktemp("random") / "network.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def trained(network: Path, target: str, **options: Any) -> Executable:
    """The program after two steps."""
    rng = np.random.default_rng(1)
    inputs = {
        name: rng.normal(size=(PARTS * ROWS, WIDTH)).astype(np.float32) for name in ("x", "target")
    }
    train = Training("mean_square", learning_rate=0.1, micro_batches=PARTS)
    exe = compile_model(network, target, train=train, **options, cache=False)
    for _ in range(2):
        exe.step(inputs)
    return exe


@pytest.mark.parametrize("options", [large({}), {"schedule": "interleaved", "recompute": "stages"}])
def test_masks_and_running_statistics_are_those_of_one_chip(network: Path, options: dict[str, Any]):
    one = trained(network, "tiny:4")
    several = trained(
        network, "tiny:8,links.topology=ladder,links.chips=2", pipeline="fc1", **options
    )
    assert {"random.step", "mean0", "variance2", "w1"} <= one.states.keys()
    for name, array in one.states.items():
        np.testing.assert_allclose(several.states[name], array, rtol=1e-5, atol=1e-6, err_msg=name)
    assert (np.abs(one.states["mean0"]) > 0).all()
