"""Sizes of generated models that only a run knows."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from onnx import parser

from abele.tools.importers.onnx import ops_sized
from abele.tools.importers.padding import mark
from abele.tools.testing.onnx_graphs.checks import Check, NotCompared
from abele.tools.testing.onnx_graphs.graph import ModelCase
from abele.tools.testing.onnx_graphs.opened import opened

TEXT = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[4, 3] x, float[4, 3] y) => (float[4, 3] sum, float[3] most) {
    sum = Add (x, y)
    axes = Constant <value_ints = [0]> ()
    most = ReduceMax <keepdims = 0> (sum, axes)
}"""


def fixed(text: str = TEXT) -> ModelCase:
    proto = parser.parse_model(text)
    random = np.random.default_rng(0)
    shapes = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in proto.graph.input
    }
    return ModelCase(
        proto, {name: random.normal(size=s).astype(np.float32) for name, s in shapes.items()}
    )


def every(graph: ModelCase, count: int = 40) -> list[ModelCase]:
    found = [opened(graph, Random(number)) for number in range(count)]
    assert all(each is not None and each.is_opened for each in found)
    return [each for each in found if each is not None]


def test_sizes_of_all_kinds_are_opened_and_agree_with_onnxruntime():
    models = every(fixed())
    by_mask = [each for each in models if not each.bounds]
    assert 5 < len(by_mask) < 30
    assert {"whole", "mask"} <= by_mask[0].inputs.keys()
    bounds = [next(iter(each.bounds.values())) for each in models if each.bounds]
    assert any(least == most for least, most in bounds)
    assert any(least < most for least, most in bounds)
    check = Check(None)
    assert [check.count(each) for each in models] == [None] * len(models)
    # One axis of two alone may be as long as the other one or not, which only a run shows.
    assert check.report.examples > 20


def test_a_model_without_axes_stays_as_it_is():
    text = '<ir_version: 10, opset_import: ["" : 18]> g (float x) => (float y) { y = Neg (x) }'
    assert opened(fixed(text), Random(0)) is None


def test_a_rule_that_forgets_padding_is_found(monkeypatch: pytest.MonkeyPatch):
    """Padding holds poison, and a result that is not cut has too many elements."""

    def forgets(node, importer):
        result = importer(node)
        mark(node, result, {})
        return result

    monkeypatch.setitem(ops_sized.SIZED, "Neg", forgets)
    text = (
        '<ir_version: 10, opset_import: ["" : 18]> g (float[4, 3] x) => (float[4, 3] y) '
        "{ y = Neg (x) }"
    )
    found = [Check(None).wrong(each) for each in every(fixed(text), 10)]
    assert any(each is not None and each.kind == "value" for each in found)


def test_a_failing_model_is_saved_with_its_bounds(tmp_path):
    graph = next(each for each in every(fixed()) if each.bounds)
    graph.save(tmp_path / "model", {})
    again, _ = ModelCase.load(tmp_path / "model")
    assert again.bounds == graph.bounds
    assert again.is_opened
    for name, array in graph.inputs.items():
        np.testing.assert_array_equal(again.inputs[name], array)
    assert Check(None).wrong(again) is None


def test_a_size_that_meets_a_fixed_one_is_not_compared():
    text = (
        '<ir_version: 10, opset_import: ["" : 18]> g (float[2, 3] x) => (float[2, 1] y) '
        "<float[3, 1] w = {1, 2, 3}> { y = MatMul (x, w) }"
    )
    reasons = []
    for each in every(fixed(text)):
        try:
            assert Check(None).wrong(each) is None
        except NotCompared as reason:
            reasons.append(reason.why)
    assert set(reasons) <= {"open"}
