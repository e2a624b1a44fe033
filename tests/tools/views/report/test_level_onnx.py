"""The levels of a program as ONNX: whole graphs, whose costs add up to those of the program."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, NodeProto, helper
from some_models import convolutions

from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable
from abele.tools.views.report import collect as collecting
from abele.tools.views.report.collect import Report, collect
from abele.tools.views.report.level_onnx import (
    FUNCTIONS,
    SUPERSTEPS,
    level_files,
    level_model,
)
from abele.tools.views.report.made_by import LONGEST

LEVELS = ("nn", "partition", "tile", "exchange")

HOSTILE = "<img src=x onerror=alert(1)>"

LOOP = f"""
!x = tensor<8x6xf32>
!w = tensor<6x6xf32>
func.func @twice(%a: !x) -> !x {{
  %0 = nn.tanh %a : (!x) -> !x loc("tanh")
  func.return %0 : !x
}}
func.func @main(%x: !x, %w: !w) -> (!x, !x) attributes
    {{arg_names = ["x", "w"], result_names = ["y", "z"]}} {{
  %0 = control.repeat 3 (%x) : (!x) -> (!x) {{
  ^bb0(%a: !x):
    %1 = nn.matmul %a, %w : (!x, !w) -> !x loc("product")
    %2 = func.call @twice(%1) : (!x) -> !x loc("call")
    control.yield %2 : !x
  }} loc("loop")
  %3 = nn.relu %0 : (!x) -> !x loc("{HOSTILE}")
  %4 = func.call @twice(%3) : (!x) -> !x loc("again")
  func.return %4, %3 : !x, !x loc("main")
}} loc("main")
"""


@pytest.fixture(scope="module")
def program() -> Executable:
    return compile_model(convolutions(), target="tiny:8")


@pytest.fixture(scope="module")
def report(program: Executable) -> Report:
    return collect(program)


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Executable, Report]:
    source = tmp_path_factory.mktemp("loop") / "loop.mlir"
    source.write_text(LOOP)
    exe = compile_model(source, target="tiny:8")
    return exe, collect(exe)


def model(exe: Executable, report: Report, level: str) -> ModelProto:
    assert report.nodes is not None
    return level_model(level, exe.module_at(level), report, report.nodes, exe.target)


def attributes(node: NodeProto) -> dict:
    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def told(node: NodeProto) -> dict[str, str]:
    return {each.key: each.value for each in node.metadata_props}


def every_node(found: ModelProto) -> Iterator[NodeProto]:
    def inside(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
        for node in nodes:
            yield node
            for each in node.attribute:
                yield from inside(each.g.node)

    yield from inside(found.graph.node)
    for function in found.functions:
        yield from inside(function.node)


def cycles(nodes: Iterable[NodeProto]) -> int:
    return sum(attributes(node).get("cycles", 0) for node in nodes)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_a_file_that_onnx_accepts(program, report, level, tmp_path: Path):
    path = tmp_path / "level.onnx"
    path.write_bytes(level_files(program, report)[f"levels/{level}.onnx"])
    found = onnx.load(path)
    onnx.checker.check_model(found)
    assert {each.key: each.value for each in found.metadata_props}["level"] == level


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_of_a_program_with_loops_and_calls_is_accepted(loop, level):
    found = model(*loop, level)
    onnx.checker.check_model(found)
    bodies = [each.g for node in found.graph.node for each in node.attribute if each.name == "body"]
    assert bodies, "the loop has a body"
    assert {node.op_type for node in found.graph.node if node.domain == FUNCTIONS} == {"twice"}


def test_costs_of_nn_add_up_to_the_cycles_of_operations(program, report):
    found = model(program, report, "nn")
    operations = report.tables["operations"]
    named = {told(node)["operation"] for node in found.graph.node if "operation" in told(node)}
    pairs = zip(operations["name"], operations["cycles"], strict=True)
    assert cycles(found.graph.node) == sum(int(n) for name, n in pairs if name in named)


def test_an_operation_that_was_fused_says_where_it_is_counted(program, report):
    nodes = {node.name: attributes(node) for node in model(program, report, "nn").graph.node}
    assert nodes["the_r0"]["counted_in"] == b"the_c0/conv"
    assert "cycles" not in nodes["the_r0"]
    assert nodes["the_c0/conv"]["limited_by"]


def test_inputs_are_called_what_the_operation_calls_them(program, report):
    nodes = {node.name: told(node) for node in model(program, report, "nn").graph.node}
    assert nodes["the_c0/conv"]["input_names"] == "['image', 'weight']"


@pytest.mark.parametrize("level", ["partition", "tile"])
def test_costs_of_copies_and_compute_sets_add_up_to_the_program_without_sync(
    program, report, level
):
    facts = report.program
    found = cycles(model(program, report, level).graph.node)
    assert found == pytest.approx(facts["compute_cycles"] + facts["exchange_cycles"], abs=20)


def test_costs_of_supersteps_add_up_to_the_program(program, report):
    found = model(program, report, "exchange")
    assert cycles(found.graph.node) == report.program["cycles"]
    assert {node.domain for node in found.graph.node} == {SUPERSTEPS}
    assert {each.name for each in found.functions} == set(report.tables["supersteps"]["name"])


def test_a_loop_has_the_cycles_of_its_body(loop):
    exe, report = loop
    (repeat,) = (n for n in model(exe, report, "exchange").graph.node if n.op_type == "repeat")
    steps = report.tables["supersteps"]
    inside = {"product", "product/partials"}
    assert attributes(repeat)["cycles"] >= sum(
        int(n * t)
        for name, n, t in zip(steps["name"], steps["cycles"], steps["times"], strict=True)
        if name in inside
    )
    assert attributes(repeat)["count"] == 3


@pytest.mark.parametrize("level", LEVELS)
def test_no_weight_is_in_a_file(program, report, level):
    found = model(program, report, level)
    assert all(not each.values.raw_data for each in found.graph.sparse_initializer)
    assert sum(each.ByteSize() for each in found.graph.initializer) < 2000
    shapes = {tuple(each.dims) for each in found.graph.sparse_initializer}
    assert any(len(shape) == 4 for shape in shapes), "weights of convolutions keep their shapes"


@pytest.mark.parametrize("level", LEVELS)
def test_names_with_markup_stay_names(loop, level):
    found = model(*loop, level)
    assert any(HOSTILE in told(node).get("origin", "") for node in every_node(found))


@pytest.mark.parametrize("level", LEVELS)
def test_texts_are_short(program, report, level):
    for node in every_node(model(program, report, level)):
        for value in attributes(node).values():
            assert not isinstance(value, bytes) or len(value.decode()) <= LONGEST


def test_a_level_that_no_viewer_can_draw_has_no_file(monkeypatch, program):
    monkeypatch.setattr(collecting, "MOST_NODES", 3)
    monkeypatch.setattr("abele.tools.views.report.level_onnx.MOST_NODES", 3)
    report = collect(program)
    assert level_files(program, report) == {}
    assert "tile has" in report.absent["levels"]
    assert json.dumps(report.absent)
