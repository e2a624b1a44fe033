"""Rules about operations of ONNX are tested on models of ONNX."""

from pathlib import Path

import onnx
import pytest

from abele.ir.rules import Vocabulary, parse_rule_set
from abele.tools.driver.context import new_context
from abele.tools.testing import check_rules
from abele.tools.testing.onnx_graphs.graph import ModelCase
from abele.tools.testing.rules import RuleWrong
from abele.tools.testing.rules.onnx_rewriting import rewritten

EXAMPLES = 12


def check(text: str, tmp_path: Path, examples: int = EXAMPLES):
    path = tmp_path / "my.rw"
    path.write_text(text)
    return check_rules(path, examples=examples, seed=0, reduce_seconds=3.0, folder=tmp_path / "bad")


def applied(rule: str, model: str) -> onnx.ModelProto:
    """A model behind a rule."""
    rules = parse_rule_set(rule, Vocabulary(new_context()))
    case = ModelCase(onnx.parser.parse_model(model), {})
    return rewritten(case, rules.bound[0], rules.vocabulary).proto


def test_rules_that_hold_are_found_to_hold(tmp_path: Path):
    report = check(
        "rule relu: onnx.Relu(onnx.Relu(_) as r) => r\n"
        "rule skipped: onnx.Clip(x, onnx.none(), onnx.none()) => onnx.Identity(x)\n",
        tmp_path,
    )
    assert report.changed >= 2 * EXAMPLES
    assert report.fired["relu"] >= EXAMPLES


def test_a_rule_that_changes_values_is_found_and_shown(tmp_path: Path):
    wrong = "rule wrong: onnx.Relu(onnx.Neg(x)) => onnx.Neg(onnx.Relu(x))"
    with pytest.raises(RuleWrong) as caught:
        check(wrong, tmp_path)
    said = str(caught.value)
    assert caught.value.wrong.kind == "value"
    assert "Relu (neg)" in said
    assert "onnx.Neg(%0)" in said
    assert (tmp_path / "bad" / "model.onnx").exists()


def test_a_default_that_differs_is_found(tmp_path: Path):
    # A Softmax without axis normalises the last axis, or all from the second on in old opsets.
    wrong = "rule wrong: onnx.Softmax(x) {axis = 0} => onnx.Softmax(x)"
    with pytest.raises(RuleWrong, match=r"rule wrong .* need"):
        check(wrong, tmp_path, 60)


def test_a_rule_that_builds_what_an_opset_lacks_is_found(tmp_path: Path):
    wrong = "rule wrong: onnx.Mul(x: f32[...], onnx.Sigmoid(x)) => onnx.Swish(x)"
    with pytest.raises(RuleWrong, match="Swish: opset [0-9]+ of ai.onnx does not have it"):
        check(wrong, tmp_path, 60)


def test_a_value_that_is_returned_keeps_the_names_of_its_sizes():
    # Shape inference does not know that this Conv keeps the size H, and names it otherwise.
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[N,1,H,8] x) => (float[N,1,H,8] y) '
        "<float[1,1,3,3] w = {1,1,1,1,1,1,1,1,1}> "
        "{ c = Conv <pads = [1,1,1,1]> (x, w) r = Relu (c) y = Relu (r) }"
    )
    after = applied("rule twice: onnx.Relu(onnx.Relu(_) as r) => r", text)
    assert [node.op_type for node in after.graph.node] == ["Conv", "Relu"]
    assert [d.dim_param for d in after.graph.output[0].type.tensor_type.shape.dim] == [
        *("N", "", "H", "")
    ]


def test_a_new_operation_has_the_further_results_that_the_right_side_reads():
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,1,4,4] x) => (int64[1,1,4,4] y) '
        "{ y = Cast <to = 7> (x) }"
    )
    rule = "rule r: onnx.Cast(x) => let p = onnx.MaxPool(x) {kernel_shape = [1, 1]}; p#1"
    (node,) = applied(rule, text).graph.node
    assert (node.op_type, len(node.output), node.output[1]) == ("MaxPool", 2, "y")


def test_a_result_that_an_operator_must_have_is_written_though_nothing_reads_it():
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (uint8[4] y) '
        "{ y = Cast <to = 2> (x) }"
    )
    after = applied("rule r: onnx.Cast(x) => let q = onnx.DynamicQuantizeLinear(x); q#0", text)
    (node,) = after.graph.node
    assert len({*node.output, ""}) == 4
    onnx.checker.check_model(after, full_check=True)
