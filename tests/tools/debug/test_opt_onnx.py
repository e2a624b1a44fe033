"""abele opt on files of ONNX: rules, dead code, names, and what may be written."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from some_models import model, node, random
from typer.testing import CliRunner, Result

from abele.tools.cli import app


def abele(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def rewritten(given: onnx.ModelProto, rules: str, folder: Path) -> onnx.ModelProto:
    """A model after rules, and after dead code is removed."""
    (folder / "my.rw").write_text(rules)
    onnx.save(onnx.shape_inference.infer_shapes(given), folder / "in.onnx")
    out = folder / "out.onnx"
    words = ("--load", folder / "my.rw", "-p", "my,eliminate-dead", "-o", out)
    result = abele("opt", folder / "in.onnx", *words)
    assert result.exit_code == 0, result.stderr
    made = onnx.load(out)
    onnx.checker.check_model(made, full_check=True)
    return made


def test_untouched_nodes_keep_their_names_and_outputs_theirs(tmp_path: Path):
    nodes = [node("Neg", "x", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")]
    given = model(nodes, {"x": [2]}, ["y"])
    made = rewritten(given, "rule r: onnx.Relu(onnx.Relu(_) as r) => r", tmp_path)
    assert [(each.name, *each.output) for each in made.graph.node] == [
        ("the_a", "a"),
        ("the_b", "y"),
    ]


def test_functions_that_nobody_calls_are_removed(tmp_path: Path):
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]

    def calling(name: str, domain: str, op_type: str) -> onnx.FunctionProto:
        inner = helper.make_node(op_type, ["a"], ["b"], domain=domain)
        return helper.make_function("my", name, ["a"], ["b"], [inner], opsets)

    given = model([helper.make_node("Outer", ["x"], ["y"], domain="my")], {"x": [2]}, ["y"])
    given.opset_import.append(opsets[1])
    given.functions.extend(
        [calling("Outer", "my", "Inner"), calling("Inner", "", "Relu"), calling("Old", "", "Neg")]
    )
    made = rewritten(given, "rule r: onnx.Identity(x) => x", tmp_path)
    assert [each.name for each in made.functions] == ["Outer", "Inner"]


def test_a_file_of_rules_may_declare_that_it_takes_models_of_onnx(tmp_path: Path):
    given = model([node("Identity", "x", "a"), node("Relu", "a", "y")], {"x": [2]}, ["y"])
    made = rewritten(given, "takes onnx\nrule r: onnx.Identity(x) => x", tmp_path)
    assert [each.op_type for each in made.graph.node] == ["Relu"]


def test_an_output_that_becomes_an_input_is_copied(tmp_path: Path):
    given = model([node("Relu", "x", "r"), node("Identity", "x", "y")], {"x": [2]}, ["r", "y"])
    made = rewritten(given, "rule r: onnx.Identity(x) => x", tmp_path)
    assert [(each.op_type, *each.input, *each.output) for each in made.graph.node] == [
        ("Relu", "x", "r"),
        ("Identity", "x", "y"),
    ]


def test_a_new_node_is_called_after_those_that_it_replaces(tmp_path: Path):
    given = model([node("Neg", "x", "a"), node("Relu", "a", "y")], {"x": [2]}, ["y"])
    rules = "rule r: onnx.Relu(onnx.Neg(x)) => onnx.Neg(onnx.Min(x, onnx.Sub(x, x)))"
    made = rewritten(given, rules, tmp_path)
    assert [each.name for each in made.graph.node] == [
        "the_a+the_y",
        "the_a+the_y_1",
        "the_a+the_y_2",
    ]
    assert made.graph.node[-1].output == ["y"]


def test_weights_and_statements_that_nobody_needs_are_removed(tmp_path: Path):
    nodes = [node("Mul", "x w", "a"), node("Sub", "a a", "s"), node("Add", "x s", "y")]
    given = model(nodes, {"x": [2]}, ["y"], {"w": random((2,))})
    given.graph.value_info.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("a", "s")
    )
    rules = "rule r: onnx.Add(x, onnx.Sub(y, y)) => x where is_float(x), same_type(x, y)"
    made = rewritten(given, rules, tmp_path)
    assert not made.graph.initializer
    assert not made.graph.value_info
    assert [each.op_type for each in made.graph.node] == ["Identity"]


def test_several_results_and_optional_operands(tmp_path: Path):
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m", "i"], "pool", kernel_shape=[2]),
        node("Clip", "m", "y"),
        node("Cast", "i", "k", to=TensorProto.FLOAT),
    ]
    given = model(nodes, {"x": [1, 1, 4]}, ["y", "k"])
    rules = (
        "rule clip: onnx.Clip(v) => v\n"
        "rule index: onnx.Cast(onnx.MaxPool(_) {kernel_shape = _} as p#1) {to = 1} => "
        "onnx.Cast(onnx.Cast(p#1) {to = 7}) {to = 1}\n"
    )
    (tmp_path / "my.rw").write_text(rules)
    onnx.save(given, tmp_path / "in.onnx")
    result = abele("opt", tmp_path / "in.onnx", "--load", tmp_path / "my.rw", "-p", "my")
    assert result.exit_code == 0, result.stderr
    assert "onnx.Clip" not in result.stdout
    assert "onnx.Cast(%i) {to = 7 : i64}" in result.stdout
    assert "%m, %i = onnx.MaxPool" in result.stdout


def test_a_rule_that_builds_what_the_opset_lacks_stops_with_its_place(tmp_path: Path):
    given = model([node("Sigmoid", "x", "s"), node("Mul", "x s", "y")], {"x": [2]}, ["y"])
    onnx.save(given, tmp_path / "in.onnx")
    (tmp_path / "my.rw").write_text(
        "rule r: onnx.Mul(x: f32[...], onnx.Sigmoid(x)) => onnx.Swish(x)"
    )
    out = tmp_path / "out.onnx"
    words = ("--load", tmp_path / "my.rw", "-p", "my", "-o", out, "--reproducer", tmp_path / "r")
    result = abele("opt", tmp_path / "in.onnx", *words)
    assert result.exit_code == 2
    assert "cannot build onnx.Swish: opset 17 of ai.onnx does not have it" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("rule r: onnx.Rleu(x) => x", "no operation onnx.Rleu; did you mean onnx.Relu"),
        ("rule r: onnx.Conv(x, w) {grop = 1} => x", "no attribute grop; did you mean group?"),
        ('rule r: onnx.Conv(x, w) {group = "a"} => x', "group of onnx.Conv is a whole number"),
        ("rule r: onnx.Relu(x, y) => x", "onnx.Relu with 2 operands; it has 1"),
    ],
)
def test_what_onnx_does_not_have_is_refused_in_a_rule(rule: str, says: str, tmp_path: Path):
    (tmp_path / "my.rw").write_text(rule)
    result = abele("opt", "--load", tmp_path / "my.rw", "--list-passes")
    assert result.exit_code == 2
    assert says in result.stderr


def test_only_a_module_of_onnx_becomes_a_file_of_onnx(tmp_path: Path):
    text = tmp_path / "x.mlir"
    text.write_text(
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { func.return %x : tensor<2xf32> }"
    )
    result = abele("opt", text, "-o", tmp_path / "x.onnx")
    assert result.exit_code == 2
    assert "only a module of ONNX can be written to an .onnx file" in result.stderr


def test_the_text_of_a_model_runs_as_the_file_does(tmp_path: Path):
    given = model([node("Relu", "x", "y")], {"x": [2, 3]}, ["y"])
    onnx.save(given, tmp_path / "a.onnx")
    assert abele("opt", tmp_path / "a.onnx", "-o", tmp_path / "a.mlir").exit_code == 0
    found: list[np.ndarray] = []
    for name, level in (("a.onnx", "onnx"), ("a.mlir", "onnx"), ("a.mlir", "nn")):
        out = tmp_path / "y.npz"
        result = abele("run", tmp_path / name, "--at", level, "--outputs", out)
        assert result.exit_code == 0, result.stderr
        found.append(np.load(out)["y"])
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
