"""Transforms a model by onnxsim."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version as installed
from typing import Any

import onnx

FOLDING = "constant folding"
INFERENCE = "shape inference"


def version() -> str:
    """The installed version."""
    return installed("onnxsim")


def parts(model: onnx.ModelProto, option: str) -> list[str]:
    """The names of the optimisers, and of the two steps around them."""
    del model, option
    tool: Any = import_module("onnxsim.onnxsim_cpp2py_export")
    return [FOLDING, INFERENCE, *tool._list_optimizers()]


def transform(model: onnx.ModelProto, option: str, without: Sequence[str] = ()) -> onnx.ModelProto:
    """The simplified model."""
    tool: Any = import_module("onnxsim")
    simplified, _ = tool.simplify(
        model,
        skip_constant_folding=FOLDING in without,
        skip_shape_inference=INFERENCE in without,
        skipped_optimizers=[each for each in without if each not in (FOLDING, INFERENCE)] or None,
        include_subgraph=option == "subgraphs",
    )
    return simplified
