"""Runs a model of ONNX as it is: by onnx's reference evaluator, or else by onnxruntime."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx.reference import ReferenceEvaluator
from xdsl.dialects.builtin import TensorType

from ...dialects.onnx.types import sizes_of, value_type
from ...ir.element_types import dense_dtype
from ...ir.support.errors import InputError, one_line
from ...ir.text import read_module
from ..importers.bounds import GivenSize
from ..importers.onnx_models.files import SUFFIX
from ..importers.onnx_models.writer import model_of
from .arrays import Array, Tensor, read_npz, seeded
from .context import new_context

REFERENCE, RUNTIME = "onnx's reference evaluator", "onnxruntime"


@dataclass(frozen=True)
class OnnxRun:
    """What a model computed.

    Attributes:
        by: the evaluator.
        seeded: the names of inputs that had no value and got seeded ones.
    """

    outputs: dict[str, Array]
    by: str
    seeded: tuple[str, ...]


def run_onnx(path: str, inputs: Path | None, dims: Mapping[str, GivenSize], seed: int) -> OnnxRun:
    """The outputs of a model.

    Raises InputError for a damaged model, for inputs that do not fit, and if no evaluator runs it.

    Args:
        path: an .onnx, or the text of a module of ONNX.
        inputs: a file of values.
        dims: sizes of free dimensions, by name.
        seed: for inputs that have no value.
    """
    model = _model(path)
    wanted = [_tensor(each, dims, path) for each in _free_inputs(model)]
    given = {} if inputs is None else read_npz(inputs, wanted)
    values = seeded(wanted, seed) | given
    missing = tuple(each.name for each in wanted if each.name not in given)
    return OnnxRun(*_evaluated(model, values, path), missing)


def _model(path: str) -> onnx.ModelProto:
    if not path.endswith(SUFFIX):
        return model_of(read_module(path, new_context()), path, inline=True)
    try:
        return onnx.load(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (DecodeError, ValueError, onnx.checker.ValidationError) as error:
        raise InputError(f"{path}: damaged, or not an ONNX model: {one_line(error)}") from None


def _free_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that have no value in the model."""
    held = {each.name for each in model.graph.initializer}
    held |= {each.values.name for each in model.graph.sparse_initializer}
    return [each for each in model.graph.input if each.name not in held]


def _tensor(info: onnx.ValueInfoProto, dims: Mapping[str, GivenSize], path: str) -> Tensor:
    type_ = value_type(info.type)
    if not isinstance(type_, TensorType):
        raise InputError(f"{path}: input {info.name!r} is {type_}; only tensors can be given")
    shape: list[int] = []
    for axis, size in enumerate(sizes_of(cast("TensorType[Any]", type_))):
        found = size if isinstance(size, int) else dims.get(size, dims.get(f"{info.name}:{axis}"))
        if not isinstance(found, int):
            name = size or f"{info.name}:{axis}"
            raise InputError(
                f"{path}: axis {axis} of input {info.name!r} has no size; add --dim {name}=1"
            )
        shape.append(found)
    try:
        dtype = dense_dtype(cast("TensorType[Any]", type_).element_type)
    except ValueError as error:
        raise InputError(f"{path}: input {info.name!r}: {error}") from None
    return Tensor(info.name, tuple(shape), dtype)


def _evaluated(
    model: onnx.ModelProto, values: Mapping[str, Array], path: str
) -> tuple[dict[str, Array], str]:
    names = [each.name for each in model.graph.output]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = cast("list[Any]", ReferenceEvaluator(model).run(None, dict(values)))
        return dict(zip(names, map(np.asarray, found), strict=True)), REFERENCE
    # The evaluator is Python code of onnx, which raises whatever a model leads it to.
    except Exception as error:
        reason = one_line(error)
    if find_spec("onnxruntime") is None:
        raise InputError(
            f"{path}: {REFERENCE} does not run it: {reason}; install onnxruntime, which may"
        )
    return _by_onnxruntime(model, names, values, path), RUNTIME


def _by_onnxruntime(
    model: onnx.ModelProto, names: list[str], values: Mapping[str, Array], path: str
) -> dict[str, Array]:
    import onnxruntime  # noqa: PLC0415  # an extra

    try:
        session = cast(Any, onnxruntime).InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        found = session.run(names, dict(values))
    # onnxruntime raises its own errors, which are no classes of Python's.
    except Exception as error:
        raise InputError(f"{path}: onnxruntime does not run it: {one_line(error)}") from None
    return dict(zip(names, map(np.asarray, found), strict=True))
