"""abele as an ONNX backend for conformance suites: prepare a model, run it on a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
from onnx import numpy_helper

from ..importers.errors import NotConstantError
from ..importers.onnx.sparse_weights import weights_of
from .arrays import Array
from .compile import compile_model
from .executable import Executable
from .onnx_lists import OnnxValue, assembled_outputs, list_inputs, with_tensors

TARGET = "tiny:4,memory.bytes_per_tile=268435456"
"""Few tiles make many small models fast; large tiles make every model fit."""


class Prepared:
    """A compiled model, or one per value of the inputs that shapes depend on.

    Attributes:
        fixed: the names of the inputs that shapes depend on.
    """

    def __init__(
        self, model: onnx.ModelProto, target: str, fixed: Sequence[str], exe: Executable | None
    ) -> None:
        self.fixed = tuple(fixed)
        self._model = model
        self._target = target
        self._compiled: dict[tuple[object, ...], Executable] = {} if exe is None else {(): exe}
        self._with_tensors: dict[tuple[object, ...], Prepared] = {}

    def run(self, inputs: Sequence[object], **_: Any) -> list[OnnxValue]:
        """The outputs, in the graph's order, for inputs in the graph's order.

        Args:
            inputs: arrays, or tensors as ONNX stores them; lists of them for sequences, and None
                for optionals without a value. Outputs are of the same kinds.
        """
        names = input_names(self._model)
        if len(inputs) != len(names):
            raise ValueError(f"{len(inputs)} inputs; need {len(names)}: {', '.join(names)}")
        given = dict(zip(names, inputs, strict=True))
        if list_inputs(self._model):
            return self._run_lists({name: as_value(value) for name, value in given.items()})
        values = {name: as_array(value) for name, value in given.items()}
        exe = self._executable(values)
        results = exe.run({each.name: values[each.name] for each in exe.inputs})
        return assembled_outputs(self._model.graph.output, results)

    def _run_lists(self, given: Mapping[str, OnnxValue]) -> list[OnnxValue]:
        """Run the model of tensors that stands for a model of sequences and optionals."""
        model, tensors = with_tensors(self._model, given)
        key = (*((name, a.dtype.name, a.shape) for name, a in tensors.items()),)
        if key not in self._with_tensors:
            self._with_tensors[key] = AbeleBackend.prepare(model)
        prepared = self._with_tensors[key]
        found = prepared.run([tensors[name] for name in input_names(model)])
        self.fixed += tuple(name for name in prepared.fixed if name not in self.fixed)
        return found

    def _executable(self, values: Mapping[str, Array]) -> Executable:
        while True:
            arrays = [values[name] for name in self.fixed]
            key = (*((array.dtype.name, array.shape, array.tobytes()) for array in arrays),)
            if key in self._compiled:
                return self._compiled[key]
            model = with_constants(self._model, dict(zip(self.fixed, arrays, strict=True)))
            try:
                self._compiled[key] = compile_model(model, self._target, cache=False)
            except NotConstantError as error:
                # What one input decides may show that another one decides as well.
                more = [name for name in error.inputs if name not in self.fixed]
                if not more or not set(more) <= set(values):
                    raise
                self.fixed += tuple(more)


def as_value(value: object) -> OnnxValue:
    """A tensor, a sequence or an optional, of arrays."""
    if value is None:
        return None
    if isinstance(value, list):
        return [as_array(each) for each in cast("list[object]", value)]
    return as_array(value)


def as_array(value: object) -> Array:
    """The array of a value that may be a tensor of ONNX, as those of packed elements are."""
    is_tensor = isinstance(value, onnx.TensorProto)
    return numpy_helper.to_array(value) if is_tensor else np.asarray(value)


def input_names(model: onnx.ModelProto) -> list[str]:
    """The graph inputs that are not initializers, in order."""
    initialized = {each.name for each in weights_of(model.graph)}
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
        if list_inputs(model):
            # How many tensors there are, and of which shapes, is only known for a run.
            return Prepared(model, TARGET, (), None)
        try:
            return Prepared(model, TARGET, (), compile_model(model, TARGET, cache=False))
        except NotConstantError as error:
            if not set(error.inputs) <= set(input_names(model)):
                raise
            return Prepared(model, TARGET, error.inputs, None)

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Sequence[object], device: str = "CPU", **_: Any
    ) -> list[OnnxValue]:
        """Compile a model and run it once."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device is supported; "CPU" is the only one."""
        return device == "CPU"
