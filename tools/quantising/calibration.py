"""Runs the float model on samples, and counts the numbers of the tensors to quantise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx

from ...backends.reference import run_reference
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ..driver.compile_anew import read_model
from ..driver.request import Request
from .histogram import Histogram
from .model import Graph
from .samples import Units


@dataclass
class Seen:
    """The numbers that tensors were seen to have.

    Attributes:
        floats: the tensors with float32 numbers.
    """

    histograms: dict[str, Histogram] = field(default_factory=dict[str, Histogram])
    floats: set[str] = field(default_factory=set[str])


@dataclass(frozen=True)
class Interpreted:
    """A model as it was read, which the reference runs: one rounding per operation."""

    module: ModuleOp

    @staticmethod
    def of(request: Request, model: onnx.ModelProto) -> Interpreted:
        """A model that is read as a request says. Raises InputError."""
        asked = replace(request, model=model, weights=None, partial_weights=False, on_note=None)
        return Interpreted(read_model(asked, request.extensions.context()).module)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name."""
        return run_reference(self.module, inputs).outputs


def calibrated(graph: Graph, request: Request, units: Units, tensors: Sequence[str]) -> Seen:
    """The numbers of tensors of a graph in all runs. Raises InputError for one that is not finite.

    Args:
        request: says how the model is read.
    """
    model = interpreted_with(graph, request, tensors)
    seen = Seen({name: Histogram() for name in tensors})
    for inputs, first, left in units.runs():
        request.on_step(f"calibrate {first + left} of {units.count}")
        found = inputs | model.run(inputs)
        for name in tensors:
            array = found[name]
            if array.dtype != np.float32:
                continue
            seen.floats.add(name)
            count(seen.histograms[name], array, repr(name), units, first)
    return seen


def count(seen: Histogram, array: Array, what: str, units: Units, first: int) -> None:
    """Count the numbers of a tensor in a run. Raises InputError for one that is not finite.

    Args:
        what: the tensor, for the message.
        first: the first sample of the run.
    """
    if not np.isfinite(array).all():
        raise InputError(
            f"{units.path}: {what} is not finite in the run of sample {first}; the float model "
            "overflows, so nothing can be calibrated"
        )
    seen.add(array)


def interpreted_with(graph: Graph, request: Request, tensors: Collection[str]) -> Interpreted:
    """The model with some of its tensors as further outputs."""
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    known = {each.name for each in (*model.graph.output, *model.graph.input)}
    for name in tensors:
        if name not in known:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    return Interpreted.of(replace(request, lenient=True), model)
