"""Runs a model by tinygrad. DEV=PYTHON needs no C compiler."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version as installed
from typing import Any

import numpy as np
import onnx


def version() -> str:
    """The installed version."""
    return installed("tinygrad")


def parts(model: onnx.ModelProto, option: str) -> list[str]:
    """Nothing: tinygrad's rules cannot be left out."""
    del model, option
    return []


def run(
    model: onnx.ModelProto, inputs: dict[str, Any], option: str, without: Sequence[str] = ()
) -> dict[str, Any]:
    """The outputs of the model by name."""
    del option, without
    tinygrad: Any = import_module("tinygrad")
    reader: Any = import_module("tinygrad.nn.onnx")
    # A reader of a file takes a tensor of its bytes.
    data = tinygrad.Tensor(io.BytesIO(model.SerializeToString()).getvalue(), device="PYTHON")
    runner = reader.OnnxRunner(data)
    results = runner({name: tinygrad.Tensor(array) for name, array in inputs.items()})
    return {name: _array(each) for name, each in results.items()}


def _array(value: Any) -> Any:
    """An output as an array. A shape or a constant is a number or a list of Python's."""
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)
