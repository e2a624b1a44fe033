"""Calls a Python function: of a model, or of a model and the arrays of its inputs by name.

The option is `module:function`. The module is imported from the path that Python has.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Any

import onnx


def version() -> str:
    """Nothing: the function's package is asked by version_of."""
    return ""


def version_of(option: str) -> str:
    """The version of the package that the function is in; "" if it is in none."""
    try:
        return installed(option.partition(".")[0].partition(":")[0])
    except PackageNotFoundError:
        return ""


def function(option: str) -> Any:
    """The function of this name."""
    module, _, name = option.partition(":")
    found: Any = import_module(module)
    for each in name.split("."):
        found = getattr(found, each)
    return found


def parts(model: onnx.ModelProto, option: str) -> list[str]:
    """Nothing: the parts of a function are not known."""
    del model, option
    return []


def transform(model: onnx.ModelProto, option: str, without: Sequence[str] = ()) -> onnx.ModelProto:
    """The model that the function returns; the model itself if it returns None."""
    del without
    found = function(option)(model)
    return model if found is None else found


def run(
    model: onnx.ModelProto, inputs: dict[str, Any], option: str, without: Sequence[str] = ()
) -> dict[str, Any]:
    """The outputs that the function returns: by name, or in the order of the model."""
    del without
    found: Any = function(option)(model, inputs)
    names = [each.name for each in model.graph.output]
    return found if hasattr(found, "items") else dict(zip(names, found, strict=True))
