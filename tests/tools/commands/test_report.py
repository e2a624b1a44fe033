"""abele report: writes the report, also of a program that does not fit."""

import json
from pathlib import Path

import onnx
import pytest
from some_models import model, node, random
from typer.testing import CliRunner

from abele.tools.cli import app

SMALL = "tiny:4,memory.bytes_per_tile=20000,memory.reserved_bytes=4000"


@pytest.fixture(autouse=True)
def _a_net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h v", "y")]
    weights = {"w": random((256, 64)), "v": random((64, 32), 1)}
    onnx.save(model(nodes, {"x": [16, 256]}, ["y"], weights), "net.onnx")


def report(*arguments: str):
    return CliRunner().invoke(app, ["report", "net.onnx", *arguments])


def facts(folder: str = "out") -> dict:
    return json.loads(Path(folder, "report.json").read_text())["program"]


def test_it_says_where_the_report_is_and_its_first_figures():
    result = report("-o", "out", "--target", "tiny:4")
    assert result.exit_code == 0, result.output
    assert "net.onnx on tiny" in result.output
    assert f"{facts()['cycles']:,} cycles" in result.output


def test_a_program_that_does_not_fit_is_reported_and_exits_with_3():
    result = report("-o", "out", "--target", SMALL)
    assert result.exit_code == 3, result.output
    assert "bytes more than it has" in result.output
    assert not facts()["fits"]
    assert facts()["over_bytes"] > 0


def test_it_needs_a_folder():
    result = report()
    assert result.exit_code == 2
    assert "need -o DIR" in result.output


def test_a_folder_with_other_files_is_refused_before_anything_is_compiled():
    Path("out").mkdir()
    Path("out/mine.txt").write_text("mine")
    result = report("-o", "out")
    assert result.exit_code == 2
    assert "mine.txt" in result.output
