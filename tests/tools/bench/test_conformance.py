import importlib
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx.backend.test.case.node as suite
import pytest
from onnx import TensorProto, helper

from abele.tools.bench.conformance import judge

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


def test_an_operator_that_nobody_has_is_refused_by_name():
    found = judge(case("Nothing", [], domain="own"))
    assert found.verdict == "refused"
    assert "Nothing" in found.why
