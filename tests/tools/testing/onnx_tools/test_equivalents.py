"""Equivalent models compute the same, and a tool that treats them differently is found."""

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import planted_transforms as planted
import pytest
from onnx import TensorProto, helper, numpy_helper

from abele.tools.testing import ToolFailed, check_onnx_runner
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.onnx_graphs.build import build_graph
from abele.tools.testing.onnx_graphs.checks import NotCompared, check_valid
from abele.tools.testing.onnx_graphs.graph import ModelCase
from abele.tools.testing.onnx_graphs.runtimes import RefusedByRuntime, by_onnxruntime
from abele.tools.testing.onnx_tools import judge
from abele.tools.testing.onnx_tools.equivalents import REWRITES, equivalents
from abele.tools.testing.onnx_tools.known import tool_of
from abele.tools.testing.onnx_tools.opinions import expected
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
        for name, other in equivalents(graph, Random(number)):
            found = by_onnxruntime(other.proto, other.inputs)
            for output, array in right.items():
                np.testing.assert_array_equal(found[output], array, err_msg=f"{number} {name}")
            seen[name] += 1
    assert set(seen) == set(REWRITES)


def test_a_runner_that_folds_weights_wrongly_disagrees_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # No reference takes part: all that the first oracle says is ignored.
    monkeypatch.setattr(judge.Judge, "_of_results", lambda self, right, outputs: None)
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
    whole = dict(equivalents(case, Random(0)))["inputs as weights"]
    with pytest.raises(NotCompared):
        check_valid(whole.proto)
    process = ToolProcess("onnxruntime", "none", Limits(), None, None, "run")
    try:
        found = judge.Judge(tool_of("onnxruntime:none"), process, "run").found(
            case, equivalent=Random(0)
        )
    finally:
        process.end()
    assert found is None
