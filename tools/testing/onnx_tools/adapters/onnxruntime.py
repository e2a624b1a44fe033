"""Runs a model by onnxruntime on the CPU. An option is a level of optimisation."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import onnx

LEVELS = {
    "none": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}

# The log names a rule-based transformer as one. These are the rules inside it.
RULES = (
    *("EliminateIdentity", "EliminateSlice", "UnsqueezeElimination", "EliminateDropout"),
    *("ExpandElimination", "CastElimination", "PreShapeNodeElimination", "NoopElimination"),
    *("CastChainElimination", "DivMulFusion", "FuseReluClip", "GemmSumFusion"),
    *("GemmTransposeFusion", "NotWhereFusion", "ConvAddFusion", "ConvMulFusion", "ConvBNFusion"),
    *("PadFusion", "MatMul_BatchNormalization_Fusion", "LabelEncoderFusion"),
    *("ClipQuantRewrite", "ReluQuantRewrite"),
)


def version() -> str:
    """The installed version."""
    return import_module("onnxruntime").__version__


def parts(model: onnx.ModelProto, option: str) -> list[str]:
    """The names of the optimisers that run for the model."""
    del model
    small = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1] x) => (float[1] y) { y = Relu(x) }'
    )
    # onnxruntime's C++ code writes its log to file descriptor 2.
    with tempfile.TemporaryFile() as log:
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            _session(small, option, (), severity=0)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        log.seek(0)
        text = log.read().decode(errors="replace")
    found = re.findall(r"Applying graph transformer (\w+) on step", text)
    return [*dict.fromkeys(each for each in found if "RuleBased" not in each), *RULES]


def _session(model: onnx.ModelProto, option: str, without: Sequence[str], severity: int = 4) -> Any:
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    level = LEVELS[option or "all"]
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = severity
    return runtime.InferenceSession(
        model.SerializeToString(),
        options,
        ["CPUExecutionProvider"],
        disabled_optimizers=list(without),
    )


def run(
    model: onnx.ModelProto, inputs: dict[str, Any], option: str, without: Sequence[str] = ()
) -> dict[str, Any]:
    """The outputs of the model by name."""
    names = [each.name for each in model.graph.output]
    session = _session(model, option, without)
    return dict(zip(names, session.run(names, inputs), strict=True))
