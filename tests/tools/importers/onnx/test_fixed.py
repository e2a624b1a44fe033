"""Weights that PyTorch does not train stay as they are in training."""

import numpy as np
import onnx
import pytest
from some_models import FLOAT, model, node, random

from abele.tools import Training, compile_model
from abele.tools.importers.onnx.fixed import KIND

WEIGHTS = {
    "layer.weight": random((4, 3)),
    "val_3": random((4,), 1),  # a parameter that the exporter has transposed, so without a mark
    "temperature": np.array(2.0, np.float32),
    "table": random((4,), 2),
    "val_7": np.array(0.5, np.float32),
}
KINDS = {"layer.weight": "PARAMETER", "temperature": "PARAMETER", "table": "BUFFER"}
STAYS = ["table", "val_7"]


def exported(kinds: dict[str, str]) -> onnx.ModelProto:
    """y = (x W + val_3 + table) * temperature * val_7, with marks of PyTorch's exporter."""
    nodes = [
        node("Gemm", "x layer.weight val_3", "a", transB=1),
        node("Add", "a table", "b"),
        node("Mul", "b temperature", "c"),
        node("Mul", "c val_7", "y"),
    ]
    made = model(nodes, {"x": [2, 3]}, ["y"], WEIGHTS)
    for name, kind in kinds.items():
        info = onnx.helper.make_tensor_value_info(name, FLOAT, WEIGHTS[name].shape)
        info.metadata_props.add(key=KIND, value=kind)
        made.graph.value_info.append(info)
    return made


@pytest.mark.parametrize(("kinds", "stays"), [(KINDS, STAYS), ({}, [])])
def test_training_changes_what_the_exporter_marks_as_a_parameter(kinds, stays):
    training = Training(loss="mean_square", learning_rate=0.1)
    exe = compile_model(exported(kinds), "tiny:2", train=training, cache=False)
    assert sorted(exe.weights) == sorted({*WEIGHTS} - {*stays})
    exe.step({"x": random((2, 3), 3), "target": random((2, 4), 4)})
    for name, value in exe.weights.items():
        assert (value != WEIGHTS[name]).any()


def test_a_file_of_weights_replaces_those_that_are_not_trained_too():
    inputs = {"x": random((2, 3), 3)}
    exe = compile_model(exported(KINDS), "tiny:2", cache=False)
    own = {**WEIGHTS, "val_7": np.array(1.5, np.float32)}
    other = compile_model(exported(KINDS), "tiny:2", weights=own, cache=False)
    (before,), (after,) = (each.run(inputs).values() for each in (exe, other))
    np.testing.assert_allclose(after, 3 * before, rtol=1e-5)
