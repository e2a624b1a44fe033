"""The graph of a compiled program, and the texts that describe it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ....backends.graph import Graph, graph_of
from ...driver.executable import MACHINE, Executable
from .names import renamed
from .scan import Subject


def graph_of_program(exe: Executable, names: Mapping[str, str]) -> Graph:
    """The graph of a program. Raises InputError.

    Args:
        names: readable names of layers, if any.
    """
    return renamed(graph_of(exe.module_at(MACHINE), exe.target), names)


def subject_of(
    exe: Executable, network: str, sources: Mapping[str, str] = MappingProxyType({})
) -> Subject:
    """The subject of a picture. The batch is the first size of all inputs, if they agree.

    Args:
        network: its name.
        sources: what lines of the model's source say, by file and line.
    """
    sizes = {tensor.shape[0] for tensor in exe.inputs if tensor.shape}
    if len(sizes) == 1:
        return Subject(network, f"batch {sizes.pop():,}", sources)
    shapes = ("x".join(map(str, tensor.shape)) or "scalar" for tensor in exe.inputs)
    return Subject(network, f"inputs {', '.join(shapes) or 'none'}", sources)
