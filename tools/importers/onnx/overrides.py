"""Inputs of a model with a default value, which users may replace: ONNX's IR from version 4 on.

Such an input is an initialiser as well. Before version 4, every initialiser had to be an input, and
could not be replaced.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from .model_file import read_model_file
from .sparse_weights import weights_of
from .tensors import tensor_kind

FIRST_VERSION = 4
"""The first version of the file format in which an input may replace an initialiser."""


def optional_tensors(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """The initialisers that are inputs as well, so that users may give another value."""
    if model.ir_version < FIRST_VERSION:
        return []
    inputs = {value.name for value in model.graph.input}
    return [each for each in weights_of(model.graph) if each.name in inputs]


def optional_inputs(
    model: str | os.PathLike[str] | onnx.ModelProto,
) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """The shapes and dtypes of the inputs that have a default value in a model, by name.

    Raises InputError for a damaged model.

    Args:
        model: a path, or a model in memory.
    """
    in_memory = isinstance(model, onnx.ModelProto)
    found = model if in_memory else read_model_file(Path(model)).model
    place = "<model>" if in_memory else str(model)
    kinds: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
    for each in optional_tensors(found):
        dtype, shape = tensor_kind(each, f"{place}: weight {each.name!r}")
        kinds[each.name] = shape, dtype
    return kinds
