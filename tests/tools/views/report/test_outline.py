"""The report of a program that is too large to be planned."""

import json
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from abele.tools import load_report
from abele.tools.cli import app

pytestmark = pytest.mark.usefixtures("in_a_folder")

TEXT = """
!x = tensor<64x4096xf32>
!w = tensor<4096x4096xf32>
func.func @main(%x: !x, %w: !w, %v: !w) -> !x attributes
    {arg_names = ["x", "w", "v"], result_names = ["y"]} {
  %1 = nn.matmul %x, %w : (!x, !w) -> !x loc("first/product"("net.py":5:1))
  %2 = nn.relu %1 : (!x) -> !x loc("first/relu"("net.py":6:1))
  %3 = nn.matmul %2, %v : (!x, !w) -> !x loc("second/<b>product"("net.py":7:1))
  func.return %3 : !x loc("main")
} loc("main")
"""


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("big.mlir").write_text(TEXT)


def report(*arguments: str):
    return CliRunner().invoke(app, ["report", "big.mlir", "--target", "tiny:16", *arguments])


def test_it_says_what_is_large_and_exits_with_3():
    result = report("-o", "out")
    assert result.exit_code == 3, result.output
    assert "not planned: 3 operations" in result.output
    assert "needs 67108864 bytes on all tiles together" in result.output
    facts = json.loads(Path("out/report.json").read_text())
    program = facts["program"]
    assert (program["planned"], program["fits"], program["cycles"]) == (False, False, None)
    assert facts["absent"]["plans"].startswith("not planned: ")


def test_it_has_the_operations_tensors_and_lines():
    assert report("-o", "out").exit_code == 3
    loaded = load_report("out")
    names = ["first/product", "first/relu", "second/<b>product"]
    assert list(loaded.operations["name"]) == names
    assert list(loaded.operations["kind"]) == ["nn.matmul", "nn.relu", "nn.matmul"]
    assert list(loaded.operations["line"]) == ["net.py:5:1", "net.py:6:1", "net.py:7:1"]
    sizes = dict(zip(loaded.variables["name"], loaded.variables["bytes"], strict=True))
    assert sizes["w"] == 4 * 4096 * 4096
    assert loaded.variables["bytes"].sum() == 4 * (2 * 4096 * 4096 + 4 * 64 * 4096)
    links = loaded.links[["source", "destination"]].to_numpy().tolist()
    assert links == [[0, 1], [1, 2]]
    assert len(loaded.supersteps) == 0


def test_it_has_the_level_that_was_read():
    assert report("-o", "out").exit_code == 3
    (path,) = Path("out/levels").iterdir()
    model = onnx.load(path)
    onnx.checker.check_model(model)
    assert [node.op_type for node in model.graph.node] == ["matmul", "relu", "matmul"]


def test_it_is_no_baseline():
    assert report("-o", "out").exit_code == 3
    Path("small.mlir").write_text(TEXT.replace("4096", "8"))
    result = CliRunner().invoke(
        app, ["report", "small.mlir", "out", "--target", "tiny:16", "--markdown", "s.md"]
    )
    assert result.exit_code == 2, result.output
    assert "out: not planned, as it is too large" in result.output


def test_conditions_do_not_hide_that_it_does_not_fit():
    result = report("--fail-if", "cycles > 1")
    assert result.exit_code == 3, result.output
    assert "the report says what is large" in result.output
