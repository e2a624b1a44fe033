"""The user's line of Python stands beside costs wherever the name of a node does."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import onnx
import pytest
from rich.console import Console

from abele.backends.graph import graph_of
from abele.backends.prices.price import price
from abele.tools import Executable, compile_model
from abele.tools.driver.executable import MACHINE
from abele.tools.driver.profile_file import write_profile
from abele.tools.views.graph.graphml import as_networkx
from abele.tools.views.graph.listing import graph_summary
from abele.tools.views.graph.summaries import compute_set_table, set_table
from abele.tools.views.graph.tables import vertex_pieces
from abele.tools.views.layer_names import names_in, source_lines
from abele.tools.views.report.collect import Report, collect
from abele.tools.views.trace import trace_text

IMPORTERS = Path(__file__).parents[1] / "importers"
TRACED = (
    "/x/site-packages/torch/nn/modules/conv.py(553): _conv_forward\n"
    "/home/me/old.py(4): forward\n/home/me/old.py(9): forward\n"
)
FILES = {"dynamo.onnx": "export.py", "script.onnx": "old.py", "cache.pt2": "torch_models.py"}
"""Models of PyTorch's exporters, and the file of their lines."""


def written(name: str, folder: Path) -> Path:
    path = folder / name
    if name.endswith(".pt2"):
        packed = (IMPORTERS / "pt2" / "fixtures" / f"{name}.xz").read_bytes()
        path.write_bytes(lzma.decompress(packed))
        return path
    kind = "torchscript" if name.startswith("script") else "dynamo"
    model = onnx.load(IMPORTERS / "onnx" / "exported" / f"{kind}.onnx")
    for each in model.graph.node:
        if kind == "torchscript":
            # The older exporter writes this with verbose=True.
            each.doc_string = TRACED
        elif name.startswith("plain"):
            del each.metadata_props[:]
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module", params=FILES)
def traced(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Executable, str]:
    path = written(request.param, tmp_path_factory.mktemp("models"))
    return path, compile_model(path, "tiny:4"), FILES[request.param]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Executable:
    return compile_model(written("plain.onnx", tmp_path_factory.mktemp("models")), "tiny:4")


def listed(exe: Executable) -> str:
    console = Console(width=400)
    with console.capture() as shown:
        console.print(graph_summary(graph_of(exe.module_at(MACHINE), exe.target)))
    return shown.get()


def test_vertices_and_compute_sets_of_a_graph_have_lines(traced: tuple[Path, Executable, str]):
    _, exe, file = traced
    module = exe.module_at(MACHINE)
    graph = graph_of(module, exe.target)
    assert all(each.line.startswith(f"{file}:") for each in graph.sets)
    assert set_table(graph)["line"] == [each.line for each in graph.sets]
    assert len(compute_set_table(graph, price(module, exe.target))["line"]) == len(
        graph.compute_sets
    )
    for columns, names in vertex_pieces(graph):
        lines = [names["line"][k] for k in columns["line"].tolist()]
        assert lines == [graph.sets[k].line for k in columns["set"].tolist()]
    vertices = as_networkx(graph).nodes(data="line")
    assert {line for _, line in vertices} == {each.line for each in graph.sets}
    assert graph.sets[0].line in listed(exe)


def test_a_profile_and_a_trace_have_lines(traced: tuple[Path, Executable, str], tmp_path: Path):
    path, exe, file = traced
    lines = source_lines(path)
    write_profile(tmp_path / "p.json", exe, lines)
    profile = json.loads((tmp_path / "p.json").read_text())
    found = {each["line"] for each in profile["operations"] if each["operation"] != "exchange.move"}
    assert found
    assert all(each.startswith(f"{file}:") for each in found)
    assert profile["lines"] == {each: lines[each] for each in found if each in lines}
    events = json.loads(trace_text(exe, lines))["traceEvents"]
    told = [each["args"] for each in events if "line" in each.get("args", {})]
    assert {each["line"] for each in told} >= found
    assert all(each.get("text", "") == lines.get(each["line"], "") for each in told)


def report_of(path: Path, exe: Executable) -> Report:
    return collect(exe, names_in(path), source_lines(path))


def test_supersteps_and_parts_of_a_report_have_lines(traced: tuple[Path, Executable, str]):
    path, exe, file = traced
    tables = report_of(path, exe).tables
    parts = tables["parts"]
    lines = [
        line for line, kind in zip(parts["line"], parts["kind"], strict=True) if kind == "compute"
    ]
    assert all(each.startswith(f"{file}:") for each in lines)
    assert set(lines) <= set(tables["supersteps"]["line"])


def test_a_model_without_lines_has_none(plain: Executable, tmp_path: Path):
    graph = graph_of(plain.module_at(MACHINE), plain.target)
    assert {each.line for each in graph.sets} == {""}
    header = next(line for line in listed(plain).splitlines() if "layer" in line)
    assert " line " not in header
    write_profile(tmp_path / "p.json", plain)
    assert json.loads((tmp_path / "p.json").read_text())["lines"] == {}
    assert '"line"' not in trace_text(plain)
