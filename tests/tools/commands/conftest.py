"""What tests of several commands need."""

from pathlib import Path

import onnx
import pytest
from some_models import model, node, products

from abele.ir.printer import module_text
from abele.passes.plans.planned import TARGET
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """net.onnx, two products of matrices, in the working folder."""
    monkeypatch.chdir(tmp_path)
    onnx.save(products(), "net.onnx")
    return "net.onnx"


@pytest.fixture
def on_four_tiles(tmp_path: Path) -> str:
    """A program of four tiles, as text that does not say which target it was planned for."""
    # Weights would be in a file of their own.
    product = model([node("MatMul", "x w", "y")], {"x": [64, 64], "w": [64, 32]}, ["y"])
    module = compile_model(product, target="tiny:4").module_at(MACHINE)
    del module.attributes[TARGET]
    path = tmp_path / "four.mlir"
    path.write_text(module_text(module, locations=True))
    return str(path)
