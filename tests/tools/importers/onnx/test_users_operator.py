from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from called_dialect import called_dialect
from onnx import TensorProto, helper
from typer.testing import CliRunner

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.cli import app
from abele.tools.driver.extensions.registration import uninstall
from abele.tools.importers import import_onnx

from .one_node import computed, one_node

IMPORTER = """
from abele.dialects import nn
from abele.tools.extensions import onnx_operator


def missing(node):
    return {}["missing"]


@onnx_operator("Mine", "com.example")
def mine(node):
    BODY
"""

CASES = {
    "it raises": ("raise ValueError('not today')", r"PATH:12: ValueError: not today$"),
    "a function that it calls raises": (
        "return missing(node)",
        r"PATH:7: KeyError: 'missing'\n  called at PATH:12$",
    ),
    "an operation refuses its operands": (
        "return node.add(nn.ReshapeOp(node[0], [7]))",
        r"PATH:12: .*need as many$",
    ),
    "it returns nothing": ("pass", r"PATH:10: mine returned None; need a result, as node.add"),
    "it returns something else": (
        "return [7]",
        r"PATH:10: mine returned a list of int; need",
    ),
    "it says what is wrong": ("raise node.bad('no')", "no$"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_importer_that_fails_is_reported_with_its_line_and_the_node(case: str, tmp_path: Path):
    body, message = CASES[case]
    model, path = tmp_path / "mine.onnx", tmp_path / "importer.py"
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 6]) for name in "xy"]
    node = helper.make_node("Mine", ["x"], ["y"], name="layer1", domain="com.example")
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.example", 1)]
    graph = helper.make_graph([node], "g", value[:1], value[1:])
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), model)
    path.write_text(IMPORTER.replace("BODY", body))
    expected = rf"mine.onnx: node 'layer1' \(Mine\): {message.replace('PATH', str(path))}"
    try:
        with pytest.raises(InputError, match=expected):
            compile_model(model, "tiny", load=[path])
        done = CliRunner().invoke(app, ["run", str(model), "--load", str(path)])
    finally:
        uninstall(str(path.resolve()))
    assert done.exit_code == 2
    assert "layer1" in done.output
    assert "Traceback" not in done.output


A, B = (np.arange(24, dtype=np.float32).reshape(4, 6) + i for i in range(2))


def test_a_node_calls_an_operation_by_its_domain_and_name(tmp_path: Path):
    with called_dialect(tmp_path):
        model, inputs = one_node("mix", A, B, domain="mine", rate=0.5, negated=1)
        (found,) = computed(model, inputs)
        np.testing.assert_array_equal(found, -(0.5 * A + B))


def test_a_node_calls_an_operation_by_a_name_that_its_file_declares(tmp_path: Path):
    with called_dialect(tmp_path):
        model, inputs = one_node("Blend", A, B, known=1, domain="com.example", alpha=2.0)
        (found,) = computed(model, inputs)
        np.testing.assert_array_equal(found, 2 * A + B)


def test_a_node_may_have_several_results(tmp_path: Path):
    with called_dialect(tmp_path):
        model, _ = one_node("halves", A, domain="mine", results=2)
        (main,) = import_onnx(model, AbeleContext()).body.block.ops
        assert [str(each) for each in main.function_type.outputs] == ["tensor<2x6xf32>"] * 2


MISFITS: dict[str, tuple[Any, Any, str]] = {
    "one operand": ([A], {"rate": 1.0}, r"1 operands; mine.mix takes 2 \(x, y\)"),
    "an operand left out": ([A, None, B], {"rate": 1.0}, "operand 1 is left out"),
    "an unknown attribute": (
        [A, B],
        {"rate": 1.0, "nagated": 1},
        "no attribute 'nagated'; did you mean negated",
    ),
    "a text for a number": ([A, B], {"rate": "a"}, "rate of mine.mix is the text 'a'; need a num"),
    "a graph for a number": (
        [A, B],
        {"rate": helper.make_graph([], "g", [], [])},
        "attribute rate is a graph; need numbers or a text",
    ),
    "other elements": ([A, B.astype(np.int32)], {"rate": 1.0}, "element types f32 and i32"),
    "code that fails": (
        [A, B],
        {"rate": 1.0, "axes": [7, 7]},
        r"mine.py:33: KeyError: 'missing'",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_call_that_does_not_fit_names_the_node(case: str, tmp_path: Path):
    operands, attributes, message = MISFITS[case]
    with called_dialect(tmp_path):
        model, inputs = one_node("mix", *operands, domain="mine", **attributes)
        with pytest.raises(InputError, match=rf"node 'node' \(mix\): .*{message}"):
            computed(model, inputs)


def test_a_domain_that_is_nearly_that_of_a_loaded_file_is_guessed(tmp_path: Path):
    with called_dialect(tmp_path):
        model, inputs = one_node("Mix", A, B, domain="mine", rate=1.0)
        with pytest.raises(InputError, match="did you mean mine.mix of a file that was loaded"):
            computed(model, inputs)
