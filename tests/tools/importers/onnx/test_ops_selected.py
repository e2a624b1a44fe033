"""NonZero, Compress, Unique, NonMaxSuppression and Range agree with ONNX's own reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from abele.backends.reference import run_reference
from abele.tools import compile_model
from abele.tools.driver.context import new_context
from abele.tools.driver.program import signature
from abele.tools.importers import import_onnx

RNG = np.random.default_rng(5)


def model(operator: str, inputs: list[np.ndarray], results: int, **attributes: Any):
    """A model of one node, whose inputs are like the given arrays."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(operator, names, [f"y{i}" for i in range(results)], **attributes)
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    results_ = [onnx.ValueInfoProto(name=f"y{i}") for i in range(results)]
    graph = helper.make_graph([node], "g", given, results_)
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets)


def check(
    operator: str,
    inputs: list[np.ndarray],
    expected: list[np.ndarray] | None = None,
    **attributes: Any,
) -> None:
    """Compare results with those expected, or with those of ONNX's reference."""
    proto = model(operator, inputs, len(expected or [1]), **attributes)
    given = {f"x{i}": x for i, x in enumerate(inputs)}
    expected = expected or ReferenceEvaluator(proto).run(None, given)
    module = import_onnx(proto, new_context())
    taken = {each.name: given[each.name] for each in signature(module).inputs}
    found = signature(module).trimmed(run_reference(module, taken).outputs)
    for want, got in zip(expected, found.values(), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4)])
def test_the_coordinates_of_what_is_not_0_are_in_row_major_order(shape: tuple[int, ...]):
    check("NonZero", [RNG.integers(-1, 2, shape).astype(np.float32)])
    check("NonZero", [RNG.integers(0, 2, shape).astype(bool)])
    check("NonZero", [np.zeros(shape, np.int32)])


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_what_a_condition_chooses_is_compressed(axis: int | None):
    value = RNG.normal(size=(4, 5)).astype(np.float32)
    attributes = {} if axis is None else {"axis": axis}
    for length in (3, 4):
        check("Compress", [value, RNG.integers(0, 2, length).astype(bool)], **attributes)


def unique(value: np.ndarray, axis: int | None, in_order: int) -> list[np.ndarray]:
    """The different slices along an axis, where they are first, the one that each slice is, and
    how many there are."""
    slices = np.moveaxis(value, axis, 0) if axis is not None else value.reshape(-1)
    seen = [tuple(np.ravel(each).tolist()) for each in slices]
    found = sorted(set(seen)) if in_order else list(dict.fromkeys(seen))
    first = [seen.index(each) for each in found]
    numbers = (first, [found.index(each) for each in seen], [seen.count(each) for each in found])
    return [
        np.take(value if axis is not None else slices, first, axis or 0),
        *(np.array(each, np.int64) for each in numbers),
    ]


@pytest.mark.parametrize("in_order", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_equal_elements_or_slices_are_found_once(axis: int | None, in_order: int):
    attributes = {"sorted": in_order, **({} if axis is None else {"axis": axis})}
    for value in (RNG.integers(0, 2, (5, 3)).astype(np.float32), np.zeros((1, 4), np.int64)):
        check("Unique", [value], unique(value, axis, in_order), **attributes)


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("most", [0, 2, 100])
def test_boxes_that_overlap_a_better_one_are_left_out(centred: int, most: int):
    boxes = RNG.random((2, 8, 4)).astype(np.float32)
    scores = RNG.random((2, 3, 8)).astype(np.float32)
    scores[0, 0, :4] = 0.5
    inputs = [boxes, scores, np.array([most]), *np.float32([[0.3], [0.2]])]
    check("NonMaxSuppression", inputs, center_point_box=centred)


def test_the_loop_over_boxes_runs_on_the_machine():
    boxes, scores = RNG.random((1, 4, 4)), RNG.random((1, 2, 4))
    inputs = [*(x.astype(np.float32) for x in (boxes, scores)), np.array([4])]
    inputs += [*np.float32([[0.4], [0.0]])]
    proto = model("NonMaxSuppression", inputs, 1)
    given = {f"x{i}": x for i, x in enumerate(inputs)}
    (expected,) = ReferenceEvaluator(proto).run(None, given)
    exe = compile_model(proto, "tiny:1")
    np.testing.assert_array_equal(exe.run(given)["y0"], expected, strict=True)
