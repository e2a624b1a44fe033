"""The bench of quantised models: its figures of a small model, and what it says of methods."""

from __future__ import annotations

from pathlib import Path

import pytest
from some_models import model, node, random

from abele.tools.bench.models.published import Published
from abele.tools.quantising.formats import To
from abele.tools.quantising.ranges import METHODS, Method
from abele.tools.workshop import quantised
from abele.tools.workshop.quantised import Result, losses, measure, results_table


def test_a_model_is_measured_in_both_formats_on_samples_it_was_not_calibrated_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    weights = {"w": random((32, 8), 1)}
    path = tmp_path / "small.onnx"
    made = model([node("MatMul", "x w", "y")], {"x": [1, 32]}, ["y"], weights)
    path.write_bytes(made.SerializeToString())
    small = Published("small", "a product", "none==1", "small.onnx")
    monkeypatch.setattr(quantised, "chosen", lambda names: [small])
    found = measure("small", path, "c600:4")
    assert [each.method for each in found if each.to == "int8"] == list(METHODS)
    assert {each.to for each in found} == {"int8", "fp8"}
    assert not any(each.why for each in found)
    decibels = {(each.to, each.method): each.decibels for each in found}
    assert 20 < decibels["fp8", "mse"] < decibels["int8", "mse"]
    last = found[-1]
    assert last.before is not None
    assert last.after is not None
    assert last.after.weight_bytes < last.before.weight_bytes / 2
    assert results_table(found, "c600:4").row_count == 2


def result(name: str, method: Method, decibels: float, to: To = "int8") -> Result:
    return Result(name, to, method, decibels)


def test_a_method_loses_what_it_is_below_the_best_one_on_average():
    found = losses(
        [
            result("a", "minmax", 30.0),
            result("a", "mse", 32.0),
            result("b", "minmax", float("inf")),
            result("b", "mse", 56.0),
            result("b", "mse", 1.0, "fp8"),
        ],
        "int8",
    )
    # Above 60 dB, nothing is better than anything else.
    assert found["minmax"] == pytest.approx(1.0)
    assert found["mse"] == pytest.approx(2.0)
