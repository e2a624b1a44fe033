"""Every command refuses inputs whose shapes contradict the model, and takes lines of lost files."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from typer.testing import CliRunner

from abele.tools.cli import app

COMMANDS = (
    ["run"],
    ["compile", "-o", "net.abele"],
    ["plan"],
    ["memory"],
    ["graph"],
    ["bisect"],
    ["report", "-o", "report"],
    ["scan", "-o", "scan.png"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each[0])
def test_shapes_that_contradict_a_model_of_fixed_sizes_are_refused(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    text = (
        '<ir_version: 10, opset_import: ["" : 20]> g (float[2, 3] x) => (float[2, 3] y)'
        " { y = Relu (x) }"
    )
    onnx.save(parser.parse_model(text), "net.onnx")
    np.savez("x.npz", x=np.zeros((5, 3), np.float32))
    name, *options = command
    asked = [name, "net.onnx", *options, "--target", "tiny:2", "--inputs", "x.npz"]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 2
    assert found.stderr == (
        "error: x.npz: 'x' has the shape [5, 3], but the model declares [2, 3]\n"
    )


LOST = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32>
    attributes {arg_names = ["x"], result_names = ["y"]} {
  %y = nn.relu %x : (tensor<8xf32>) -> tensor<8xf32> loc("act"("lost/net.py":12:3))
  func.return %y : tensor<8xf32>
}
"""


def test_a_line_of_a_file_that_is_not_there_stops_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("net.mlir").write_text(LOST)
    for command in (
        ["run", "net.mlir", "--check", "--profile", "p.json", "--trace", "t.json"],
        ["plan", "net.mlir"],
        ["memory", "net.mlir"],
        ["graph", "net.mlir", "-o", "graph"],
        ["report", "net.mlir", "-o", "report", "--perfetto", "trace.pftrace"],
    ):
        found = CliRunner().invoke(app, [*command, "--target", "tiny:2"])
        assert found.exit_code == 0, found.stderr
    (operation, *_) = json.loads(Path("p.json").read_text())["operations"]
    assert operation["line"] == "net.py:12:3"
