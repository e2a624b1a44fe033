import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import pytest
from some_models import convolutions
from typer.testing import CliRunner

from abele.tools import compile_model
from abele.tools.cli import app
from abele.tools.views import trace
from abele.tools.views.trace import trace_text

LOOP = """
builtin.module {
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = control.repeat 500 (%x) : (tensor<8x8xf32>) -> (tensor<8x8xf32>) {
    ^bb0(%a: tensor<8x8xf32>):
      %1 = nn.softmax %a axis 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
      control.yield %1 : tensor<8x8xf32>
    }
    func.return %0 : tensor<8x8xf32>
  }
}
"""


def slices(text: str) -> list[dict[str, Any]]:
    return [each for each in json.loads(text)["traceEvents"] if each["ph"] == "X"]


FIELDS = {
    "X": {
        "name": str,
        "cat": str,
        "ph": str,
        "ts": (int, float),
        "dur": (int, float),
        "pid": int,
        "tid": int,
        "args": dict,
    },
    "M": {"name": str, "ph": str, "pid": int, "tid": int, "args": dict},
}
"""The fields of complete events and of metadata, with their types. Source: "Trace Event Format",
Google, 2016: "Event Descriptions", "Complete Events" and "Metadata Events". abele writes no
others."""

METADATA = {"process_name", "thread_name"}
"""Of the names of metadata in the source, those whose argument is a name."""


STAGES = """
builtin.module {
  func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = func.call @one(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = func.call @two(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    func.return %1 : tensor<8x8xf32>
  }
  func.func @one(%x: tensor<8x8xf32>) -> tensor<8x8xf32>
      attributes {abele.chips = [0 : i64, 1 : i64, 1 : i64]} {
    %0 = nn.softmax %x axis 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    func.return %0 : tensor<8x8xf32>
  }
  func.func @two(%x: tensor<8x8xf32>) -> tensor<8x8xf32>
      attributes {abele.chips = [1 : i64, 1 : i64, 1 : i64]} {
    %0 = nn.softmax %x axis 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    func.return %0 : tensor<8x8xf32>
  }
}
"""
"""A function on each of two chips."""


def test_each_chip_is_a_process_and_waits_for_words_of_others(tmp_path: Path):
    path = tmp_path / "stages.mlir"
    path.write_text(STAGES)
    exe = compile_model(path, "tiny:8,links.chips=2,links.topology=ladder")
    found = slices(trace_text(exe))
    assert {each["pid"] for each in found} == {1, 2}
    clock = exe.target.clock_hz / 1e6
    for chip in exe.profile["by_chip"]:
        own = [e for e in found if e["pid"] == 1 + chip["chip"] and e["tid"] == trace.STEPS]
        for kind in ("sync", "exchange", "compute"):
            cycles = sum(each["args"]["cycles"] for each in own if each["cat"] == kind)
            assert cycles == chip[f"{kind}_cycles"]
        waits = sum(each["args"]["cycles"] for each in own if each["cat"] == trace.WAIT)
        assert waits == chip["waiting_cycles"]
        assert max(each["ts"] + each["dur"] for each in own) * clock == pytest.approx(chip["end"])
    waiting = [each["waiting_cycles"] for each in exe.profile["by_chip"]]
    assert waiting[1] > waiting[0]
    assert exe.profile["cycles"] == max(each["end"] for each in exe.profile["by_chip"])


def test_io_tiles_are_a_process_beside_their_chip():
    exe = compile_model(convolutions(), "tiny:5", io_tiles=1, remote=("*",))
    found = slices(trace_text(exe))
    assert {each["pid"] for each in found} == {1, 2}
    loads = [each for each in found if each["name"].startswith("remote")]
    assert loads
    assert {each["pid"] for each in loads} == {2}


def no_number(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


def test_events_have_the_fields_of_the_published_format(tmp_path: Path):
    path = tmp_path / "loop.mlir"
    path.write_text(LOOP)
    for model in (convolutions(), path):
        whole = json.loads(trace_text(compile_model(model, "tiny:16")), parse_constant=no_number)
        assert whole.keys() == {"displayTimeUnit", "otherData", "traceEvents"}
        assert whole["displayTimeUnit"] in ("ms", "ns")
        assert isinstance(whole["otherData"], dict)
        named = set()
        for event in whole["traceEvents"]:
            fields = FIELDS[event["ph"]]
            assert event.keys() == fields.keys()
            for name, kind in fields.items():
                assert isinstance(event[name], kind), (name, event)
                assert not isinstance(event[name], bool)
            if event["ph"] == "M":
                assert event["name"] in METADATA
                assert isinstance(event["args"]["name"], str)
                named.add((event["name"], event["tid"]))
            else:
                assert event["ts"] >= 0
                assert event["dur"] >= 0
        rows = {event["tid"] for event in whole["traceEvents"] if event["ph"] == "X"}
        assert rows <= {row for name, row in named if name == "thread_name"}
        assert [row for name, row in named if name == "process_name"] == [0]


def test_the_trace_is_as_long_as_the_run_by_the_clock_of_the_target():
    exe = compile_model(convolutions(), "tiny:16")
    text = trace_text(exe)
    found = slices(text)
    cycles = exe.profile["cycles"]
    assert json.loads(text)["otherData"]["cycles"] == cycles
    steps = [each for each in found if each["cat"] == "superstep"]
    assert len(steps) == exe.profile["supersteps"]
    assert sum(each["args"]["cycles"] for each in steps) == cycles
    last = max(each["ts"] + each["dur"] for each in found)
    assert last == pytest.approx(cycles / exe.target.clock_hz * 1e6)


def test_phases_fill_their_superstep_and_operations_stay_in_it():
    found = slices(trace_text(compile_model(convolutions(), "tiny:16")))
    for step in (each for each in found if each["cat"] == "superstep"):
        # Less than a cycle less: the next superstep begins there.
        end = step["ts"] + step["dur"] - 1e-6
        inside = [e for e in found if step["ts"] - 1e-6 <= e["ts"] < end and e is not step]
        phases = {e["cat"]: e for e in inside if e["tid"] == step["tid"]}
        assert sum(e["args"]["cycles"] for e in phases.values()) == step["args"]["cycles"]
        rows = defaultdict[int, list[dict[str, Any]]](list)
        for each in (e for e in inside if e["tid"] != step["tid"]):
            assert each["ts"] + each["dur"] <= end + 2e-6
            assert each["ts"] >= phases["sync"]["ts"] + phases["sync"]["dur"] - 1e-6
            rows[each["tid"]].append(each)
        # A tile computes when its own exchange has ended.
        for row in rows.values():
            for first, then in pairwise(row):
                assert (first["cat"], then["cat"]) == ("exchange", "compute")
                assert then["ts"] >= first["ts"] + first["dur"] - 1e-6


def test_no_two_slices_of_a_row_cross():
    rows = defaultdict[int, list[tuple[int, int]]](list)
    exe = compile_model(convolutions(), "tiny:16")
    for each in slices(trace_text(exe)):
        start = round(each["ts"] * exe.target.clock_hz / 1e6)
        rows[each["tid"]].append((start, start + each["args"]["cycles"]))
    for spans in rows.values():
        for a, b in spans:
            assert not [1 for c, d in spans if a < c < b < d]


def test_slices_name_operations_and_the_nodes_of_the_framework():
    found = slices(trace_text(compile_model(convolutions(), "tiny:16")))
    names = [each["name"] for each in found]
    assert [each for each in names if each.startswith("the_c1") and "exchange.compute" in each]
    assert [each for each in names if each.startswith("the_c1") and "exchange.move" in each]


def test_a_long_loop_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trace, "MOST_EXECUTIONS", 100)
    path = tmp_path / "loop.mlir"
    path.write_text(LOOP)
    exe = compile_model(path, "tiny")
    found = slices(trace_text(exe))
    (cut,) = [each for each in found if each["cat"] == "loop"]
    assert cut["name"].endswith(" more iterations of the loop")
    assert "loop.mlir:4" in cut["args"]["loop"]
    steps = [each for each in found if each["cat"] == "superstep"]
    assert len(steps) <= 100
    assert {each["args"].get("turn") for each in steps} >= {"1", "2"}
    whole = sum(each["args"]["cycles"] for each in (cut, *steps))
    assert whole == exe.profile["cycles"]


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(convolutions(), "small.onnx")
    return tmp_path


@pytest.mark.parametrize("command", [("run",), ("compile", "-o", "p.abele")])
def test_run_and_compile_write_a_trace(network: Path, command: tuple[str, ...]):
    arguments = [*command, "small.onnx", "--target", "tiny:16", "--trace", "t.json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert slices(Path("t.json").read_text())


def test_a_saved_program_has_the_same_trace(network: Path):
    compile_model("small.onnx", "tiny:16").save("p.abele")
    texts = [trace_text(compile_model(each, "tiny:16")) for each in ("small.onnx", "p.abele")]
    first, second = (slices(text) for text in texts)
    assert first == second


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("small.onnx/t.json", "small.onnx/t.json: cannot be written"),
        ("small.onnx", "small.onnx: both the model and --trace"),
        ("/dev/full", "/dev/full: cannot be written: No space left on device"),
        (".", ".: cannot be written: it is a folder"),
    ],
)
def test_a_trace_that_cannot_be_written_is_one_message(network: Path, path: str, says: str):
    before = sorted(network.rglob("*"))
    result = CliRunner().invoke(app, ["run", "small.onnx", "--target", "tiny:16", "--trace", path])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"error: {says}")
    assert sorted(network.rglob("*")) == before
