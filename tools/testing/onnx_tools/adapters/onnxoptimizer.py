"""Transforms a model by onnxoptimizer."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version as installed
from typing import Any

import onnx


def version() -> str:
    """The installed version."""
    return installed("onnxoptimizer")


def parts(model: onnx.ModelProto, option: str) -> list[str]:
    """The names of the passes: those that run by default, or all of them for the option "all"."""
    del model
    tool: Any = import_module("onnxoptimizer")
    every = option == "all"
    names = tool.get_available_passes() if every else tool.get_fuse_and_elimination_passes()
    # These passes split a model in two, or rename its inputs and outputs, on purpose.
    return [each for each in names if not each.startswith(("split_", "rename_input_output"))]


def transform(model: onnx.ModelProto, option: str, without: Sequence[str] = ()) -> onnx.ModelProto:
    """The model after the passes."""
    tool: Any = import_module("onnxoptimizer")
    return tool.optimize(model, [each for each in parts(model, option) if each not in without])
