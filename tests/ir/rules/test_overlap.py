"""Conflicts between rules."""

import pytest

from abele.ir.rules.overlap import common_patterns, shadows

from .some_rules import VOCABULARY, rules_of


def pair(first: str, second: str):
    return rules_of(f"rule a: {first}\nrule b: {second}").bound


@pytest.mark.parametrize(
    ("general", "special"),
    [
        ("nn.neg(x) => nn.abs(x)", "nn.neg(nn.exp(x)) => nn.abs(x)"),
        ("nn.neg(x) => nn.abs(x)", "nn.neg(x) => nn.exp(x) where rank(x) == 1"),
        ("nn.add(x, y) => nn.sub(x, y)", "nn.add(x, x) => nn.exp(x)"),
        ("nn.add(x, x) => nn.exp(x)", "nn.add(y, y) => nn.neg(y)"),
        ("nn.scale(x) {factor = _} => x", "nn.scale(x) {factor = 2.0} => x"),
        ("nn.scale(x) {factor = 2.0} => x", "nn.scale(nn.neg(x)) {factor = 2.0} => x"),
        ("try.followed(x, ..._) {then = _} => x", "try.followed(x) {then = none} => x"),
        ("try.followed(x) {then = none} => x", "try.followed(nn.neg(x)) => x"),
        ("nn.neg(x: ?[_, _]) => x", "nn.neg(x: f32[2, _]) => x"),
        ("nn.neg(x: ?[_, ...]) => x", "nn.neg(x: f32[2, 3]) => x"),
        ("nn.concat(x, ..._) {axis = _} => x", "nn.concat(x, _, _) {axis = 1} => x"),
        ("nn.concat(..._, x) {axis = _} => x", "nn.concat(nn.neg(x), x) {axis = 1} => x"),
        ("nn.neg | nn.exp(x) => x", "nn.neg(nn.neg(x)) => x"),
    ],
)
def test_a_more_general_pattern_shadows_a_later_one(general, special):
    first, second = pair(general, special)
    assert shadows(first, second, VOCABULARY)
    assert list(common_patterns(first, second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("nn.neg(nn.exp(x)) => nn.abs(x)", "nn.neg(x) => nn.abs(x)"),
        ("nn.neg(x) => nn.abs(x) where rank(x) == 1", "nn.neg(nn.exp(x)) => nn.abs(x)"),
        ("nn.add(x, x) => nn.exp(x)", "nn.add(_, y) => nn.neg(y)"),
        ("nn.add(x, x) => nn.exp(x)", "nn.add(nn.exp(x), nn.exp(x)) => nn.neg(x)"),
        ("try.followed(x) => x", "try.followed(x, ..._) {then = _} => x"),
        ("try.followed(x) => x", "try.followed(x) {then = _} => x"),
        ("nn.neg(x: f32[_, _]) => x", "nn.neg(x: ?[_, _]) => x"),
        ("nn.neg(x: f32[n, n]) => x", "nn.neg(x: f32[_, _]) => x"),
        ("nn.neg(x: f32[_, _]) => x", "nn.neg(x) => x"),
        (
            "nn.scale(nn.scale(x) {factor = a}) {factor = a} => x",
            "nn.scale(nn.scale(x) {factor = _}) {factor = _} => x",
        ),
    ],
)
def test_a_more_specific_pattern_shadows_nothing(first, second):
    assert not shadows(*pair(first, second), VOCABULARY)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("nn.neg(x) => x", "nn.exp(x) => x"),
        ("nn.scale(x) {factor = 1.0} => x", "nn.scale(x) {factor = 2.0} => x"),
        ('try.tuned(x) {mode = "a"} => x', "try.tuned(x) {mode = none} => x"),
        ('try.tuned(x) {mode = "a"} => x', "try.tuned(x) => x"),
        ("nn.neg(x: f16[_]) => x", "nn.neg(x: f32[_]) => x"),
        ("nn.neg(x: f32[_]) => x", "nn.neg(x: f32[_, _]) => x"),
        ("nn.neg(x: ?[2, _]) => x", "nn.neg(x: ?[3, _]) => x"),
        ("nn.neg(x: ?[_, _, ...]) => x", "nn.neg(x: ?[3]) => x"),
        ("nn.neg(nn.exp(x)) => x", "nn.neg(nn.log(x)) => x"),
        ("nn.concat(x) {axis = _} => x", "nn.concat(x, _, ..._) {axis = _} => x"),
    ],
)
def test_patterns_that_no_operation_matches_both(first, second):
    assert not list(common_patterns(*pair(first, second)))
