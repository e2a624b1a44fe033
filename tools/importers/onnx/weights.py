"""Checks the size of a model's weights before any of their bytes are read."""

from __future__ import annotations

from math import prod
from pathlib import Path

import onnx

from ....ir.support.errors import DoesNotFit
from ..huge_weights import WeightCheck
from .model_file import ModelFile
from .sparse_weights import weights_of
from .tensors import stored_bytes, tensor_dtype


def check_weights(file: ModelFile, folder: Path | None, place: str, check: WeightCheck) -> None:
    """Check the weights that are used.

    Raises DoesNotFit, and InputError for weights that would be too large but have damaged external
    data.

    Args:
        folder, place: as for tensor_array.
    """
    model = file.model.graph
    used = {name for node in model.node for name in node.input} | {o.name for o in model.output}
    weights = [
        (i, tensor)
        for i, tensor in enumerate(weights_of(model))
        if tensor.name in used and tensor.data_type != onnx.TensorProto.STRING
    ]
    declared = {tensor.name: _declared(tensor, place) for _, tensor in weights}
    try:
        check(declared)
    except DoesNotFit:
        # A damaged shape can claim any size, so check that the data exist first.
        # Of a sparse weight, no file holds the zeros.
        stored = {*range(len(model.initializer))} - file.weights.keys()
        unread = {t.name: _held(t, folder, place) for i, t in weights if i in stored}
        check(declared | unread)


def _declared(tensor: onnx.TensorProto, place: str) -> int:
    return max(prod(tensor.dims), 0) * tensor_dtype(tensor.data_type, _what(tensor, place)).itemsize


def _held(tensor: onnx.TensorProto, folder: Path | None, place: str) -> int:
    return min(_declared(tensor, place), stored_bytes(tensor, folder, _what(tensor, place)))


def _what(tensor: onnx.TensorProto, place: str) -> str:
    return f"{place}: weight {tensor.name!r}"
