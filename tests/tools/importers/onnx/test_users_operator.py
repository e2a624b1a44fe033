from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.cli import app
from abele.tools.driver.extensions.registration import uninstall

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
