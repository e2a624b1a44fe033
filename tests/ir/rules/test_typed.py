"""The check that both sides of a rule have the same types."""

import pytest

from abele.ir.rules.samples import samples
from abele.ir.rules.typed import counterexample

from .some_rules import VOCABULARY, rules_of


def problem_of(text: str) -> str | None:
    rule = rules_of(text).bound[0]
    return counterexample(rule, list(samples(rule, VOCABULARY, 24)))


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("nn.add(x, _) => x", "write 'as r' after the left side, and the guard same_type(x, r)"),
        (
            "nn.add(x, _) as s => x where rank(s) == rank(x)",
            "the guard same_type(x, s) would exclude this",
        ),
        ("nn.select(_, x, _) => x", "the guard same_type(x, r) excludes this"),
        ("nn.matmul(a, b) => nn.matmul(b, a)", "cannot build nn.matmul: "),
        ("nn.exp(nn.sub(x, y)) => nn.div(nn.exp(x), nn.exp(y))", None),
        ("nn.sub(x, x) as s => x where same_type(x, s)", None),
        ("nn.cast(x: f16[_]) => x", "the right side is tensor<"),
        ("nn.less(x, y) => nn.sub(y, x)", "add a guard that excludes this"),
        (
            "nn.matmul(a: f32[m, k], b: f32[k, n]) => nn.matmul(a, b): f32[m, n]",
            None,
        ),
        (
            "nn.transpose(x: f32[a, b]) {permutation = p} => nn.reshape(x) {shape = [b, a]} "
            "where p == [1, 0]",
            None,
        ),
        (
            "nn.transpose(x: f32[a, b]) {permutation = p} => nn.reshape(x) {shape = [a, b]} "
            "where p == [1, 0]",
            "the right side is tensor<",
        ),
        (
            "nn.reshape(x: f32[n, k]) {shape = _} => nn.reshape(x) {shape = [n * 2, k / 2]} "
            "where k % 2 == 0",
            "the right side is tensor<",
        ),
        (
            "nn.transpose(nn.transpose(x) {permutation = p}) {permutation = p} => x",
            "the right side is tensor<",
        ),
    ],
)
def test_a_rule_is_right_for_all_sizes_or_shows_some_for_which_it_is_not(rule, problem):
    found = problem_of(f"rule r: {rule}")
    assert found is None if problem is None else problem in found


def test_a_counterexample_lists_the_types_of_its_values():
    found = problem_of("rule r: nn.add(x, y) as s => nn.exp(x) where element(s) == element(y)")
    assert found is not None
    with_, _, rest = found.partition(" the right side is ")
    assert with_.startswith("with s: tensor<")
    assert "x: tensor<" in with_
    assert "y: tensor<" in with_
    assert ", nn.add is tensor<" in rest


def test_a_lower_may_change_types_but_must_be_buildable():
    text = "lower l: nn.add(x, y) => partition.relayout(x) where same_type(x, y)"
    assert "cannot build partition.relayout" in (problem_of(text) or "")
