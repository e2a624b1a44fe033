import importlib
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx.backend.test.case.node as suite
import pytest
from onnx import TensorProto, helper

from abele.tools.workshop.conformance import judge

SAMPLE = ("eyelike", "gather", "gatherelements", "gathernd", "onehot", "scatterelements")
SAMPLE += ("scatternd", "trilu", "softmax", "concat")
"""Modules of the suite, each with the cases of one operator."""


def cases() -> Iterator[Any]:
    held = suite._NodeTestCases
    for name in SAMPLE:
        first = len(held)
        importlib.import_module(f"onnx.backend.test.case.node.{name}")
        yield from held[first:]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.large
def test_cases_of_the_suite_pass():
    verdicts = [judge(case) for case in cases()]
    assert len(verdicts) > 50
    assert [v for v in verdicts if v.verdict not in ("passed", "bound")] == []
    assert {v.operator for v in verdicts if v.verdict == "bound"} == {"OneHot", "Trilu"}


def case(operator: str, outputs: list[np.ndarray], **attributes: Any) -> SimpleNamespace:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    node = helper.make_node(operator, ["x"], ["y"], **attributes)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets)
    sets = [([np.array([1, -2, 3], np.float32)], outputs)]
    return SimpleNamespace(name="case", model=model, data_sets=sets, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize(
    ("operator", "outputs", "verdict", "why"),
    [
        ("Relu", [np.array([1, 0, 3], np.float32)], "passed", ""),
        ("Relu", [np.array([1, 0, 4], np.float32)], "wrong", "output 0: Not equal"),
        ("Relu", [np.array([1, 0, 3])], "wrong", r"output 0: float32\[3\]; need int64\[3\]"),
        ("Relu", [], "wrong", "1 outputs; need 0"),
    ],
)
def test_a_case_is_judged_by_its_outputs(operator, outputs, verdict, why):
    found = judge(case(operator, outputs))
    assert (found.operator, found.verdict) == (operator, verdict)
    assert re.match(why, found.why)


def narrow_case(apart: int) -> SimpleNamespace:
    """A case of bfloat16 whose expected output is some steps from what the operator computes."""
    made = case("Relu", [])
    for value in (*made.model.graph.input, *made.model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.BFLOAT16
    expected = np.array([1, 0, 3], ml_dtypes.bfloat16)
    expected[2] += apart * 2.0**-6
    made.data_sets = [([np.array([1, -2, 3], ml_dtypes.bfloat16)], [expected])]
    return made


@pytest.mark.parametrize(
    ("apart", "verdict", "steps"), [(0, "passed", False), (2, "passed", True), (3, "wrong", False)]
)
def test_floats_of_16_bits_may_be_two_of_their_steps_apart(apart: int, verdict: str, steps: bool):
    found = judge(narrow_case(apart))
    assert (found.verdict, found.steps) == (verdict, steps)


@pytest.mark.parametrize(("far", "verdict"), [(2e-7, "passed"), (3e-7, "wrong")])
def test_an_expected_rounding_error_may_be_0(far: float, verdict: str):
    found = judge(case("Relu", [np.array([1, far, 3], np.float32)]))
    assert (found.verdict, found.steps) == (verdict, verdict == "passed")


def test_an_operator_that_nobody_has_is_refused_by_name():
    found = judge(case("Nothing", [], domain="own"))
    assert found.verdict == "refused"
    assert "Nothing" in found.why
