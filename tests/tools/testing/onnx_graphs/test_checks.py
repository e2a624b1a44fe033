"""Generated ONNX models are valid and varied, and abele and onnxruntime agree on them."""

import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from onnx import TensorProto, helper
from xdsl.dialects.builtin import IntegerType, Signedness

from abele.dialects import nn
from abele.ir.errors import InputError
from abele.tools.importers.onnx import reader
from abele.tools.testing import Misread, check_import, onnx_models
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.onnx_graphs.build import OPSETS, build_graph
from abele.tools.testing.onnx_graphs.checks import Check, NotCompared, check_valid
from abele.tools.testing.onnx_graphs.contributed import CONTRIBUTED
from abele.tools.testing.onnx_graphs.graph import ModelCase, every_node
from abele.tools.testing.onnx_graphs.operators import DRAWING
from abele.tools.testing.onnx_graphs.runtimes import (
    RefusedByRuntime,
    by_onnxruntime,
    by_reference,
)


def some(count: int, **options) -> list[ModelCase]:
    return [build_graph(random_sketch(Random(f"tests {i}"), 8), **options) for i in range(count)]


@pytest.fixture(scope="module")
def many() -> list[ModelCase]:
    """Models for tests that only look at them: the more, the rarer what they show."""
    return some(800)


# What is generated


def test_a_sketch_is_always_the_same_model():
    for graph in some(20):
        again = build_graph(graph.sketch)
        assert again.proto.SerializeToString() == graph.proto.SerializeToString()
        for name, array in graph.inputs.items():
            assert array.tobytes() == again.inputs[name].tobytes()


def test_models_are_valid_and_onnxruntime_runs_nearly_all(many: list[ModelCase]):
    refused = 0
    for graph in many[:300]:
        check_valid(graph.proto)
        try:
            results = by_onnxruntime(graph.proto, graph.inputs)
        except RefusedByRuntime:
            refused += 1
        else:
            assert set(results) == {v.name for v in graph.proto.graph.output}
    assert refused <= 12


def test_models_have_the_features_that_readers_stumble_over(many: list[ModelCase]):
    seen: Counter[str] = Counter()
    for graph in many[:300]:
        proto = graph.proto.graph
        uses = Counter(name for node in proto.node for name in node.input)
        computed = {name for node in proto.node for name in node.output}
        seen[f"opset {graph.opset}"] += 1
        seen["several uses"] += any(uses[name] > 1 for name in computed)
        seen["several outputs"] += len(proto.output) > 1
        seen["no name"] += any(not node.name for node in proto.node)
        seen["odd names"] += any("/" in n or " " in n or ":" in n for n in computed)
        seen["left out"] += any("" in node.input for node in proto.node)
        seen["weights"] += bool(proto.initializer)
        seen["weights that are inputs"] += any(t.name in graph.inputs for t in proto.initializer)
        seen["weights that are inputs"] += len(proto.input) > len(graph.inputs)
        types = {v.type.tensor_type.elem_type for v in (*proto.input, *proto.output)}
        seen.update(TensorProto.DataType.Name(type_) for type_ in types)
        for node in proto.node:
            for attribute in node.attribute:
                seen["axis from the end"] += attribute.name == "axis" and attribute.i < 0
                seen["SAME"] += attribute.s.startswith(b"SAME")
    for what in (
        *(f"opset {o}" for o in OPSETS),
        *("several uses", "several outputs", "no name", "odd names", "left out", "weights"),
        *("weights that are inputs", "axis from the end", "SAME"),
        *("FLOAT", "FLOAT16", "INT32", "INT64", "BOOL"),
    ):
        assert seen[what] >= 3, what


def test_every_operator_that_the_reader_supports_is_generated(many: list[ModelCase]):
    """So is an operator that is added to the reader's table later.

    If its schema does not say enough, add the operator to onnx_graphs/operators.py; if it takes a
    graph, a sequence or an optional value, to control.py or lists.py; if it is onnxruntime's own,
    to contributed.py.
    """
    wanted = (reader.OPERATORS.keys() - DRAWING) | CONTRIBUTED.keys()
    seen: Counter[str] = Counter()
    for each in many:
        nodes = every_node(each.proto.graph)
        seen.update(".".join(filter(None, (node.domain, node.op_type))) for node in nodes)
    assert {o: seen[o] for o in wanted if seen[o] < 5} == {}


def test_a_new_operator_is_generated_from_its_schema(monkeypatch: pytest.MonkeyPatch):
    from abele.tools.testing.onnx_graphs import build

    build.operators_of.cache_clear()
    tomorrow = ("Erf", "Ceil", "ArgMax", "CumSum", "Round", "IsNaN")
    for name in tomorrow:
        monkeypatch.setitem(reader.OPERATORS, name, lambda node: node[0])
    try:
        seen: Counter[str] = Counter()
        for graph in some(60, operators=tomorrow):
            check_valid(graph.proto)
            by_onnxruntime(graph.proto, graph.inputs)
            seen.update(node.op_type for node in graph.proto.graph.node)
        assert all(seen[name] > 3 for name in tomorrow), seen
    finally:
        build.operators_of.cache_clear()


@given(onnx_models(max_nodes=3, operators=["Relu", "Concat", "Conv"]))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_strategy_gives_models_of_the_operators_that_are_asked_for(graph: ModelCase):
    check_valid(graph.proto)
    made = {node.op_type for node in graph.proto.graph.node}
    assert made <= {"Relu", "Concat", "Conv", "Constant", "Identity", "Shape", "Gather"}
    assert repr(graph) == graph.text


# What is checked


def test_models_compute_the_same_as_onnxruntime():
    report = check_import(examples=80, seed=5)
    assert report.examples > 70
    assert report.not_compared["invalid"] == 0
    assert report.exercised["Conv"] > 0


def test_models_compute_the_same_on_a_machine():
    assert check_import(examples=12, seed=6, target="tiny:8").examples > 9


def test_models_with_results_of_open_sizes_compute_the_same_as_onnxruntime():
    wanted = ["CumSum", "TopK", "NonZero", "Compress", "Unique", "NonMaxSuppression", "Add"]
    report = check_import(examples=25, seed=3, operators=wanted)
    assert report.examples > 15
    assert all(report.exercised[name] for name in wanted)


def plant(monkeypatch: pytest.MonkeyPatch, operator: str, importer) -> None:
    monkeypatch.setitem(reader.OPERATORS, operator, importer)


def test_a_wrong_operator_is_found_shrunk_and_replayed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    plant(monkeypatch, "Sub", lambda node: node.add(nn.SubOp(node[1], node[0])))
    with pytest.raises(Misread) as caught:
        check_import(examples=400, seed=1, folder=tmp_path)
    found = caught.value
    computing = [n.op_type for n in found.graph.proto.graph.node if n.op_type != "Constant"]
    assert computing == ["Sub"]
    text = str(found)
    assert "of Sub: element [" in text
    assert "onnx's evaluator does not agree with abele" in text
    assert "ir_version" in text
    assert f"saved in {tmp_path}" in text
    # The replay runs in another process, where the reader is not changed.
    again = subprocess.run(found.command, shell=True, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "nothing is wrong any more" in again.stdout


def test_an_axis_that_is_not_counted_from_the_end_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    right = reader.OPERATORS["Softmax"]

    def last(node):
        node.attributes.pop("axis", None)
        return right(node)

    plant(monkeypatch, "Softmax", last)
    with pytest.raises(Misread, match="of Softmax"):
        check_import(examples=600, seed=1, operators=["Softmax", "Add"], folder=tmp_path)


def test_a_valid_model_that_is_refused_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def refuses(node):
        raise node.bad("no")

    plant(monkeypatch, "Relu", refuses)
    with pytest.raises(Misread, match=r"a valid model is refused: .*\(Relu\): no"):
        check_import(examples=200, seed=1, operators=["Relu", "Neg"], folder=tmp_path)


def test_an_importer_that_raises_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def raises(node):
        raise KeyError("broken")

    plant(monkeypatch, "Relu", raises)
    with pytest.raises(Misread, match="cannot be read: KeyError"):
        check_import(examples=200, seed=1, operators=["Relu", "Neg"], folder=tmp_path)


def test_a_wrong_result_of_the_machine_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from abele.tools.testing.onnx_graphs import checks

    right = checks.compile_model

    def swapped(proto, target, **options):
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        for node in copy.graph.node:
            node.op_type = {"Exp": "Neg"}.get(node.op_type, node.op_type)
        return right(copy, target, **options)

    monkeypatch.setattr(checks, "compile_model", swapped)
    with pytest.raises(Misread, match="on tiny:4, .*element"):
        check_import(
            examples=200, seed=1, operators=["Exp", "Relu"], target="tiny:4", folder=tmp_path
        )


def test_a_check_ends_in_time():
    report = check_import(seconds=2, seed=1)
    assert report.examples > 0
    assert report.seconds < 7


def test_a_bad_target_is_an_input_error():
    with pytest.raises(InputError, match="no target"):
        check_import(examples=1, target="no target")


# onnxruntime


def single(operator: str, *arrays: np.ndarray, opset: int = 20, **attributes) -> ModelCase:
    infos = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for i, a in enumerate(arrays)
    ]
    node = helper.make_node(operator, [v.name for v in infos], ["y"], **attributes)
    outputs = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([node], "one", infos, outputs)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    inferred = onnx.shape_inference.infer_shapes(proto)
    return ModelCase(inferred, {v.name: a for v, a in zip(infos, arrays, strict=True)})


def test_a_model_that_ends_onnxruntime_is_refused_and_the_next_one_runs():
    # The result overflows, which the processor's division instruction does not allow.
    bad = single("Div", np.array([-(2**31)], np.int32), np.array([-1], np.int32))
    for _ in range(2):
        with pytest.raises(RefusedByRuntime, match="ended its process"):
            by_onnxruntime(bad.proto, bad.inputs)
    good = single("Neg", np.ones(2, np.float32))
    np.testing.assert_array_equal(by_onnxruntime(good.proto, good.inputs)["y"], [-1, -1])


def test_onnxruntime_does_not_change_our_arrays():
    """It overwrites operands with the statistics of a normalization in training mode."""
    arrays = [np.arange(n, dtype=np.float32) + 1 for n in (2, 2, 2, 2)]
    image = np.array([[1, 2], [5, 4]], np.float32)
    graph = single("BatchNormalization", image, *arrays, opset=15, training_mode=1)
    graph.proto.graph.node[0].output.extend(["mean", "var"])
    by_onnxruntime(graph.proto, graph.inputs)
    np.testing.assert_array_equal(graph.inputs["x3"], [1, 2])


def test_a_known_deviation_is_counted_and_later_nodes_are_compared():
    graph = single("Cast", np.array([np.nan, 3.7], np.float32), to=TensorProto.INT32)
    check = Check(None)
    assert check.count(graph) is None
    assert [operator for operator, _ in check.report.deviations] == ["Cast"]


def test_a_deviation_does_not_hide_values_that_it_does_not_explain(
    monkeypatch: pytest.MonkeyPatch,
):
    plant(monkeypatch, "Cast", lambda node: node.add(nn.CastOp(node.add(nn.NegOp(node[0])), i32())))
    graph = single("Cast", np.array([np.nan, 3.7], np.float32), to=TensorProto.INT32)
    check = Check(None)
    assert "of Cast: element [" in check.count(graph).text
    assert not check.report.deviations


def test_a_quantisation_that_rounds_up_is_found(monkeypatch: pytest.MonkeyPatch):
    graph = single("QuantizeLinear", np.array([0.5, 1.5, 2.4], np.float32), np.float32([1]))
    assert Check(None).count(graph) is None
    unsigned = IntegerType(8, Signedness.UNSIGNED)

    def up(node):
        return node.cast(node.add(nn.CeilOp(node[0])), unsigned)

    plant(monkeypatch, "QuantizeLinear", up)
    assert "of QuantizeLinear: element [0] is 1" in Check(None).count(graph).text


def i32():
    from xdsl.dialects.builtin import i32 as element

    return element


def test_an_invalid_model_is_not_compared():
    graph = single("Neg", np.ones(2, np.float32))
    graph.proto.graph.node[0].input[0] = "nowhere"
    with pytest.raises(NotCompared) as caught:
        Check(None).wrong(graph)
    assert caught.value.why == "invalid"


def test_onnxs_evaluator_runs_a_model():
    graph = single("Neg", np.ones(2, np.float32))
    np.testing.assert_array_equal(by_reference(graph.proto, graph.inputs)["y"], [-1, -1])


def test_a_shape_that_onnx_infers_wrongly_is_not_held_against_abele():
    """onnx counts a last window that starts in the padding, which the standard drops."""
    attributes = {"kernel_shape": [2], "strides": [3], "pads": [0, 1], "ceil_mode": 1}
    for operator in ("MaxPool", "AveragePool"):
        graph = single(operator, np.ones((1, 1, 3), np.float32), opset=16, **attributes)
        (declared,) = graph.proto.graph.output
        result = by_onnxruntime(graph.proto, graph.inputs)["y"]
        assert declared.type.tensor_type.shape.dim[2].dim_value > result.shape[2]
        assert Check(None).wrong(graph) is None


def test_a_result_close_to_overflow_may_be_infinite_or_not():
    nodes = [helper.make_node("Log", ["x"], ["h"]), helper.make_node("Exp", ["h"], ["y"])]
    x = np.array([65504, 3], np.float16)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [2]) for name in "xhy"]
    graph = helper.make_graph(nodes, "edge", infos[:1], infos[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    assert Check(None).wrong(ModelCase(proto, {"x": x})) is None


def test_values_that_are_equal_up_to_rounding_may_be_equal_or_not():
    nodes = [helper.make_node("Mean", ["x"] * 3, ["m"]), helper.make_node("Equal", "xm", ["y"])]
    x = np.random.default_rng(0).standard_normal(200).astype(np.float32)
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [200])
    result = helper.make_tensor_value_info("y", TensorProto.BOOL, [200])
    graph = helper.make_graph(nodes, "near", [info], [result])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    assert Check(None).wrong(ModelCase(proto, {"x": x})) is None


# Graphs inside nodes


def parsed(text: str, **inputs: np.ndarray) -> ModelCase:
    return ModelCase(onnx.parser.parse_model(text), inputs)


LOOP = """
<ir_version: 8, opset_import: ["" : 17]>
loop (float[2] x, int64 most) => (float[2] y) {
   y = Loop (most, "", x) <body = turn (int64 i, bool on, float[2] a) => (bool more, float[2] b) {
      two = Constant <value = int64 {2}> ()
      more = Less (i, two)
      s = Sigmoid (a)
      b = OPERATOR (s, x)
   }>
}
"""


def test_a_loop_that_differs_is_written_out_to_find_the_node_in_its_body(
    monkeypatch: pytest.MonkeyPatch,
):
    """onnxruntime takes three iterations, although six are allowed."""
    graph = parsed(LOOP.replace("OPERATOR", "Sub"), x=np.float32([-3, 5]), most=np.array(6))
    assert Check(None).wrong(graph) is None
    plant(monkeypatch, "Sub", lambda node: node.add(nn.SubOp(node[1], node[0])))
    assert "of Sub: element [0]" in Check(None).wrong(graph).text


def test_a_node_that_takes_the_wrong_branch_is_found(monkeypatch: pytest.MonkeyPatch):
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    branch (bool c, float[2] x) => (float[2] y) {
       y = If (c) <then_branch = yes () => (float[2] a) { a = Neg (x) },
                   else_branch = no () => (float[2] b) { b = Abs (x) }>
    }
    """
    graph = parsed(text, c=np.array(True), x=np.float32([1, -2]))
    assert Check(None).wrong(graph) is None
    right = reader.OPERATORS["If"]

    def other(node):
        graph = node.inner_graph
        turned = {"then_branch": "else_branch", "else_branch": "then_branch"}
        node.inner_graph = lambda name: graph(turned[name])
        return right(node)

    plant(monkeypatch, "If", other)
    assert "of If: element [0]" in Check(None).wrong(graph).text
    assert "written out, its nodes agree" in Check(None).wrong(graph).text


def test_a_failure_in_a_body_is_shrunk_to_its_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    plant(monkeypatch, "Elu", lambda node: node[0])
    with pytest.raises(Misread) as caught:
        check_import(examples=300, seed=2, operators=["Elu", "Loop", "Mul"], folder=tmp_path)
    made = [node.op_type for node in every_node(caught.value.graph.proto.graph)]
    assert made.count("Elu") == 1
    assert "Loop" not in made


def test_sequences_and_loops_compute_the_same_as_onnxruntime():
    wanted = ["If", "Loop", "Scan", "SequenceMap", "SequenceAt", "ConcatFromSequence", "Add", "Max"]
    wanted += ["SequenceInsert", "SplitToSequence", "Optional", "OptionalGetElement", "Greater"]
    report = check_import(examples=40, seed=4, operators=wanted)
    assert report.examples > 30
    assert report.not_compared["invalid"] == 0
    assert all(report.exercised[name] for name in wanted)


def test_operators_of_onnxruntime_compute_the_same_as_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    operators = [*CONTRIBUTED, "Add"]
    assert check_import(examples=40, seed=4, operators=operators).examples > 35
    right = reader.DOMAINS["com.microsoft"]
    rotary = right["RotaryEmbedding"]

    def turned(node):
        node.attributes.pop("interleaved", None)
        return rotary(node)

    monkeypatch.setitem(right, "RotaryEmbedding", turned)
    with pytest.raises(Misread, match=r"of RotaryEmbedding|attributes? interleaved"):
        check_import(
            examples=100, seed=1, operators=["com.microsoft.RotaryEmbedding"], folder=tmp_path
        )
