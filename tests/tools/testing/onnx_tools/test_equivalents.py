"""Equivalent models compute the same, and a tool that treats them differently is found."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import planted_transforms as planted
import pytest
from onnx import TensorProto, helper, numpy_helper

from abele.ir.rules import parse_rule_set
from abele.tools.testing import ToolFailed, check_onnx_runner, check_onnx_transform
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.onnx_graphs.build import build_graph
from abele.tools.testing.onnx_graphs.checks import NotCompared, check_valid
from abele.tools.testing.onnx_graphs.graph import ModelCase
from abele.tools.testing.onnx_graphs.opinions import expected
from abele.tools.testing.onnx_graphs.runtimes import RefusedByRuntime, by_onnxruntime
from abele.tools.testing.onnx_tools import judge
from abele.tools.testing.onnx_tools.equivalents import REWRITES, RULE, equivalents, own_rules
from abele.tools.testing.onnx_tools.finding import equivalent_in, load
from abele.tools.testing.onnx_tools.known import Tool, tool_of
from abele.tools.testing.onnx_tools.process import ToolProcess
from abele.tools.testing.onnx_tools.worker import Limits

OFF_ON = np.array([0, 1], np.float32)


def test_equivalents_are_valid_and_have_the_same_bits_without_optimisation():
    seen: Counter[str] = Counter()
    for number in range(30):
        graph = build_graph(random_sketch(Random(f"equivalents {number}"), 6))
        try:
            graph = expected(graph).graph
            right = by_onnxruntime(graph.proto, graph.inputs)
        except (NotCompared, RefusedByRuntime):
            continue
        for each in equivalents(graph, Random(number)):
            found = by_onnxruntime(each.case.proto, each.case.inputs)
            for output, array in right.items():
                np.testing.assert_array_equal(found[output], array, f"{number} {each.name}")
            seen[each.name] += 1
    assert set(seen) == set(REWRITES)


def test_a_runner_that_folds_weights_wrongly_disagrees_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # No reference takes part: all that the first oracle says is ignored.
    monkeypatch.setattr(judge.Judge, "_of_results", lambda self, right, answer: None)
    monkeypatch.setattr("abele.tools.testing.onnx_tools.campaign.COMPARED_WITH_EQUIVALENTS", 1)
    with pytest.raises(ToolFailed) as caught:
        check_onnx_runner(
            planted.run_with_doubled_weights,
            seed=0,
            examples=60,
            operators=["Sub", "Neg", "Relu", "Add", "Mul"],
            reduce_seconds=1,
            folder=tmp_path / "found",
        )
    assert caught.value.kind == "disagrees"
    assert (caught.value.folder / "equivalent.onnx").exists()


def test_an_equivalent_that_the_checker_refuses_is_not_compared(tmp_path: Path):
    # OneHot before opset 11 takes no negative index. The checker sees one only in a constant.
    x = helper.make_tensor_value_info("x", TensorProto.INT64, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    values = [numpy_helper.from_array(np.int64(3), "d"), numpy_helper.from_array(OFF_ON, "v")]
    node = helper.make_node("OneHot", ["x", "d", "v"], ["y"])
    graph = helper.make_graph([node], "g", [x], [y], values)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8)
    case = ModelCase(proto, {"x": np.array([-1, 2])})
    (whole,) = equivalents(case, Random(0), only="inputs as weights")
    with pytest.raises(NotCompared):
        check_valid(whole.case.proto)
    process = ToolProcess("onnxruntime", "none", Limits(), None, None, "run")
    try:
        found = judge.Judge(tool_of("onnxruntime:none"), process, "run").found(
            case, equivalent=Random(0)
        )
    finally:
        process.end()
    assert found is None


# Proved rules


COMPARISONS = {"seed": 0, "operators": ["Less", "Greater", "Where"], "reduce_seconds": 1}


def no_reference(*arguments: object) -> object:
    raise AssertionError(f"a reference is asked: {arguments}")


@pytest.mark.parametrize(
    ("check", "function"),
    [
        (check_onnx_runner, planted.run_with_an_inclusive_greater),
        (check_onnx_transform, planted.greater_is_less),
    ],
)
def test_a_mistake_in_one_operator_is_found_with_no_reference(
    check, function, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(judge, "reference_of", no_reference)
    monkeypatch.setattr(judge.Judge, "_of_results", no_reference)
    monkeypatch.setattr(judge.Judge, "_of_transformed", no_reference)
    with pytest.raises(ToolFailed, match="rule less_as_greater") as caught:
        check(function, equivalents=True, examples=60, folder=tmp_path / "found", **COMPARISONS)
    folder = caught.value.folder
    assert caught.value.kind == "disagrees"
    assert "another result" in replayed_pair(folder)
    words = [sys.executable, str(folder / "reproduce.py")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "two equivalent models are compared, and no reference" in done.stdout


def replayed_pair(folder: Path) -> str:
    """What the judge says about the two models of a finding."""
    graph, about = load(folder)
    made = str(about["made"])
    function = getattr(planted, str(about["tool"]))
    process = ToolProcess("function", "", Limits(), None, function, made)
    tool = Tool(function.__name__, "function", function=function, made=made)
    try:
        found = judge.Judge(tool, process, made, alone=True).found(
            graph, equivalent=equivalent_in(folder, about)
        )
    finally:
        process.end()
    assert found is not None
    return found.text


def test_a_right_runner_agrees_with_itself():
    options = {"equivalents": True, "examples": 8, "seed": 3}
    report = check_onnx_runner(planted.run_rightly, operators=["Relu", "Sub", "And"], **options)
    assert report.pairs.total() > 8
    assert any(name.startswith(RULE) for name in report.pairs)


def test_a_rule_that_abele_contradicts_shows_nothing_about_a_tool():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", [x], [y])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    case = ModelCase(proto, {"x": np.array([-1, 2], np.float32)})
    text = "rule wrong: onnx.Abs(x) => onnx.Relu(x)"
    rules = parse_rule_set(text, own_rules().vocabulary)
    process = ToolProcess("onnxruntime", "none", Limits(), None, None, "run")
    known = judge.Judge(tool_of("onnxruntime:none"), process, "run", rules=rules, alone=True)
    try:
        with pytest.raises(NotCompared, match="rule wrong") as caught:
            known.found(case, equivalent=Random(0))
    finally:
        process.end()
    assert caught.value.why == judge.CONTRADICTED
