"""abele as an ONNX backend, as conformance suites drive one: prepare a model, run it on a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from .arrays import Array
from .compile import compile_model
from .executable import Executable

TARGET = "tiny:4,memory.bytes_per_tile=268435456"
"""Few tiles, so that many small models run fast; memory enough that size is no question here."""


class Prepared:
    """A compiled model."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable

    def run(self, inputs: Sequence[object], **_: Any) -> list[Array]:
        """The outputs, in the graph's order, for inputs in the graph's order."""
        names = [each.name for each in self.executable.inputs]
        values = [np.asarray(value) for value in inputs]
        if len(values) != len(names):
            raise ValueError(f"{len(values)} inputs; need {len(names)}: {', '.join(names)}")
        results = self.executable.run(dict(zip(names, values, strict=True)))
        return [results[each.name] for each in self.executable.outputs]


class AbeleBackend:
    """What conformance suites call."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> Prepared:
        """Compile a model for a few tiles.

        Raises InputError, and its subclass of NotImplementedError for what is not supported.
        """
        del device
        return Prepared(compile_model(model, TARGET))

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Sequence[object], device: str = "CPU", **_: Any
    ) -> list[Array]:
        """Compile a model and run it once."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device's name is known: the machine model is all there is."""
        return device == "CPU"
