"""A model under test: cutting it into smaller models, saving it and loading it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import onnx
from onnx import numpy_helper

from ....ir.support.errors import InputError
from ....ir.support.whole_folder import whole_folder
from ...driver.arrays import Array, read_npz, write_npz
from ...driver.context import new_context
from ...driver.program import signature
from ...importers import import_onnx
from ..generators.sketch import Sketch

KIND = "a failing model that abele saved"

MODEL = "model.onnx"
INPUTS = "inputs.npz"
ABOUT = "replay.json"
DIMS = "dims"
OPENED = "is_opened"

WEIGHTS_ARE_NO_INPUTS = 4
"""The first version of the file format in which an initializer need not be an input as well."""


@dataclass(frozen=True)
class ModelCase:
    """A model and the values of its inputs. Its repr is the model as ONNX text.

    Attributes:
        sketch: the sketch from which it was generated.
        dims: the bounds of sizes that each run chooses, by the name of the dimension.
        is_opened: whether it has a size that only a run knows.
    """

    proto: onnx.ModelProto
    inputs: dict[str, Array]
    sketch: Sketch | None = None
    dims: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    is_opened: bool = False

    @property
    def bounds(self) -> dict[str, tuple[int, int]]:
        """The bounds of the sizes that inputs have."""
        dims = (d.dim_param for v in self.proto.graph.input for d in v.type.tensor_type.shape.dim)
        return {name: self.dims[name] for name in dims if name in self.dims}

    @property
    def text(self) -> str:
        """The model as ONNX text."""
        return onnx.printer.to_text(self.proto)

    @property
    def opset(self) -> int:
        """The version of the domain ai.onnx."""
        return next(o.version for o in self.proto.opset_import if o.domain in ("", "ai.onnx"))

    @property
    def weights(self) -> dict[str, Array]:
        """The values of the initializers, by name."""
        return {t.name: numpy_helper.to_array(t) for t in self.proto.graph.initializer}

    def producer(self, name: str) -> onnx.NodeProto | None:
        """The node that computes a value; None if no node does."""
        return next((n for n in self.proto.graph.node if name in n.output), None)

    def with_all_results(self) -> ModelCase:
        """The model with all results of all nodes as outputs, in the order of the nodes."""
        infos = _results(self.proto)
        return self._with_outputs(list(infos.values()))

    def reduced_to(self, outputs: Sequence[str]) -> ModelCase:
        """The model with only these outputs, and only the nodes that compute them."""
        infos = _results(self.proto)
        return _without_unused(self._with_outputs([infos[name] for name in outputs]))

    def with_inputs(self, values: Mapping[str, Array]) -> ModelCase:
        """The model with inputs that replace the nodes and initializers of these values.

        The values are no longer outputs. Unused inputs are removed.
        """
        proto = copy_of(self.proto)
        outputs = [v for v in proto.graph.output if v.name not in values]
        del proto.graph.output[:]
        proto.graph.output.extend(outputs)
        given = {v.name for v in proto.graph.input}
        for name, array in values.items():
            if name not in given:
                code = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
                info = onnx.helper.make_tensor_value_info(name, code, array.shape)
                proto.graph.input.append(info)
        kept = [n for n in proto.graph.node if not set(filter(None, n.output)) <= set(values)]
        for node in kept:
            for i, name in enumerate(node.output):
                if name in values:
                    node.output[i] = ""
        held = [t for t in proto.graph.initializer if t.name not in values]
        del proto.graph.node[:], proto.graph.initializer[:]
        proto.graph.node.extend(kept)
        proto.graph.initializer.extend(held)
        return _without_unused(
            replace(self, proto=proto, inputs={**self.inputs, **values}, sketch=None)
        )

    def single_node(self, node: onnx.NodeProto, operands: Mapping[str, Array]) -> ModelCase:
        """A model of one node with constant operands, and all its results as outputs."""
        types = {n: v.type.tensor_type.elem_type for n, v in _results(self.proto).items()}
        results = [
            onnx.helper.make_tensor_value_info(name, types[name], None)
            for name in node.output
            if name in types
        ]
        weights = [numpy_helper.from_array(array, name) for name, array in operands.items()]
        graph = onnx.helper.make_graph([node], "alone", [], results, weights)
        version = max(self.proto.ir_version, WEIGHTS_ARE_NO_INPUTS)
        opsets = list(self.proto.opset_import)
        return ModelCase(
            onnx.helper.make_model(graph, opset_imports=opsets, ir_version=version), {}
        )

    def without_false_shapes(self, computed: Mapping[str, Array]) -> ModelCase:
        """The model without declared shapes that differ from the computed shapes of its outputs.

        onnx infers a wrong shape for some nodes, such as windows with ceil_mode. Shapes of values
        that are not outputs are not declared either.
        """
        proto = copy_of(self.proto)
        for value in proto.graph.value_info:
            value.type.tensor_type.ClearField("shape")
        for output in proto.graph.output:
            tensor = output.type.tensor_type
            if tuple(d.dim_value for d in tensor.shape.dim) != computed[output.name].shape:
                tensor.ClearField("shape")
        return replace(self, proto=proto)

    def _with_outputs(self, outputs: Sequence[onnx.ValueInfoProto]) -> ModelCase:
        proto = copy_of(self.proto)
        names = {v.name for v in outputs}
        others = (*proto.graph.value_info, *proto.graph.output)
        typed = [v for v in others if v.name not in names and self.producer(v.name)]
        del proto.graph.output[:], proto.graph.value_info[:]
        proto.graph.output.extend(outputs)
        proto.graph.value_info.extend(typed)
        return replace(self, proto=proto, sketch=None)

    def save(self, folder: Path, about: Mapping[str, object]) -> None:
        """Save the model, its inputs and the settings of its replay to a folder.

        An existing folder is replaced only if it holds a saved model that nobody has changed.
        Raises InputError.
        """
        with whole_folder(folder, KIND) as made:
            (made / MODEL).write_bytes(self.proto.SerializeToString())
            write_npz(made / INPUTS, self.inputs)
            whole = {**about, DIMS: self.bounds, OPENED: self.is_opened}
            (made / ABOUT).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> tuple[ModelCase, dict[str, object]]:
        """A saved model with its inputs, and the settings of its replay. Raises InputError."""
        try:
            about = cast("dict[str, object]", json.loads((folder / ABOUT).read_text("utf-8")))
            proto = onnx.load(folder / MODEL)
        except (OSError, ValueError) as error:
            raise InputError(f"{folder}: cannot be read: {error}") from None
        dims = cast("dict[str, list[int]]", about.get(DIMS, {}))
        bounds = {name: (least, most) for name, (least, most) in dims.items()}
        own = signature(import_onnx(proto, new_context(), dims=dict(bounds)))
        lengths = {each.name for each in own.lengths}
        inputs = read_npz(folder / INPUTS, [t for t in own.inputs if t.name not in lengths])
        return ModelCase(proto, inputs, None, bounds, bool(about.get(OPENED))), about

    def __repr__(self) -> str:
        """The model as ONNX text."""
        return self.text


def inner_graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The inner graphs of a node: the branches of an If, or the body of a loop."""
    return [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]


def every_node(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph, and of the graphs inside them."""
    for node in graph.node:
        yield node
        for inner in inner_graphs(node):
            yield from every_node(inner)


def names_read(node: onnx.NodeProto) -> list[str]:
    """The names that a node reads, each once, including outer names that its inner graphs read."""
    found = [name for name in node.input if name]
    for graph in inner_graphs(node):
        own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
        own.update(name for each in graph.node for name in each.output)
        read = [name for each in graph.node for name in names_read(each)]
        read += [v.name for v in graph.output]
        found += [name for name in read if name not in own]
    return list(dict.fromkeys(found))


def copy_of(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    return copy


def _results(proto: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """The inferred types and shapes of the results of nodes, in the order of the nodes."""
    inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    infos = {v.name: v for v in (*inferred.value_info, *inferred.output)}
    names = [name for node in proto.graph.node for name in node.output]
    return {name: infos[name] for name in names if name in infos and _is_tensor(infos[name])}


def _is_tensor(info: onnx.ValueInfoProto) -> bool:
    """Whether a value is a tensor, not a sequence or an optional value."""
    return info.type.HasField("tensor_type") and info.type.tensor_type.elem_type != 0


def _without_unused(graph: ModelCase) -> ModelCase:
    """The model without unused nodes, weights and inputs. Changes the model in place."""
    proto = graph.proto.graph
    wanted = {v.name for v in proto.output}
    kept: list[onnx.NodeProto] = []
    for node in reversed(proto.node):
        if wanted & set(node.output):
            wanted.update(names_read(node))
            kept.append(node)
    held = [t for t in proto.initializer if t.name in wanted]
    given = [v for v in proto.input if v.name in wanted]
    computed = {name for node in kept for name in node.output} - {v.name for v in proto.output}
    typed = [v for v in proto.value_info if v.name in computed]
    del proto.node[:], proto.initializer[:], proto.input[:], proto.value_info[:]
    proto.value_info.extend(typed)
    proto.node.extend(reversed(kept))
    proto.initializer.extend(held)
    proto.input.extend(given)
    inputs = {n: a for n, a in graph.inputs.items() if n in wanted}
    return replace(graph, inputs=inputs, sketch=None)
