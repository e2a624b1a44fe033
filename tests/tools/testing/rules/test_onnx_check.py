"""Rules about operations of ONNX are tested on models of ONNX."""

from pathlib import Path

import pytest

from abele.tools.testing import check_rules
from abele.tools.testing.rules import RuleWrong

EXAMPLES = 12


def check(text: str, tmp_path: Path, examples: int = EXAMPLES):
    path = tmp_path / "my.rw"
    path.write_text(text)
    return check_rules(path, examples=examples, seed=0, reduce_seconds=3.0, folder=tmp_path / "bad")


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
