"""Errors and warnings about rules before they run."""

import re

import pytest

from abele.ir.errors import InputError
from abele.ir.rules.lint import lint_rules

from .some_rules import rules_of


def remarks(text: str) -> list[str]:
    return [str(each).split("\n")[0] for each in lint_rules(rules_of(text))]


def refusal(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        lint_rules(rules_of(text))
    return str(caught.value).split("\n")


def test_good_rules_cause_no_warning():
    assert not remarks("""
    rule neg_neg: nn.neg(nn.neg(x)) => x
    rule relu_relu: nn.relu(nn.relu(_) as r) => r
    rule scale_one: nn.scale(x) {factor = 1.0} => x
    rule scale_scale: nn.scale(nn.scale(x) {factor = a}) {factor = b}
      => nn.scale(x) {factor = a * b}
      where a != 1.0, b != 1.0
    rule rows: nn.reshape(nn.reshape(x) {shape = _}) {shape = s} => nn.reshape(x) {shape = s}
    """)


def test_all_problems_of_a_file_come_in_one_message_with_their_places():
    found = refusal("""rule a: nn.add(x, _) => x
rule b: nn.mul(x, y) => nn.mul(y, x)
rule c: nn.neg(nn.neg(x)) => x
rule d: nn.neg(nn.neg(nn.exp(x))) => nn.exp(x)""")
    assert [line.partition(" with ")[0] for line in found[::3]] == [
        "my.rw:1:6: rule a:",
        "my.rw:2:6: rule b: its left side matches its own right side:",
        "my.rw:4:6: rule d is never reached: rule c (my.rw:3:6) is tried first and "
        "matches everything that it matches; give this rule a higher @priority, or the other one "
        "a guard",
    ]
    assert found[1:3] == ["rule a: nn.add(x, _) => x", "     ^"]


def test_priority_decides_which_rule_is_tried_first():
    text = """rule general: nn.neg(nn.neg(x)) => x
    @priority(1)
    rule special: nn.neg(nn.neg(nn.exp(x))) => nn.exp(x)"""
    assert not remarks(text)


@pytest.mark.parametrize(
    "rule",
    [
        "nn.mul(x, y) => nn.mul(y, x)",
        "nn.exp(x) => nn.exp(nn.abs(nn.abs(x)))",
        "nn.scale(x) {factor = f} => nn.scale(x) {factor = f * 2.0}",
        "nn.exp(x) => nn.abs(nn.exp(x))",
    ],
)
def test_a_right_side_that_contains_its_left_side_is_refused(rule):
    (message, *_) = refusal(f"rule r: {rule}")
    assert message.startswith("my.rw:1:6: rule r: its left side matches its own right side: with ")
    assert message.endswith("; add a guard that stops it, or make the right side smaller")


def test_a_right_side_that_contains_its_left_side_gets_a_warning_if_guards_keep_holding():
    (message,) = remarks("rule r: nn.mul(x, y) => nn.mul(y, x) where element(x) == element(y)")
    assert message.startswith("my.rw:1:6: warning: rule r: its left side matches its own right")
    assert message.endswith("forever, unless a guard stops it")


@pytest.mark.parametrize(
    "rule",
    [
        "nn.scale(x) {factor = f} => nn.scale(x) {factor = 1.0} where f != 1.0",
        "nn.exp(x: f32[n]) => nn.reshape(nn.exp(nn.reshape(x) {shape = [n, 1]})) {shape = [n]}",
        "nn.concat(x, y, z, ...more) {axis = a} "
        "=> nn.concat(nn.concat(x, y) {axis = a}, z, ...more) {axis = a}",
    ],
)
def test_guards_types_and_arity_can_keep_a_right_side_from_matching_again(rule):
    assert not remarks(f"rule r: {rule}")


def test_two_rules_for_one_operation_get_a_warning_if_their_results_differ():
    (message,) = remarks("""rule a: nn.add(nn.neg(x), y) => nn.sub(y, x)
rule b: nn.add(x, nn.neg(y)) => nn.sub(x, y)""")
    assert re.fullmatch(
        r"my.rw:2:6: warning: rules a \(my.rw:1:6\) and b both match nn.add\(nn.neg\(\w\), "
        r"nn.neg\(\w\)\), with different results; a is applied, because it is written first; "
        r"choose one with @priority",
        message,
    )


def test_two_rules_with_equal_results_get_no_warning():
    assert not remarks("""rule a: nn.abs(nn.neg(x)) => nn.abs(x) where rank(x) == 2
rule b: nn.abs(nn.neg(x)) => nn.abs(x) where rank(x) != 1""")


def test_two_rules_with_exclusive_guards_get_no_warning():
    assert not remarks("""rule a: nn.neg(x) => nn.abs(x) where rank(x) == 2
rule b: nn.neg(x) => nn.exp(x) where rank(x) == 1""")


def test_a_rule_without_a_sample_program_gets_a_warning():
    (message,) = remarks('rule r: nn.neg(nn.load() {state = _}) => nn.load() {state = "w"}')
    assert message == (
        "my.rw:1:6: warning: rule r: no sample program matches it; its types are checked at "
        "each rewrite"
    )
