"""The tools that abele knows by name can be called, wherever they are installed."""

import importlib.util

import onnx
import pytest

from abele.ir.errors import InputError
from abele.tools.testing import check_tool
from abele.tools.testing.onnx_tools.campaign import SMALL
from abele.tools.testing.onnx_tools.known import KNOWN, Tool, tool_of
from abele.tools.testing.onnx_tools.process import ADAPTERS, ToolProcess
from abele.tools.testing.onnx_tools.script import adapter_text

TRANSFORMS = ("onnxoptimizer", "onnxscript", "onnxsim")


@pytest.mark.parametrize("tool", KNOWN.values(), ids=KNOWN)
def test_every_known_tool_has_an_adapter_that_needs_no_abele(tool: Tool):
    text = (ADAPTERS / f"{tool.adapter}.py").read_text()
    assert "abele" not in text
    assert "from ." not in text
    compile(adapter_text(tool), tool.adapter, "exec")
    assert tool.package


def test_onnxruntime_agrees_with_abele_at_each_level():
    for level in ("none", "basic", "extended"):
        report = check_tool(f"onnxruntime:{level}", examples=6, seed=3)
        assert report.examples + sum(report.not_judged.values()) == 6


def test_one_optimiser_of_onnxruntime_runs_alone():
    with ToolProcess("onnxruntime", "extended") as process:
        parts = process.parts(SMALL).parts
    assert {"ConstantFolding", "TransposeOptimizer", "EliminateIdentity"} <= set(parts)
    assert check_tool("onnxruntime:extended:ConstantFolding", examples=4, seed=4).examples


def test_a_part_that_a_tool_has_not_gets_a_message_with_those_that_it_has():
    with pytest.raises(InputError, match="neither an option nor a part; parts: .*ConstantFolding"):
        check_tool("onnxruntime:Nonsense", examples=1, seed=0)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_is_called_with_all_its_parts_and_without_any(name: str):
    if importlib.util.find_spec(KNOWN[name].module) is None:
        pytest.skip(f"{name} is not installed")
    tool = tool_of(name)
    with ToolProcess(tool.adapter, tool.option) as process:
        parts = process.parts(SMALL).parts
        assert parts
        for without in ([], parts):
            found = process.transform(SMALL, without).model
            assert found is not None
            onnx.checker.check_model(found)
