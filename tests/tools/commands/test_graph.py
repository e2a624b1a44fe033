import os
from pathlib import Path

import onnx
import pyarrow.parquet as pq
import pytest
from some_models import convolutions
from typer.testing import CliRunner, Result

from abele.tools.cli import app
from abele.tools.driver.compile import compile_model
from abele.tools.views.graph import graphml as graphml_file
from abele.tools.views.graph.folder import FILES


def graph(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, ["graph", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.onnx"
    onnx.save(convolutions(), path)
    return path


SIZES = ("vertices", "edges", "connections", "loop_edges")


def test_the_sizes_are_those_of_the_profile(network: Path):
    result = graph(network, "--target", "tiny:8")
    assert result.exit_code == 0, result.output
    profile = compile_model(network, target="tiny:8").profile
    last = next(line for line in result.stdout.splitlines() if "all " in line)
    numbers = [cell.strip().replace(",", "") for cell in last.strip("│").split("│")]
    assert numbers[3:] == [str(profile[n]) for n in SIZES]
    assert "on tiny:8, 8 tiles" in result.stdout
    assert os.listdir() == ["small.onnx"]


def test_the_tables_and_a_graphml_are_written(network: Path):
    result = graph(network, "--target", "tiny:4", "-o", "out", "--graphml", "small.graphml")
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir("out")) == sorted((".abele.json", *FILES))
    about = pq.read_table("out/about.parquet").to_pylist()[0]
    assert about["edges"] == pq.read_metadata("out/edges.parquet").num_rows
    assert Path("small.graphml").read_text().startswith("<?xml")


def test_a_program_file_needs_no_target(network: Path):
    compile_model(network, target="tiny:8").save("small.abele")
    result = graph("small.abele", "-o", "out")
    assert result.exit_code == 0, result.output
    assert pq.read_table("out/about.parquet").to_pylist()[0]["target"] == "tiny:8"


def refused(*arguments: str | Path) -> str:
    result = graph(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


@pytest.mark.parametrize("option", ["-o", "--graphml"])
def test_a_path_without_permission_is_reported_before_anything_is_compiled(
    network: Path, option: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("abele.tools.commands.graph.compiled", None)
    assert "/proc/graph: cannot be written" in refused(network, option, "/proc/graph")


def test_a_folder_of_something_else_stays(network: Path):
    Path("mine").mkdir()
    Path("mine/note.txt").write_text("keep")
    assert "mine: " in refused(network, "-o", "mine")
    assert Path("mine/note.txt").read_text() == "keep"
    assert os.listdir("mine") == ["note.txt"]


def test_a_graph_too_large_for_graphml_is_refused_and_nothing_is_written(
    network: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(graphml_file, "MOST", 10)
    arguments = (network, "--target", "tiny:4", "-o", "out", "--graphml", "small.graphml")
    assert "are for 10 of both together" in refused(*arguments)
    assert os.listdir() == ["small.onnx"]


def test_a_missing_model_is_named(network: Path):
    assert "absent.onnx" in refused("absent.onnx", "-o", "out")


def test_vertices_can_be_finer(network: Path):
    coarse = graph(network, "--target", "tiny:4")
    fine = graph(network, "--target", "tiny:4", "--vertices-per-tile", "64")
    assert number_of_vertices(fine) > number_of_vertices(coarse)
    assert "0 vertices per tile; need 1..65536" in refused(network, "--vertices-per-tile", "0")
    compile_model(network, target="tiny:4").save("small.abele")
    assert "compiled already" in refused("small.abele", "--vertices-per-tile", "8")


def number_of_vertices(result: Result) -> int:
    last = next(line for line in result.stdout.splitlines() if "all " in line)
    return int(last.strip("│").split("│")[3].replace(",", ""))
