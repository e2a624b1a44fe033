"""The demo and `run --check` fail if a kernel is wrong, and say which."""

import numpy as np
import onnx
import pytest
from planted_kernels import wrong_kernel
from some_models import convolutions
from typer.testing import CliRunner

from abele.backends.host.binders import best_binder
from abele.backends.host.fusion import FusedBinder
from abele.dialects.steps import Vertices
from abele.tools import compile_model
from abele.tools.cli import app
from abele.tools.commands import demo_network
from abele.tools.driver.arrays import seeded

TARGET = "tiny:8"

pytestmark = pytest.mark.skipif(best_binder() is not FusedBinder, reason="no kernels")


@pytest.fixture
def model(monkeypatch) -> onnx.ModelProto:
    """A small network in the place of the demo's."""
    proto = convolutions()

    def small() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        return proto, seeded(compile_model(proto, TARGET).inputs)

    monkeypatch.setattr(demo_network, "demo_model", small)
    return proto


def written(model: onnx.ModelProto) -> str:
    """The variable that the last vertices write."""
    module = compile_model(model, TARGET).module_at("exchange")
    *_, last = (op for op in module.walk() if isinstance(op, Vertices))
    return last.destination


@pytest.mark.parametrize("command", ["demo", "run"])
def test_a_wrong_kernel_ends_a_command_with_exit_code_1(command: str, model, tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    given = {"demo": [], "run": [str(path), "--check", "--no-cache"]}[command]
    variable = written(model)
    result = CliRunner().invoke(app, [command, *given, "--target", TARGET])
    assert result.exit_code == 0, result.output
    with wrong_kernel(variable):
        result = CliRunner().invoke(app, [command, *given, "--target", TARGET])
    assert result.exit_code == 1
    assert "check failed: a compiled kernel is wrong, not the model or a pass" in result.stderr
    assert f"to @{variable};" in result.stderr
