"""The README's Python runs as it stands."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

README = Path(__file__).parents[1] / "README.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_pass_works_and_is_tested_as_the_readme_says():
    pass_, test, _ = blocks()
    names: dict[str, Any] = {"__name__": "readme"}
    exec(pass_ + test, names)
    assert "after" in names


def test_the_python_interface_works_as_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    values = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    names: dict[str, Any] = {"x": values}
    exec(blocks()[2], names)
    assert np.array_equal(names["outputs"]["y"], np.maximum(values, 0))
    assert "tile.compute_set" in capsys.readouterr().out
