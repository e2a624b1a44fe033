"""Models of ONNX that a rule nearly matches."""

from itertools import islice

import onnx
import pytest

from abele.ir.rules import Vocabulary, parse_rule_set
from abele.ir.rules.match import match_rule
from abele.tools.driver.context import new_context
from abele.tools.importers.onnx_models.reader import module_of
from abele.tools.testing.rules.onnx_models import CHANGED, Models


def models_of(rule: str) -> Models:
    rules = parse_rule_set(f"rule r: {rule}", Vocabulary(new_context()))
    return Models(rules.bound[0], rules.vocabulary, 0)


def matches(models: Models, model: onnx.ModelProto) -> bool:
    module = module_of(model, new_context(), "model")
    return any(
        type(op) in models.rule.roots and match_rule(models.rule, op, models.vocabulary)
        for op in module.walk()
    )


def test_a_near_miss_is_a_valid_model_with_one_change_that_the_rule_seldom_matches():
    models = models_of(
        "onnx.Softmax(onnx.Neg(x)) {axis = 1} => onnx.Softmax(onnx.Neg(x)) {axis = 1}"
    )
    found = list(islice(models.near_misses(), 12))
    assert {name for name, _ in found} >= {"another operation", "another attribute"}
    for _, case in found:
        onnx.checker.check_model(case.proto)
    matched = [matches(models, case.proto) for _, case in found]
    assert sum(matched) < len(found) / 2
    assert all(matches(models, case.proto) for case in islice(models.sampled(), 3))


def test_a_model_in_which_a_guard_does_not_hold_is_a_near_miss():
    models = models_of("onnx.Relu(x: f32[n, _]) => onnx.Identity(x) where n == 1")
    found = [case for name, case in islice(models.near_misses(), 9) if "guard" in name]
    assert found
    assert not any(matches(models, case.proto) for case in found)


@pytest.mark.parametrize(
    "rule",
    [
        "onnx.Clip(x, onnx.none(), onnx.none()) => onnx.Identity(x)",
        "onnx.Mul(x: f32[...], onnx.Sigmoid(x)) => onnx.Swish(x) where opset(x) >= 24",
    ],
)
def test_a_rule_of_which_no_change_gives_a_model_has_no_near_miss_and_no_endless_search(rule: str):
    assert len(list(islice(models_of(rule).near_misses(), CHANGED))) == 0


def test_a_sample_has_the_further_result_that_a_pattern_reads():
    models = models_of(
        "onnx.Not(onnx.Dropout(x: f32[...])#1) => let d = onnx.Dropout(x); onnx.Not(d#1)"
    )
    (case,) = islice(models.sampled(), 1)
    dropout, negation = case.proto.graph.node
    assert dropout.output[1] == negation.input[0]
