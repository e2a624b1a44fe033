"""abele report: writes the report, also of a program that does not fit."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.tools.cli import app

SMALL = "tiny:4,memory.bytes_per_tile=20000,memory.reserved_bytes=4000"


pytestmark = pytest.mark.usefixtures("net")


def report(*arguments: str):
    return CliRunner().invoke(app, ["report", "net.onnx", *arguments])


def facts(folder: str = "out") -> dict:
    return json.loads(Path(folder, "report.json").read_text())["program"]


def test_it_says_where_the_report_is_and_its_first_figures():
    result = report("-o", "out", "--target", "tiny:4")
    assert result.exit_code == 0, result.output
    assert "net.onnx on tiny" in result.output
    assert f"{facts()['cycles']:,} cycles" in result.output
    levels = [path.name for path in Path("out/levels").iterdir()]
    assert sorted(levels) == ["exchange.onnx", "nn.onnx", "partition.onnx", "tile.onnx"]


def test_a_program_that_does_not_fit_is_reported_and_exits_with_3():
    result = report("-o", "out", "--target", SMALL)
    assert result.exit_code == 3, result.output
    assert "bytes more than it has" in result.output
    assert not facts()["fits"]
    assert facts()["over_bytes"] > 0


def test_a_program_with_more_tiles_than_the_target_says_how_many(on_four_tiles: str):
    arguments = ["report", on_four_tiles, "-o", "out", "--target", "tiny:2"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 3, result.output
    assert "does not fit: it needs 4 tiles, and the target has 2" in result.output
    assert (facts()["fits"], facts()["over_bytes"]) == (False, 0)


def test_a_condition_that_holds_is_said_of_a_program_that_does_not_fit_as_well():
    result = report("--target", SMALL, "--fail-if", "cycles > 1")
    assert result.exit_code == 3, result.output
    assert "check failed: cycles > 1" in result.output
    assert "bytes more than it has" in result.output


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


def test_a_baseline_is_compared_with_and_conditions_decide_the_exit_code():
    assert report("-o", "was", "--target", "tiny:4").exit_code == 0
    worse = ("--target", "tiny:2", "--fail-if", "cycles > 1.02 * baseline.cycles")
    result = report("was", "-o", "out", "--markdown", "out.md", *worse)
    assert result.exit_code == 1, result.output
    assert "check failed: cycles > 1.02 * baseline.cycles" in result.output
    assert "beside net.onnx: +" in result.output
    assert "**fails**: `cycles > 1.02 * baseline.cycles`" in Path("out.md").read_text()
    assert Path("out/index.html").exists()
    same = report("was", "--target", "tiny:4", "--fail-if", "cycles > baseline.cycles")
    assert same.exit_code == 0, same.output


def test_a_baseline_may_be_a_model():
    result = report("net.onnx", "--target", "tiny:4", "--fail-if", "cycles != baseline.cycles")
    assert result.exit_code == 0, result.output


def test_a_second_report_has_plans_and_passes_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    for folder in ("first", "second"):
        result = report("-o", folder, "--target", "tiny:4")
        assert "planned before" not in result.output
        assert json.loads(Path(folder, "report.json").read_text())["absent"] == {}


def test_conditions_are_read_before_anything_is_compiled():
    result = report("--fail-if", "cycles >")
    assert result.exit_code == 2
    assert "not understood at its end" in result.output


def test_a_tile_that_is_not_there_leaves_nothing_written():
    result = report("-o", "out", "--target", "tiny:4", "--perfetto", "p.bin", "--tiles", "4")
    assert result.exit_code == 2
    assert "--tiles 4: need 0 to 3" in result.output
    assert not Path("out").exists()
    assert "need both" in report("-o", "out", "--tiles", "1").output


def test_a_folder_without_a_report_is_no_baseline():
    Path("empty").mkdir()
    result = report("empty", "-o", "out", "--target", "tiny:4")
    assert result.exit_code == 2
    assert "empty: no report: report.json: No such file or directory" in result.output


def test_plans_are_not_compared_with_those_of_a_program_file():
    made = ["compile", "net.onnx", "--target", "tiny:4", "-o", "net.abele"]
    assert CliRunner().invoke(app, made).exit_code == 0
    result = report("net.abele", "--target", "tiny:4", "--markdown", "out.md")
    assert result.exit_code == 0, result.output
    assert "Plans are not compared" in result.output
    assert "No operation differs." in Path("out.md").read_text()


def test_a_summary_needs_a_baseline():
    result = report("--markdown", "out.md")
    assert result.exit_code == 2
    assert "need BASELINE" in result.output
    assert not Path("out.md").exists()


def test_a_timeline_is_svg():
    result = report("--timeline", "out.png")
    assert result.exit_code == 2
    assert "--timeline out.png: the picture is SVG; need FILE.svg" in result.output
    assert not Path("out.png").exists()
