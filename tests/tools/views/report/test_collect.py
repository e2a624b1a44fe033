"""The tables of a report agree with each other, and with what the program itself says."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from some_models import convolutions, model, node, random, relu

from abele.backends.memory import MemoryReport
from abele.ir.text import print_module
from abele.tools import Training
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable
from abele.tools.driver.request import Request
from abele.tools.views.planning.plan import plan_model
from abele.tools.views.report.collect import Report, collect
from abele.tools.views.report.columns import length
from abele.tools.views.report.folder import rows_of
from abele.tools.views.report.schema import SCHEMA
from abele.tools.views.report.warnings import warnings_of


@pytest.fixture(scope="module")
def exe() -> Executable:
    return compile_model(convolutions(), target="tiny:8")


@pytest.fixture(scope="module")
def report(exe: Executable) -> Report:
    return collect(exe)


def test_every_table_has_the_columns_of_the_schema(report: Report):
    assert [*report.tables] == [each.name for each in SCHEMA]
    for schema in SCHEMA:
        columns = report.tables[schema.name]
        assert [*columns] == [c.name for c in schema.columns]
        assert len({len(values) for values in columns.values()}) == 1


def test_a_report_has_the_prices_of_products_with_zeros_that_a_plan_shows(report: Report):
    asked = Request(sparse(), "mk2:64", sparsity="8x8")
    exe = compile_model(sparse(), "mk2:64", sparsity="8x8", cache=False)
    rows = rows_of(collect(exe).tables["sparse_products"])
    planned = plan_model(replace(asked, passes="nn", tailored=True)).plan.sparse
    assert rows
    for row, each in zip(rows, planned, strict=True):
        wanted = each.to_dict() | {"verdict": each.verdict}
        assert row == {name: wanted[name] for name in row}
        assert row["verdict"] == "left out"
        assert row["sparse"] < row["dense"]
    assert length(report.tables["sparse_products"]) == 0


def sparse() -> onnx.ModelProto:
    """A product with a matrix of 128 x 128, of which one block of 8 x 8 in sixteen is not 0."""
    rng = np.random.default_rng(0)
    blocks = np.kron(np.eye(16, dtype=np.float32), np.ones((8, 8), np.float32))
    weight = (blocks * rng.normal(0, 1, (128, 128))).astype(np.float32)
    return model([node("MatMul", "x w", "y")], {"x": [256, 128]}, ["y"], {"w": weight})


def test_a_report_says_that_words_of_roundings_cost_nothing(report: Report):
    exe = compile_model(relu(), "tiny:2", precision="float16", rounding="stochastic", cache=False)
    rounded = collect(exe)
    assert (report.program["stochastic"], rounded.program["stochastic"]) == (0, 1)
    texts = [each["text"] for each in warnings_of(rounded)]
    assert "stochastic rounding costs nothing here (vertex sets: 1)" in texts
    assert not any("stochastic" in each["text"] for each in warnings_of(report))


def test_a_report_says_that_words_of_workers_depend_on_the_plan(report: Report):
    exe = compile_model(relu(), "tiny:2", precision="float16", rounding="hardware", cache=False)
    rounded = collect(exe)
    assert (report.program["drawn"], rounded.program["drawn"]) == (0, 1)
    text = "roundings by the generators of the workers depend on the plan (vertex sets: 1)"
    assert text in [each["text"] for each in warnings_of(rounded)]


def test_the_cycles_of_operations_add_up_to_those_of_the_program(report: Report):
    operations, steps = report.tables["operations"], report.tables["supersteps"]
    total = report.program["cycles"]
    assert np.sum(operations["cycles"]) == pytest.approx(total, abs=length(operations))
    assert np.sum(steps["times"] * steps["cycles"]) == total
    parts = ("compute_cycles", "exchange_cycles", "sync_cycles")
    assert np.array_equal(sum(operations[name] for name in parts), operations["cycles"])


def test_the_tree_accounts_for_every_cycle_once(report: Report):
    tree = report.tables["tree"]
    assert tree["inclusive_cycles"][0] == report.program["cycles"]
    assert np.sum(tree["exclusive_cycles"]) == report.program["cycles"]
    inner = np.bincount(tree["parent"][1:], tree["inclusive_cycles"][1:], minlength=length(tree))
    assert np.array_equal(inner + tree["exclusive_cycles"], tree["inclusive_cycles"])


def test_tiles_and_moments_have_the_bytes_of_the_memory_report(exe: Executable, report: Report):
    memory: MemoryReport = exe.memory
    tiles, moments = report.tables["tiles"], report.tables["moments"]
    reserved = exe.target.memory.reserved_bytes
    used = memory.tile_bytes > 0
    assert np.array_equal(tiles["variable_bytes"][used], memory.tile_bytes[used] - reserved)
    assert np.array_equal(moments["max_bytes"], [step.bytes for step in memory.steps])
    assert np.array_equal(moments["tile"], [step.tile for step in memory.steps])
    fullest = memory.fullest_tile
    live = memory.always_live_bytes[fullest] + memory.transient_bytes[fullest]
    assert moments["peak_tile_bytes"].max() == live


def test_the_categories_of_a_tile_add_up_to_its_bytes(exe: Executable, report: Report):
    tiles, reserved = report.tables["tiles"], exe.target.memory.reserved_bytes
    code = sum(tiles[name] for name in ("code", "vertex_state", "exchange_code", "stacks"))
    used = tiles["variable_bytes"] > 0
    beside = np.maximum(code, reserved)[used]
    assert np.array_equal((code + tiles["reserved_unused"])[used], beside)
    whole = (tiles["always_live"] + tiles["live_now"] + tiles["gaps"])[used]
    assert np.array_equal(whole, tiles["variable_bytes"][used])


def test_the_contents_of_the_peak_are_its_bytes(report: Report):
    variables, tile = report.tables["variables"], report.program["fullest_tile"]
    tiles, operations = report.tables["tiles"], report.tables["operations"]
    at_peak = np.sum(variables["bytes_per_tile"][variables["at_peak"]])
    assert at_peak == tiles["always_live"][tile] + tiles["live_now"][tile]
    owned = variables["at_peak"] & (variables["operation"] >= 0)
    assert np.sum(operations["peak_bytes"]) == np.sum(variables["bytes_per_tile"][owned])


def test_groups_of_tiles_exchange_what_supersteps_receive(report: Report):
    exchanges, steps = report.tables["exchanges"], report.tables["supersteps"]
    assert exchanges["exact"].all()
    sums = np.bincount(exchanges["superstep"], exchanges["bytes"], minlength=length(steps))
    assert np.allclose(sums, steps["exchange_bytes"], atol=length(exchanges))


def test_tiles_of_supersteps_hold_the_critical_tile(report: Report):
    rows, steps = report.tables["superstep_tiles"], report.tables["supersteps"]
    phases = ("compute_cycles", "exchange_cycles")
    most = np.zeros(length(steps), np.int64)
    np.maximum.at(most, rows["superstep"], sum(rows[phase] for phase in phases))
    assert np.array_equal(most, sum(steps[phase] for phase in phases))
    critical = rows["tile"] == np.asarray(steps["critical_tile"])[rows["superstep"]]
    busy = rows["superstep"][critical]
    for phase in phases:
        assert np.array_equal(rows[phase][critical], np.asarray(steps[phase])[busy])


def test_operations_have_their_plan_and_what_limits_them(report: Report):
    operations = report.tables["operations"]
    convolution = operations["name"].index("the_c0+the_r0")
    assert operations["kind"][convolution] == "nn.conv"
    assert operations["plan"][convolution].startswith("split")
    assert operations["runner_up"][convolution]
    assert operations["limited_by"][convolution]
    assert 0 < operations["utilisation"][convolution] < 1
    assert operations["macs"][convolution] > 0
    assert operations["resident_bytes"][convolution] > 0


def test_a_saved_program_says_which_data_it_lacks(exe: Executable, tmp_path):
    exe.save(tmp_path / "p.abele")
    found = collect(compile_model(tmp_path / "p.abele"))
    assert set(found.absent) == {"plans", "passes"}
    assert found.program["cycles"] == exe.profile["cycles"]
    assert found.program["name"] == "p.abele"
    assert length(found.tables["plans"]) == length(found.tables["passes"]) == 0
    assert all(
        each.startswith("split") for each in filter(None, found.tables["operations"]["plan"])
    )


def test_a_program_of_the_machine_names_its_own_level(tmp_path):
    exe = compile_model(relu(), target="tiny:8")
    text = tmp_path / "net.mlir"
    text.write_text(print_module(exe.module_at("exchange")))
    found = collect(compile_model(text, exe.target))
    assert set(found.absent) == {"plans", "passes", "provenance"}
    assert found.program["cycles"] == exe.profile["cycles"]


def test_lines_of_the_framework_lead_to_cycles(tmp_path):
    source = tmp_path / "net.mlir"
    source.write_text(LINES)
    found = collect(compile_model(source, "tiny:4"))
    operations, nodes = found.tables["operations"], found.tables["provenance"]
    clamp = operations["name"].index("clamp")
    assert operations["line"][clamp] == "net.py:12:3"
    assert operations["cycles"][clamp] > 0
    assert nodes["operation"][nodes["node"].index("clamp")] == clamp
    assert nodes["operation"][nodes["node"].index("unread")] == -1


LINES = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes
    {arg_names = ["x"], result_names = ["y"]} {
  %0 = nn.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("unread")
  %1 = nn.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("clamp"("/home/me/net.py":12:3))
  func.return %1 : tensor<4x8xf32> loc("main")
} loc("main")
"""


def test_a_step_of_training_has_its_phases():
    step = Training(loss="mean_square", optimizer="sgd", learning_rate=0.1)
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    net = model(nodes, {"x": [4, 8]}, ["y"], {"w": random((8, 6))})
    operations = collect(compile_model(net, "tiny:4", train=step)).tables["operations"]
    phases = dict(zip(operations["name"], operations["phase"], strict=True))
    assert set(phases.values()) >= {"forward", "update"}
    assert "forward" in {phase for name, phase in phases.items() if name.startswith("the_h")}
    assert any(name.startswith("w/update") or name.endswith("/update") for name in phases)
    assert np.sum(operations["cycles"]) > 0


def test_a_program_without_training_has_no_phases(report: Report):
    assert set(report.tables["operations"]["phase"]) == {""}
