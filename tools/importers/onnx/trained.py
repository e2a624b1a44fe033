"""Writes a trained model: the ONNX file that was read, with other weights."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ....ir.support.whole_file import whole_file
from .tensors import tensor_array

MOST_BYTES = 2**31 - 1
"""The largest file of protobuf."""


class TrainedModel:
    """A model that was read, to be written with trained weights.

    Raises InputError for a state that is not.

    Attributes:
        path: of the .onnx file.
        first: the states that a step changes, by name, with their values before training. Each must
            be an unchanged initialiser of the model's graph, because these are replaced.
    """

    def __init__(self, path: str | os.PathLike[str], first: Mapping[str, Array]) -> None:
        self.path = os.fspath(path)
        self.model = onnx.load(self.path)
        self.names = tuple(first)
        known = {each.name: each for each in self.model.graph.initializer}
        folder = Path(self.path).parent
        for name, array in first.items():
            tensor = known.get(name)
            if tensor is None:
                raise InputError(
                    f"{self.path}: weight {name!r} is trained, but is no initialiser of the "
                    f"model's graph{_why(self.model.graph, name)}; freeze it, or train without "
                    "--save-onnx"
                )
            stored = tensor_array(tensor, folder, f"{self.path}: weight {name!r}")
            if not _same(stored, array):
                raise InputError(
                    f"{self.path}: weight {name!r} is trained in another form than the model holds "
                    "it, so it cannot be written back; freeze it, or train without --save-onnx"
                )

    def write(self, path: str | os.PathLike[str], states: Mapping[str, Array]) -> None:
        """Write the model with these weights, to a temporary file that is then renamed."""
        known = {each.name: each for each in self.model.graph.initializer}
        for name in self.names:
            known[name].CopyFrom(numpy_helper.from_array(states[name], name))
        if self.model.ByteSize() > MOST_BYTES:
            raise InputError(
                f"{path}: {self.model.ByteSize():,} bytes; an ONNX file holds {MOST_BYTES:,}"
            )
        try:
            with whole_file(Path(path)) as stream:
                stream.write(self.model.SerializeToString(deterministic=True))
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def _same(stored: Array, array: Array) -> bool:
    """Whether two arrays have the same bits."""
    return (
        stored.shape == array.shape
        and stored.dtype == array.dtype
        and np.ascontiguousarray(stored).tobytes() == np.ascontiguousarray(array).tobytes()
    )


def _why(graph: onnx.GraphProto, name: str) -> str:
    """The reason why a name is not that of an initialiser, if it can be found."""
    if any(each.values.name == name for each in graph.sparse_initializer):
        return ", but a sparse one"
    if any(name in _inner(node) for node in graph.node):
        return ", but one of a graph inside a node"
    return ""


def _inner(node: onnx.NodeProto) -> Collection[str]:
    """The initialisers of the graphs inside a node."""
    found: set[str] = set()
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            found |= {each.name for each in graph.initializer}
            for each in graph.node:
                found |= set(_inner(each))
    return found
