"""Rules about operators of ONNX are proved by what abele reads in models before and after."""

import pytest

from abele.ir.rules import Vocabulary, parse_rule_set
from abele.passes.rules import nn_library as nn_library
from abele.passes.rules import onnx_library as onnx_library
from abele.tools.driver.context import new_context
from abele.tools.proving.rules import prove
from abele.tools.proving.verdicts import Verdict

SECONDS = 1.5


def verdict(text: str, seconds: float = SECONDS) -> Verdict:
    rules = parse_rule_set(text, Vocabulary(new_context()), "tried.rw")
    return prove(rules.bound[0], rules, seconds)


def test_a_rule_that_keeps_every_value_is_proved_at_the_sizes_of_its_models():
    found = verdict("rule right: onnx.Less(a: f32[...], b: f32[...]) => onnx.Greater(b, a)")
    assert (found.kind, found.equality) == ("listed shapes", "equal to the bit")
    assert found.grid.operators == ("onnx.Less",)
    assert len(found.grid.ranks) > 2


def test_sums_in_another_order_are_equal_up_to_rounding():
    found = verdict(
        "rule sums: onnx.Sum(a: f32[n], b: f32[n], c: f32[n]) => onnx.Add(a, onnx.Add(b, c))"
    )
    assert found.equality.startswith("equal up to rounding; NaN, infinities")


def test_a_wrong_rule_is_refuted_with_both_models_and_the_inputs():
    found = verdict("rule wrong: onnx.Relu(onnx.Neg(x: f32[...])) => onnx.Neg(onnx.Relu(x))")
    assert found.kind == "refuted"
    assert "The model after the rule:" in found.example
    assert "The inputs:" in found.example


def test_a_rule_that_is_wrong_only_where_sizes_differ_is_refuted():
    # At square matrices, the reshape has the right shape by chance.
    found = verdict(
        "rule wrong: onnx.Transpose(x: f32[n, m]) {perm = [1, 0]} as t => "
        "onnx.Reshape(x, onnx.Constant() {value = [m, n]}) where opset(t) >= 9"
    )
    assert found.kind == "refuted"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("onnx.Neg(x: i64[...]) => onnx.Sub(onnx.Constant() {value = 0}, x)", "refuted"),
        (
            "onnx.Neg(x: i64[...]) as n => onnx.Sub(onnx.Constant() {value = 0}, x) "
            "where opset(n) >= 9",
            "listed shapes",
        ),
        # Gemm has needed a third operand until opset 11.
        ("onnx.MatMul(a: f32[_, k], b: f32[k, _]) => onnx.Gemm(a, b)", "refuted"),
    ],
)
def test_a_rule_must_hold_in_every_opset_that_its_guards_allow(text: str, kind: str):
    # A Constant of integers is there since opset 9.
    assert verdict(f"rule tried: {text}").kind == kind


def test_an_operator_that_abele_does_not_read_leaves_a_rule_undecided():
    found = verdict("rule text: onnx.RegexFullMatch(x) {...} as s => s(onnx.Identity(x))", 0.3)
    assert found.kind == "not decided"
