"""Wrong rules that look right: none of them is proved."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import TensorType, f32, i32
from xdsl.ir import Block

from abele.dialects import nn
from abele.ir.rules import parse_rule_set
from abele.passes.rules.own import own_vocabulary
from abele.tools.proving.instances import instance_of
from abele.tools.proving.proof import prove_rule
from abele.tools.proving.verdicts import Verdict

SECONDS = 1.0

REFUTED = {
    "a cast to a smaller range": "nn.cast(nn.cast(x: f32[...]): f16[...]): f32[...] => x",
    "a cast to fewer digits": ("nn.neg(nn.neg(x: f32[n])) => nn.cast(nn.cast(x): bf16[n]): f32[n]"),
    "integers as narrow floats": (
        "nn.cast(nn.cast(x: i32[...]): f16[...]): f32[...s] => nn.cast(x): f32[...s]"
    ),
    "integers without a sign": (
        "nn.max(nn.sub(x: ui8[...], y), nn.sub(y, x)) => nn.abs(nn.sub(x, y))"
    ),
    "limits that integers round": (
        "nn.clip(nn.clip(x: i32[...]) {low = a, high = b}) {low = c, high = d}"
        " => nn.clip(x) {low = larger(a, c), high = smaller(b, d)}"
        " where c <= b, a <= d, a <= b, c <= d"
    ),
    "an exponential that overflows": (
        "nn.exp(nn.sub(x: f32[...], y)) => nn.div(nn.exp(x), nn.exp(y))"
    ),
    "a quotient of integers by a reciprocal": (
        "nn.div(x: i32[...], y) => nn.mul(x, nn.reciprocal(y))"
    ),
    "a factor of integers": (
        'nn.reduce(nn.scale(x: i32[_, _]) {factor = f}) {combiner = "sum", axes = [0]}'
        ' => nn.scale(nn.reduce(x) {combiner = "sum", axes = [0]}) {factor = f}'
    ),
    "a sum of remainders": (
        'nn.reduce(nn.cast(x: i8[n, m]): i32[n, m]) {combiner = "sum", axes = [0]}'
        ' => nn.cast(nn.reduce(x) {combiner = "sum", axes = [0]}): i32[m]'
    ),
    "a padding that reflects": (
        'nn.reduce(nn.pad(x: ?[_]) {low = [1], high = [2], mode = "reflect"})'
        ' {combiner = "sum", axes = [0], keep_dims = _} as r => r(x)'
    ),
    "a comparison that meets NaN": (
        "nn.select(nn.greater(x, y), x, y) as s => nn.max(x, y)"
        " where same_type(x, s), same_type(y, s), is_float(x)"
    ),
    "a choice between limits": (
        "nn.max(nn.min(x, y), z) => nn.min(nn.max(x, z), y) where same_shape(x, y)"
    ),
    "sizes that agree by chance": (
        "nn.mul(nn.transpose(x: f32[n, m]) {permutation = [1, 0]}, s: f32[_])"
        " => nn.transpose(nn.mul(x, s)) {permutation = [1, 0]} where n == m"
    ),
    "values whose names look alike": (
        "nn.sub(_1: f32[...s], _: f32[...s]) => nn.scale(_1) {factor = 0.0}"
    ),
}
"""Rules that a program shows to be wrong, by what they overlook."""


def verdict(text: str, seconds: float = SECONDS) -> Verdict:
    rules = parse_rule_set(f"rule wrong: {text}", own_vocabulary(), "wrong.rw")
    return prove_rule(rules.bound[0], rules, seconds)


@pytest.mark.parametrize("name", REFUTED)
def test_a_wrong_rule_is_refuted(name: str):
    found = verdict(REFUTED[name])
    assert found.kind == "refuted", found.text


def test_a_guard_on_elements_holds_for_types_that_it_can_promise_something_of():
    text = "rule positive: nn.abs(x) => x where unsigned(x)"
    (rule,) = parse_rule_set(text, own_vocabulary(), "tried.rw").bound
    for element, holds in ((f32, True), (i32, False)):
        block = Block(arg_types=[TensorType(element, [4])])
        block.add_op(root := nn.AbsOp(block.args[0]))
        assert (instance_of(rule, root, own_vocabulary()) is not None) == holds


def test_extremes_in_another_order_may_have_zeros_of_another_sign():
    found = verdict(
        "nn.reduce(nn.slice(x: f32[2]) {starts = [1], steps = [-1], sizes = [2]})"
        ' {combiner = "max", axes = [0]} => nn.reduce(x) {combiner = "max", axes = [0]}',
        0.5,
    )
    assert found.proved
    assert "signs of zeros may differ" in found.equality


def test_a_right_side_that_can_never_be_built_refutes_a_rule():
    found = verdict(
        "nn.add(x: f32[n, m], y: f32[m]) => nn.add(x, nn.reshape(y) {shape = [n]})"
        " where n == 2 * m",
        0.5,
    )
    assert found.kind == "refuted"
    assert "cannot build nn.reshape" in found.reason
