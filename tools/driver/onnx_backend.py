"""abele as an ONNX backend for conformance suites: prepare a model, run it on a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ..importers.errors import NotConstantError
from .arrays import Array
from .compile import compile_model
from .executable import Executable

TARGET = "tiny:4,memory.bytes_per_tile=268435456"
"""Few tiles make many small models fast; large tiles make every model fit."""


class Prepared:
    """A compiled model. If a shape depends on inputs, one compiled model per value of these inputs.

    fixed: the names of these inputs.
    """

    def __init__(
        self, model: onnx.ModelProto, target: str, fixed: Sequence[str], exe: Executable | None
    ) -> None:
        self.fixed = tuple(fixed)
        self._model = model
        self._target = target
        self._compiled: dict[tuple[object, ...], Executable] = {} if exe is None else {(): exe}

    def run(self, inputs: Sequence[object], **_: Any) -> list[Array]:
        """The outputs, in the graph's order, for inputs in the graph's order.

        inputs: arrays, or tensors as ONNX stores them.
        """
        names = input_names(self._model)
        if len(inputs) != len(names):
            raise ValueError(f"{len(inputs)} inputs; need {len(names)}: {', '.join(names)}")
        values = {name: as_array(value) for name, value in zip(names, inputs, strict=True)}
        exe = self._executable(values)
        results = exe.run({each.name: values[each.name] for each in exe.inputs})
        return [results[each.name] for each in exe.outputs]

    def _executable(self, values: Mapping[str, Array]) -> Executable:
        while True:
            arrays = [values[name] for name in self.fixed]
            key = (*((array.dtype.name, array.shape, array.tobytes()) for array in arrays),)
            if key in self._compiled:
                return self._compiled[key]
            model = with_constants(self._model, dict(zip(self.fixed, arrays, strict=True)))
            try:
                self._compiled[key] = compile_model(model, self._target)
            except NotConstantError as error:
                # What one input decides may show that another one decides as well.
                more = [name for name in error.inputs if name not in self.fixed]
                if not more or not set(more) <= set(values):
                    raise
                self.fixed += tuple(more)


def as_array(value: object) -> Array:
    """The array of a value that may be a tensor of ONNX, as those of packed elements are."""
    is_tensor = isinstance(value, onnx.TensorProto)
    return numpy_helper.to_array(value) if is_tensor else np.asarray(value)


def input_names(model: onnx.ModelProto) -> list[str]:
    """The graph inputs that are not initializers, in order."""
    initialized = {each.name for each in model.graph.initializer}
    return [each.name for each in model.graph.input if each.name not in initialized]


def with_constants(model: onnx.ModelProto, values: Mapping[str, Array]) -> onnx.ModelProto:
    """A copy of a model with some inputs turned into constants."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    # Before version 4, each initializer had to be an input as well.
    copy.ir_version = max(copy.ir_version, 4)
    rest = [each for each in copy.graph.input if each.name not in values]
    del copy.graph.input[:]
    copy.graph.input.extend(rest)
    copy.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in values.items()
    )
    return copy


class AbeleBackend:
    """The interface that conformance suites call."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> Prepared:
        """Compile a model for a few tiles.

        A model with a shape that depends on inputs is compiled once their values are known. Raises
        InputError; for what abele does not support, its subclass of NotImplementedError.
        """
        del device
        try:
            return Prepared(model, TARGET, (), compile_model(model, TARGET))
        except NotConstantError as error:
            if not set(error.inputs) <= set(input_names(model)):
                raise
            return Prepared(model, TARGET, error.inputs, None)

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Sequence[object], device: str = "CPU", **_: Any
    ) -> list[Array]:
        """Compile a model and run it once."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device is supported; "CPU" is the only one."""
        return device == "CPU"
