"""The models of the page about findings are what the page says."""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from abele.tools.testing.onnx_graphs.runtimes import by_onnxruntime

PAGE = Path(__file__).parents[1] / "docs" / "found.md"


def models() -> list[onnx.ModelProto]:
    texts = re.findall(r"^```onnx\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [onnx.parser.parse_model(each.replace("\ngraph", "\ng", 1)) for each in texts]


def test_the_models_that_tools_got_are_valid_and_run():
    refused, fused, _ = models()
    for model in (refused, fused):
        onnx.checker.check_model(model, full_check=True)
    (y,) = ReferenceEvaluator(refused).run(None, {"x": np.ones((1, 1), np.int32)})
    assert y.shape == (1, 0)
    # onnx's evaluator does not run this version of ReduceLogSumExp.
    found = by_onnxruntime(fused, {"x": np.ones((1, 1, 1, 1), np.float32)})
    assert found["y"].shape == ()


def test_the_model_that_a_tool_returned_has_another_rank():
    with pytest.raises(onnx.shape_inference.InferenceError, match="rank"):
        onnx.checker.check_model(models()[2], full_check=True)
